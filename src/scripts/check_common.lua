-- check_common.lua - tells which of the given users are on a user's list. Writes nothing.
--
-- ARGV: shards, request id (not used), 'followers' or 'following', id of the user, then ids of
-- users. Returns 1 or 0 for each.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local user
user, refusal = read_user('=' .. ARGV[4])
if not user then
    return refusal
end
local reply = {}
for i = 5, #ARGV do
    reply[#reply + 1] = is_on_list(ARGV[3], user.id, ARGV[i]) and 1 or 0
end
return reply
