-- follow.lua - a user follows or unfollows one or more others.
--
-- Runs in the shard of the user. Targets in the same shard are changed here. For others a task
-- informs their shard, and the caller supplies login and name for the event. ARGV: shards, request
-- id, 'follow' or 'unfollow', user, then three for each target: '=ID', '@FOLDED LOGIN', or '-' for
-- one that the caller has not found; and for a target elsewhere its login and name, both may be
-- empty. Returns {repeated, and for each target: event id, 0 if nothing had to be changed, or an
-- error}.
local meta, refusal = open_shard('following_max', 'followers_part')
if not meta then
    return refusal
end
local operation = ARGV[3]
local before = answered(operation)
if before then
    return before
end
local user
user, refusal = read_user(ARGV[4])
if not user then
    return refusal
end
check_home(user.id)
local following = prefix .. 'following:' .. user.id
local room = meta.following_max - call('ZCARD', following)

local function find_target(who, login, name)
    local id = string.sub(who, 2)
    if who == '-' then
        return nil, refuse('NOUSER', 'there is no such user')
    end
    if string.sub(who, 1, 1) == '@' or shard_of(id) == shard then
        local target, missing = read_user(who)
        if target then
            target.is_here = true
            follower_since(target.id, user.id)
        end
        return target, missing
    end
    check_tasks()
    return {id = id, login = login ~= '' and login or nil, name = name ~= '' and name or nil}
end

-- Decide everything first: a result for each target, except those in `changes`.
local results, changes, decided = {}, {}, {}

local function decide(target)
    local is_following = decided[target.id]
    if is_following == nil then
        is_following = call('ZSCORE', following, target.id) and true or false
    end
    if target.id == user.id then
        return refuse('SELF', 'nobody can follow themselves')
    end
    if is_following == (operation == 'follow') then
        return '0'
    end
    if operation == 'follow' and #changes >= room then
        return refuse('LIMIT', 'nobody can follow more than ' .. meta.following_max .. ' users')
    end
    return nil
end

local refused = 0
for i = 5, #ARGV, 3 do
    local at = #results + 1
    local target, missing = find_target(ARGV[i], ARGV[i + 1], ARGV[i + 2])
    local result = missing or decide(target)
    results[at] = result or false
    if not result then
        target.at = at
        changes[#changes + 1] = target
        decided[target.id] = operation == 'follow'
    elseif type(result) == 'table' then
        refused = refused + 1
    end
end
if refused == #results then
    return {0, unpack(results)}
end
local clocks
clocks, refusal = read_clocks(#changes)
if not clocks then
    return refusal
end

local function change(target, clock)
    if operation == 'follow' then
        call('ZADD', following, clock.id, target.id)
    else
        call('ZREM', following, target.id)
    end
    if not target.is_here then
        enqueue(operation, clock.id, 'user', user.id, 'target', target.id)
    elseif operation == 'follow' then
        add_follower(meta, target.id, user.id, clock.id)
    else
        remove_follower(target.id, user.id)
    end
    emit(meta, clock, operation, '"user":' .. user_json(user) .. ',"target":' .. user_json(target))
end

if #changes > 0 then
    take_id(clocks[#clocks])
    call('HINCRBY', prefix .. 'user:' .. user.id, 'following',
        operation == 'follow' and #changes or -#changes)
end
local lost = {}
for i, target in ipairs(changes) do
    change(target, clocks[i])
    results[target.at] = clocks[i].id
    if operation == 'follow' then
        home_gain(user.id, target.id, clocks[i].id)
    else
        lost[target.id] = true
    end
end
if next(lost) then
    home_lose(user.id, lost, clocks[#clocks].id)
end
return answer_all(operation, results)
