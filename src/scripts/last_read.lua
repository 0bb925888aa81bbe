-- last_read.lua - reads or sets how far a user has read.
--
-- ARGV: shards, request id (not used), user ('=ID' or '@FOLDED LOGIN'), and an id to store, or
-- nothing. Returns {user id, the stored id, or nothing}.
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
