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
    local row
    local post, missing = read_post(ARGV[i])
    if post then
        row, missing = post_row(post, ARGV[3])
    end
    rows[#rows + 1] = row or missing
end
return rows
