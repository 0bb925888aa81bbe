-- change_rules.lua - adds and removes stored rules of a subject's streams.
--
-- `rules:NAME` is a hash: `version`, which increases with each change; `by`, a number that
-- identifies the last change; and the text of each rule by its id. The caller passes the version
-- that it has read, so that of two changes based on the same version, the second is refused and
-- must read again. New ids are derived from the new version: version * 1000 + n. When the last rule
-- is removed, the version is kept for KEEP_MS, for open streams.
--
-- ARGV: shards, request id (not used), NAME, the version read, the number that identifies the
-- change, how many ids follow, these ids, which are removed, and then the texts to add. Returns
-- {'1', version}: done; or {'0', version}: the rules have changed since.
local KEEP_MS = 172800000
local ADDED_MOST = 1000 -- also in src/database/stream_rules.h

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
