-- read_list.lua - a page of a list, newest first. Writes nothing.
--
-- ARGV: shards, request id (not used), reader, name of the list, its owner ('=ID' or '@FOLDED
-- LOGIN' of a user, or the id of a post), before ('+inf' or a position), limit, '1' from readers
-- with a cache, and if the caller has found the post in the archive, the post as stored there.
-- Returns rows of posts (see post_row), or of users, each after its position (see user_row); for
-- readers with a cache, bare ones where possible (see bare_row and bare_user_row). For an item in
-- another shard, or one that the archive may have, there is only the id; the list of what a user
-- likes has only ids after their positions. There is also only the id of posts that the reader may
-- not see when very many have been skipped.
local meta, refusal = open_shard('archive')
if not meta then
    return refusal
end

local reader, is_bare = ARGV[3], ARGV[8] == '1'

local LOOKS = 500 -- after this number of posts none is skipped, to limit the script's time
local looks = 0

local function post_of(id)
    looks = looks + 1
    local row = is_here(id) and seen_row(id, reader, is_bare)
    if row then
        return row
    end
    local is_elsewhere = not is_here(id) or (row == false and meta.archive == 1)
    return (is_elsewhere or looks > LOOKS) and {id} or nil
end

local function user_of(id, position)
    if not is_here(id) then
        return {position, id}
    end
    local row = is_bare and bare_user_row(id)
    if not row then
        local user = read_user('=' .. id)
        row = user and user_row(user)
    end
    return row and {position, unpack(row)}
end

local function liked_of(id, position)
    return {position, id}
end

local function find_seen_post(id)
    local post, missing = read_post(id)
    if not post and ARGV[9] then
        post, missing = archived_post(ARGV[9], id)
    end
    if post and not may_see(reader, post) then
        return nil, refuse('NOPOST', 'there is no post ' .. id)
    end
    return post, missing
end

local function zset_of(name)
    return function(id)
        return zset_range(prefix .. name .. ':' .. id)
    end
end

local function own_set(name)
    return function(id)
        return set_range(prefix .. name .. ':' .. id)
    end
end

-- Name -> how its owner is found, how it is read, what its rows are.
local LISTS = {
    posts = {read_user, zset_of('profile'), post_of},
    followers = {read_user, follower_range, user_of},
    following = {read_user, zset_of('following'), user_of},
    hidden = {read_user, own_set('hidden_from'), user_of},
    muted = {read_user, own_set('mutes'), user_of},
    liked = {read_user, zset_of('liked'), liked_of},
    comments = {find_seen_post, zset_of('comments'), post_of},
    likes = {find_seen_post, zset_of('likes'), user_of},
}

local find_owner, range_of, row_of = unpack(LISTS[ARGV[4]])
local owner
owner, refusal = find_owner(ARGV[5])
if not owner then
    return refusal
end
return read_page(range_of(owner.id), ARGV[6], tonumber(ARGV[7]), row_of)
