-- rename.lua - a user gets another display name.
--
-- ARGV: shards, request id, user ('=ID' or '@FOLDED LOGIN'), name. Returns {repeated, user id}.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local before = answered('rename')
if before then
    return before
end
local user
user, refusal = read_user(ARGV[3])
if not user then
    return refusal
end

call('HSET', prefix .. 'user:' .. user.id, 'name', ARGV[4])
return answer('rename', user.id)
