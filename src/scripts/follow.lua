-- follow.lua - a user follows another, or ends it.
--
-- Runs in the shard of the user. A target in the same shard is changed here; for one elsewhere a
-- task tells its shard, and the caller says what the event is to call it.
-- ARGV: shards, request id, 'follow' or 'unfollow', user, target ('=ID' or '@FOLDED LOGIN'), and
-- for a target elsewhere: its login and name, both may be empty.
-- Returns {repeated, event id, or 0 when nothing was to be changed}.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local operation = ARGV[3]
local before = answered(operation)
if before then
    return before
end
local user, target
user, refusal = read_user(ARGV[4])
if not user then
    return refusal
end

local is_here = string.sub(ARGV[5], 1, 1) == '@' or shard_of(string.sub(ARGV[5], 2)) == shard
if is_here then
    target, refusal = read_user(ARGV[5])
    if not target then
        return refusal
    end
else
    target = {id = string.sub(ARGV[5], 2), login = ARGV[6] ~= '' and ARGV[6] or nil,
        name = ARGV[7] ~= '' and ARGV[7] or nil}
    check_tasks()
end
if target.id == user.id then
    return refuse('SELF', 'nobody can follow themselves')
end

local following = prefix .. 'following:' .. user.id
local followers = prefix .. 'followers:' .. target.id
local is_following = call('ZSCORE', following, target.id) and true or false
if is_here then
    call('ZSCORE', followers, user.id)
end
if is_following == (operation == 'follow') then
    return answer(operation, '0')
end
local clock
clock, refusal = read_clock()
if not clock then
    return refusal
end

-- Counts what one side of the relation gained or lost.
local function change(set, member, counter, owner)
    local key = prefix .. 'user:' .. owner
    if operation == 'follow' then
        call('HINCRBY', key, counter, call('ZADD', set, clock.id, member))
    else
        call('HINCRBY', key, counter, 0 - call('ZREM', set, member)) -- -0 would print as such
    end
end

take_id(clock)
change(following, target.id, 'following', user.id)
if is_here then
    change(followers, user.id, 'followers', target.id)
else
    enqueue(operation, clock.id, 'user', user.id, 'target', target.id)
end
emit(meta, clock, operation, '"user":' .. user_json(user) .. ',"target":' .. user_json(target))
return answer(operation, clock.id)
