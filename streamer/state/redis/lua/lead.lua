-- Takes or keeps the lease of who acts, and writes under it.
-- KEYS: the lease, and what is kept (name -> bytes). ARGV: who asks, for how long (ms; 0 gives it
-- back), then names and bytes; no bytes delete. Who wants to keep it writes only where it has it
-- already: what was decided before it ran out is old.
local leader, lease = redis.call('GET', KEYS[1]), tonumber(ARGV[2])
if leader ~= ARGV[1] and (leader or (lease > 0 and #ARGV > 2)) then
  if leader and lease > 0 and redis.call('PTTL', KEYS[1]) > lease then
    redis.call('SET', KEYS[1], leader, 'PX', lease) -- the clock was set back
  end
  return 0
end
for at = 3, #ARGV, 2 do
  if ARGV[at + 1] == '' then
    redis.call('HDEL', KEYS[2], ARGV[at])
  else
    redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1])
  end
end
if lease == 0 then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return 1
