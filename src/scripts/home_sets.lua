-- home_sets.lua - what decides whose posts belong on a user's home stream. Writes nothing.
--
-- ARGV: shards, request id (not used), user's id.
-- Returns ids: {those followed, those who hide from the user, those muted}.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
return {call('ZRANGE', prefix .. 'following:' .. ARGV[3], 0, -1),
    call('SMEMBERS', prefix .. 'hidden_by:' .. ARGV[3]),
    call('SMEMBERS', prefix .. 'mutes:' .. ARGV[3])}
