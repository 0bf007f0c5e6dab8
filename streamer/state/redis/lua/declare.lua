-- Gives settings a generation.
-- KEYS: fingerprint -> generation. ARGV: fingerprint, the generation that is known of it or 0, and
-- where it is to be the newest a number below its own, else ''.
local newest, known = 0, tonumber(ARGV[2])
local declared = redis.call('HGETALL', KEYS[1])
for at = 2, #declared, 2 do
  local number = tonumber(declared[at])
  newest = math.max(newest, number)
  if number == tonumber(ARGV[2]) then
    known = 0 -- others have it: Redis was emptied
  end
end
local own = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or 0)
local before = own
if ARGV[3] ~= '' then
  local least = math.max(newest, tonumber(ARGV[3]))
  if own == 0 or own < least then
    own = least + 1
  end
elseif own == 0 then
  own = known
  if own == 0 and (newest == 0 or ARGV[2] ~= '0') then
    own = newest + 1
  end
end
if own ~= before then
  redis.call('HSET', KEYS[1], ARGV[1], own)
end
return {own, math.max(newest, own)}
