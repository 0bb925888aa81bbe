-- find_author.lua - whose post is that? Writes nothing.
--
-- ARGV: shards, request id (not used), reader, post id. Returns {user id, login}.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local post
post, refusal = find_post(ARGV[4], ARGV[3])
if not post then
    return refusal
end
return {post.user, post.login}
