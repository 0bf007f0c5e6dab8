-- The commit: flips one partition's manifest to new blobs and offsets, or changes nothing.
-- KEYS: claim, state, blobs, then the keys of the blobs written, then of those to delete.
-- ARGV: claim, position expected, position new, manifest, number of blobs written, then the names
-- of those to delete. State is bytes here: Lua's numbers would lose integers above 2^53.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 'FENCED'
end
local position = redis.call('HGET', KEYS[2], 'position') or ''
if position == ARGV[3] then
  return 'ALREADY'
end
if position ~= ARGV[2] then
  return 'MOVED'
end
local written = tonumber(ARGV[5])
if #KEYS - 3 - written ~= #ARGV - 5 or #KEYS - 3 - written > 1000 then
  return redis.error_reply('commit: keys and arguments do not fit together')
end
for i = 4, 3 + written do -- a fail-over after they were written may have lost them
  if redis.call('EXISTS', KEYS[i]) == 0 then
    return 'INCOMPLETE'
  end
end
local now = redis.call('TIME')
local seen_ms = now[1] .. string.format('%03d', math.floor(tonumber(now[2]) / 1000))
redis.call('HSET', KEYS[2], 'position', ARGV[3], 'manifest', ARGV[4], 'seen_ms', seen_ms)
for i = 4 + written, #KEYS do
  redis.call('UNLINK', KEYS[i])
  redis.call('SREM', KEYS[3], ARGV[i + 2 - written])
end
return 'OK'
