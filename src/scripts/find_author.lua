-- find_author.lua - whose post is that, for somebody who wants to refer to it? Writes nothing.
--
-- ARGV: shards, request id (not used), reader, post id. Returns {user id, login}, or {} when nobody
-- is to be named.
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
