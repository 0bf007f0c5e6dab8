-- Deletes orphan blobs, unless another worker has claimed the partition since: what looks orphaned
-- to a worker that was asleep may belong to its successor.
-- KEYS: claim, blobs, then the keys of blobs. ARGV: claim, then the names of those blobs.
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
for i = 3, #KEYS do
  redis.call('UNLINK', KEYS[i])
  redis.call('SREM', KEYS[2], ARGV[i - 1])
end
return #KEYS - 2
