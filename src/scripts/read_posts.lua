-- read_posts.lua - posts by their ids. Writes nothing.
--
-- ARGV: shards, request id (not used), reader, then ids of posts of this shard.
-- Returns for each a row (see post_row), or an error: there is no such post to be seen.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local rows = {}
for i = 4, #ARGV do
    local post, missing = find_post(ARGV[i], ARGV[3])
    rows[#rows + 1] = post and post_row(post, ARGV[3]) or missing
end
return rows
