-- read_included.lua - what is shown along with posts: the newest comments and likers of each.
-- Writes nothing.
--
-- Runs in the shard of the posts, which the caller has just read. ARGV: shards, request id (not
-- used), reader, maximum of comments and of likers for each, then posts. Returns for each {1 if the
-- reader likes it, rows of comments (see post_row), rows of likers, each after its position (see
-- user_row)}. For a comment in another shard there is only the id; because that shard may not show
-- it, some more comments than requested are returned then.
local LOOKS = 10 -- number of comments skipped because the reader may not see them
local SPARE = 3 -- number of additional comments if some are in other shards

local meta, refusal = open_shard()
if not meta then
    return refusal
end
local reader, most_comments, most_likers = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])

local function newest_comments(post)
    local rows, shown = {}, 0
    if most_comments == 0 then
        return rows
    end
    local found = call('ZREVRANGE', prefix .. 'comments:' .. post, 0, most_comments + LOOKS - 1)
    for _, id in ipairs(found) do
        local row = not is_here(id) and {id} or seen_row(id, reader, false)
        if row then
            rows[#rows + 1] = row
            shown = shown + (row[2] and 1 or 0)
        end
        if shown == most_comments or #rows == most_comments + SPARE then
            break
        end
    end
    return rows
end

local function newest_likers(post)
    local rows = {}
    if most_likers == 0 then
        return rows
    end
    local found = call('ZREVRANGE', prefix .. 'likes:' .. post, 0, most_likers - 1, 'WITHSCORES')
    for i = 1, #found, 2 do
        local user = is_here(found[i]) and read_user('=' .. found[i])
        if user then
            rows[#rows + 1] = {found[i + 1], unpack(user_row(user))}
        elseif not is_here(found[i]) then
            rows[#rows + 1] = {found[i + 1], found[i]}
        end
    end
    return rows
end

-- A post that was deleted or hidden since it was read has none; one that the archive has is
-- checked.
local function included(id)
    local post = bare_post(id)
    if post and not may_see(reader, post) then
        return {0, {}, {}}
    end
    local is_liked = reader ~= '' and call('ZSCORE', prefix .. 'likes:' .. id, reader)
    return {is_liked and 1 or 0, newest_comments(id), newest_likers(id)}
end

local reply = {}
for i = 6, #ARGV do
    reply[#reply + 1] = included(ARGV[i])
end
return reply
