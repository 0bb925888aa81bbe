-- change_rules.lua - rules that a subject keeps for its streams are added and removed.
--
-- `rules:NAME` is a hash: `version`, which rises with each change; `by`, whose change that was; and for
-- each rule its text, by its id. Who changes them says which version was read, so that of two that read
-- the same one, the second is told to read again. Ids are those of the new version: version * 1000 + n.
-- When the last rule has gone, the version stays for KEEP_MS, for those who have streams open.
-- ARGV: shards, request id (not used), NAME, the version that was read, who asks, how many ids follow,
-- those to be removed, and then the texts to be added.
-- Returns {'1', version}: it is done; or {'0', version}: they are others by now.
local KEEP_MS = 172800000
local ADDED_MOST = 1000 -- src/database/stream_rules.h, too

local meta, refusal = open_shard()
if not meta then
    return refusal
end
local key = prefix .. 'rules:' .. ARGV[3]
local known = call('HMGET', key, 'version', 'by')
local version = tonumber(known[1]) or 0
local removed = tonumber(ARGV[6])
local added = #ARGV - 6 - removed

if known[2] == ARGV[5] then
    return {'1', print_id(version)}
end
if print_id(version) ~= ARGV[4] or added > ADDED_MOST then
    return {'0', print_id(version)}
end
version = math.max(version + 1, time_ms())
for i = 7, 6 + removed do
    call('HDEL', key, ARGV[i])
end
for i = 1, added do
    call('HSET', key, print_id(version * ADDED_MOST + i - 1), ARGV[6 + removed + i])
end
call('HSET', key, 'version', print_id(version), 'by', ARGV[5])
if call('HLEN', key) > 2 then
    call('PERSIST', key)
else
    call('PEXPIRE', key, KEEP_MS)
end
return {'1', print_id(version)}
