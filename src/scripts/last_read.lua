-- last_read.lua - how far a user has read, or from now on has.
--
-- ARGV: shards, request id (not used), user ('=ID' or '@FOLDED LOGIN'), and an id to keep it, or nothing.
-- Returns {user id, the id that is kept, or nothing}.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local user
user, refusal = read_user(ARGV[3])
if not user then
    return refusal
end
local key = prefix .. 'user:' .. user.id
if ARGV[4] then
    call('HSET', key, 'last_read', ARGV[4])
end
return {user.id, call('HGET', key, 'last_read') or ''}
