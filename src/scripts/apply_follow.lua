-- apply_follow.lua - changes the target's side of a follow or unfollow by a user of another shard.
--
-- Runs in the shard of the target. ARGV: shards, request id (not used), 'follow' or 'unfollow', id
-- of the operation, id of the user, target as '=ID'. Returns 1, or 0 if it came too late to change
-- anything.
local meta, refusal = open_shard('followers_part')
if not meta then
    return refusal
end
local operation, id, user = ARGV[3], ARGV[4], ARGV[5]
local target
target, refusal = read_user(ARGV[6])
if not target then
    return refusal
end
local since = follower_since(target.id, user)
if is_outdated('follow', user, target.id, id) or (since and tonumber(since) >= tonumber(id)) then
    return 0
end

check_tasks()
note_applied('follow', user, target.id, id)
if operation == 'follow' then
    add_follower(meta, target.id, user, id)
else
    remove_follower(target.id, user)
end
if operation == 'follow' then
    enqueue('gain', id, 'user', user, 'target', target.id)
end
return 1
