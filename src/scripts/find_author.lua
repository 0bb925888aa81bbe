-- find_author.lua - the author of a post, for a post that refers to it. Writes nothing.
--
-- ARGV: shards, request id (not used), reader, post id. Returns {user id, login}, or {} if the post
-- is not public.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local post
post, refusal = find_post(ARGV[4], ARGV[3])
if not post then
    return refusal
end
return named_author(post) or {}
