-- Asks for an erasure.
-- KEYS: hash of an id -> number, and the last number. ARGV: the hash, now, a number below its own.
local last = math.max(tonumber(redis.call('HGET', KEYS[1], 'last') or 0), tonumber(ARGV[3]))
local number = string.format('%.0f', math.max(tonumber(ARGV[2]), last + 1))
redis.call('HSET', KEYS[1], ARGV[1], number, 'last', number)
return number
