-- home_fill.lua - adds the posts that a backfill task has read to a reader's home timeline.
--
-- ARGV: shards, request id (not used), reader's id, version, 1 if everything was read again, and
-- the floor (all as returned by home_missing.lua); id above which the posts are complete; the
-- number of the following elements for settled authors, these with their follows (see
-- home_feed.lua), number of authors that are not settled, these, then the posts, id and author in
-- turn. Returns 1, or 0 if there was a change meanwhile, in which case nothing is written.
local meta, refusal = open_shard('timeline', 'home_size')
if not meta then
    return refusal
end
local reader, version, is_all, floor_before, whole_above = ARGV[3], ARGV[4], ARGV[5] == '1', ARGV[6],
    tonumber(ARGV[7])
local active, home, behind = home_keys(reader)
check_home(reader)
call('ZCARD', prefix .. 'gone')

local at = 8
local function take_list()
    local list = {} -- not with unpack(), which Lua's stack limits to about 8,000
    for i = at + 1, at + tonumber(ARGV[at]) do
        list[#list + 1] = ARGV[i]
    end
    at = at + 1 + #list
    return list
end

local settled, unsettled = take_list(), take_list()
local state = read_home_state(meta, reader)
if not state or state.version ~= version or (state.floor or '') ~= floor_before then
    return 0
end
-- An author who was settled by a follow that is no longer the reader's current one is not settled.
local outdated = {}
for i = 1, #settled, 2 do
    local author, since = settled[i], settled[i + 1]
    if since ~= '0' and not follows_since(reader, author, since) then
        outdated[author] = true
        unsettled[#unsettled + 1] = author
    end
end
local limit_before = is_all and state.cut or not is_all and state.floor or 0
local new_floor = math.max(whole_above, tonumber(limit_before))

local posts, author_of, added = {}, {}, {}
for i = at, #ARGV, 2 do
    if not outdated[ARGV[i + 1]] then
        posts[#posts + 1] = ARGV[i]
        author_of[ARGV[i]] = ARGV[i + 1]
    end
end
in_portions(posts, function(...)
    local ids = {...}
    for i, is_dead in ipairs(call('ZMSCORE', prefix .. 'gone', ...)) do
        if not is_dead and tonumber(ids[i]) > new_floor then
            added[#added + 1] = ids[i] .. ':' .. author_of[ids[i]]
        end
    end
end)
merge_entries(home, added, new_floor)
if is_all then
    call('UNLINK', behind)
    in_portions(unsettled, function(...) call('SADD', behind, ...) end)
else
    local done = {}
    for i = 1, #settled, 2 do
        if not outdated[settled[i]] then
            done[#done + 1] = settled[i]
        end
    end
    in_portions(done, function(...) call('SREM', behind, ...) end)
end
call('HSET', active, 'floor', print_id(new_floor))
call('HDEL', active, 'cut', 'asked')
home_trim(meta, home, count_entries(home), active, 'floor')
for _, key in ipairs({home, behind}) do
    call('PEXPIRE', key, call('PTTL', active))
end
return 1
