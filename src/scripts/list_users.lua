-- list_users.lua - lists the users of this shard, some at a time. Writes nothing.
--
-- ARGV: shards, request id (not used), where to continue: '0' at first, then what was returned,
-- until that is '0' again. Returns {where to continue, ids of users}; a user may be returned more
-- than once.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local found = call('HSCAN', prefix .. 'logins', ARGV[3], 'COUNT', 100)
local reply = {found[1]}
for i = 2, #found[2], 2 do
    reply[#reply + 1] = found[2][i]
end
return reply
