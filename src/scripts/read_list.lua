-- read_list.lua - a page of a list, newest first. Writes nothing.
--
-- ARGV: shards, request id (not used), reader, which list, whose ('=ID' or '@FOLDED LOGIN' of a
-- user, or the id of a post), before ('+inf' or a position), limit, '1' from readers who have a
-- cache, and if the caller has found the post in the archive, the post as that keeps it.
-- Returns rows: of posts (see post_row), or of users, each behind its position (see user_row); where
-- there is a cache, of those that may be there, bare ones (see bare_row and bare_user_row). Of
-- one that lives in another shard, or that the archive may have, there is the id alone (of what a user
-- likes it is all there is, behind its position); so there is
-- of posts that the reader may not see, when very many have been passed over.
local meta, refusal = open_shard('archive')
if not meta then
    return refusal
end

local reader, is_bare = ARGV[3], ARGV[8] == '1'

local LOOKS = 500 -- behind so many posts none is passed over any more: the script's time has a bound
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
