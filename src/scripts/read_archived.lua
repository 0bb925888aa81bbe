-- read_archived.lua - rows of archived posts that a reader may see. Writes nothing.
--
-- ARGV: shards, request id (not used), reader, then posts of this shard as stored in the archive.
-- Returns for each a row (see post_row), or an error if there is no such post or the reader may not
-- see it.
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
