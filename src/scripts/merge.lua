-- merge.lua - an author of another shard has very many followers: from the post `since` on, the
-- posts are not pushed but merged by reads.
--
-- ARGV: shards, request id (not used), author, since. Returns 1.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
call('ZADD', prefix .. 'merged', 'NX', ARGV[4], ARGV[3])
return 1
