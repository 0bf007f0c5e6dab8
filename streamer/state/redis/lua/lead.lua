-- Takes or keeps the lease of who acts, and writes under it.
-- KEYS: the lease, and what is kept (name -> bytes). ARGV: who asks, for how long (ms; 0 gives it
-- back), then names and bytes; no bytes delete.
local leader = redis.call('GET', KEYS[1])
if leader and leader ~= ARGV[1] then
  return 0
end
for at = 3, #ARGV, 2 do
  if ARGV[at + 1] == '' then
    redis.call('HDEL', KEYS[2], ARGV[at])
  else
    redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 1])
  end
end
if ARGV[2] == '0' then
  redis.call('DEL', KEYS[1])
else
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return 1
