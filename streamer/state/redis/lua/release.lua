-- Gives a partition up, unless another worker has claimed it.
-- KEYS: claim. ARGV: claim.
if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0
