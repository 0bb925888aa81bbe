-- read_viewer.lua - what a user has to do with others. Writes nothing.
--
-- Runs in the shard of the user. ARGV: shards, request id (not used), the user, then others.
-- Returns for each {1 when the user follows, hides from, has muted it}.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local user = ARGV[3]
local reply = {}
for i = 4, #ARGV do
    reply[#reply + 1] = {
        call('ZSCORE', prefix .. 'following:' .. user, ARGV[i]) and 1 or 0,
        call('SISMEMBER', prefix .. 'hidden_from:' .. user, ARGV[i]),
        call('SISMEMBER', prefix .. 'mutes:' .. user, ARGV[i]),
    }
end
return reply
