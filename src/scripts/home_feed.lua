-- home_feed.lua - this shard's part of a home timeline of another shard, for a read or a task.
-- Writes nothing.
--
-- ARGV: shards, request id (not used), reader's id, before ('+inf' or '(ID'), after ('-inf' or
-- '(ID'), limit, form of the rows (see view_of), 1 to return which authors are settled, number of
-- posts, the posts, then the authors. Returns {id above which the posts of the authors are
-- complete, how many of them come before the page, settled authors, each with the follow by which
-- this shard knows the reader ('0': none is needed), rows (see read_part)}. A settled author pushes
-- to the reader from now on, as far as this shard knows.
local meta, refusal = open_shard('timeline')
if not meta then
    return refusal
end
local reader, before, after, limit = ARGV[3], ARGV[4], ARGV[5], tonumber(ARGV[6])
local form, is_settling, post_count = ARGV[7], ARGV[8] == '1', tonumber(ARGV[9])
local posts, authors, settled = {}, {}, {}
for i = 10, #ARGV do
    local list = i < 10 + post_count and posts or authors
    list[#list + 1] = ARGV[i]
end

local function settled_since(author)
    if author == reader then
        return '0'
    end
    local is_merged = meta.timeline == HYBRID and call('ZSCORE', prefix .. 'merged', author)
    return not is_merged and not is_out_of_sight(author, reader) and follower_since(author, reader)
end

for _, author in ipairs(is_settling and authors or {}) do
    local since = settled_since(author)
    if since then
        settled[#settled + 1] = author
        settled[#settled + 1] = since
    end
end
local rows, feed_until = read_part(reader, posts, authors, before, after, limit, form)
return {print_id(feed_until), print_id(count_newer(authors, before)), settled, rows}
