-- read_archived.lua - posts that the archive has, as a reader may see them. Writes nothing.
--
-- ARGV: shards, request id (not used), reader, then posts of this shard as the archive keeps them.
-- Returns for each a row (see post_row), or an error: there is no such post to be seen.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local rows = {}
for i = 4, #ARGV do
    local post, missing = archived_post(ARGV[i])
    if post and not may_see(ARGV[3], post) then
        post, missing = nil, refuse('NOPOST', 'there is no post ' .. post.id)
    end
    rows[#rows + 1] = post and post_row(post, ARGV[3]) or missing
end
return rows
