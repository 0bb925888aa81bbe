-- read_posts.lua - reads posts by their ids. Writes nothing.
--
-- ARGV: shards, request id (not used), reader, then posts of this shard: 'ID', or if the reader has
-- it in a cache 'ID:AUTHOR', and 'ID:AUTHOR:a' if it came from the archive. Returns for each a row
-- (see post_row; for cached ones bare_row if the post is public), or an error if there is no such
-- post or the reader may not see it.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local reader = ARGV[3]

-- A deletion of an archived post leaves a mark, which outlives every cache. For a post that was in
-- Redis when it was cached but no longer is, nothing is known: it may have been deleted.
local function cached_post(id, author, source)
    local post = bare_post(id)
    if not post and source == 'a' and archived_until(author) >= tonumber(id)
        and not is_erased(id) then
        post = {id = id, user = author, audience = 'public'}
    end
    return post
end

local function row_of(asked)
    local id, author, source = string.match(asked, '^(%d+):(%d+):?(a?)$')
    local post = id and cached_post(id, author, source)
    if post and post.user == author and post.audience == 'public' then
        return may_see(reader, post) and bare_row(post)
            or refuse('NOPOST', 'there is no post ' .. id)
    end
    local missing
    post, missing = find_post(id or asked, reader)
    return post and post_row(post, reader) or missing
end

local rows = {}
for i = 4, #ARGV do
    rows[#rows + 1] = row_of(ARGV[i])
end
return rows
