-- home_sets.lua - the sets that decide whose posts belong on a user's home stream. Writes nothing.
--
-- ARGV: shards, request id (not used), user's id. Returns ids: {followed users, users who hide from
-- the user, muted users}.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
return {call('ZRANGE', prefix .. 'following:' .. ARGV[3], 0, -1),
    call('SMEMBERS', prefix .. 'hidden_by:' .. ARGV[3]),
    call('SMEMBERS', prefix .. 'mutes:' .. ARGV[3])}
