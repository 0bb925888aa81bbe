-- privacy.lua - a user hides from another user or mutes one, or ends it.
--
-- Runs in the shard of the user, whose own set is authoritative. Its mirror is changed here if the
-- target is in the same shard, else by a task in the target's shard. ARGV: shards, request id,
-- 'hide', 'unhide', 'mute' or 'unmute', user, target ('=ID' or '@FOLDED LOGIN'), and for a target
-- elsewhere its login and name, both may be empty. Returns {repeated, event id, or 0 if nothing had
-- to be changed}.
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
    return refuse('SELF', 'nobody can hide from or mute themselves')
end

local own, mirror = privacy_sets(operation, user.id, target.id)
local is_on = call('SISMEMBER', own, target.id) == 1
if is_here then
    call('SISMEMBER', mirror, user.id)
end
check_home(privacy_is_hiding(operation) and target.id or user.id)
local turns_on = privacy_turns_on(operation)
if is_on == turns_on then
    return answer(operation, '0')
end
local clock
clock, refusal = read_clock()
if not clock then
    return refusal
end

take_id(clock)
local change = turns_on and 'SADD' or 'SREM'
call(change, own, target.id)
if is_here then
    call(change, mirror, user.id)
else
    enqueue(operation, clock.id, 'user', user.id, 'target', target.id)
end
home_change_privacy(operation, user.id, target.id, clock.id)
emit(meta, clock, operation, '"user":' .. user_json(user) .. ',"target":' .. user_json(target))
return answer(operation, clock.id)
