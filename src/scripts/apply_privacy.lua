-- apply_privacy.lua - changes the target's side when a user of another shard hides or mutes.
--
-- Runs in the shard of the target. ARGV: shards, request id (not used), operation, its id, id of
-- the user, target as '=ID'. Returns 1, or 0 if it came too late to change anything.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local operation, id, user = ARGV[3], ARGV[4], ARGV[5]
local target
target, refusal = read_user(ARGV[6])
if not target then
    return refusal
end
local _, mirror = privacy_sets(operation, user, target.id)
local pair = privacy_is_hiding(operation) and 'hide' or 'mute'
call('SISMEMBER', mirror, user)
check_home(target.id)
check_tasks()
if is_outdated(pair, user, target.id, id) then
    return 0
end
local clock
clock, refusal = read_clock()
if not clock then
    return refusal
end

take_id(clock)
note_applied(pair, user, target.id, id)
call(privacy_turns_on(operation) and 'SADD' or 'SREM', mirror, user)
if privacy_is_hiding(operation) then
    home_change_privacy(operation, user, target.id, clock.id)
    -- The shard of the target sends the event, too: a gateway that has just read hidden_by from
    -- this shard receives the changes that follow.
    emit(meta, clock, operation, '"user":' .. user_json({id = user}) .. ',"target":'
        .. user_json(target))
end
if operation == 'unmute' then
    enqueue('gain', id, 'user', user, 'target', target.id)
end
return 1
