-- log_rate.lua - the number of recent entries of the log. Writes nothing.
--
-- ARGV: shards, request id (not used), how many milliseconds to look back, how many of the newest
-- entries to examine. Returns {entries, milliseconds}: this many within this time. The time is as
-- requested; if there are too many entries, it is the time that the newest of them span, by their
-- ids.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local window_ms, most = tonumber(ARGV[3]), tonumber(ARGV[4])
local now_ms = ids_ms(time_ms())
local from = math.max((now_ms - window_ms - EPOCH_MS) * 4096, 0)
local entries = call('XREVRANGE', prefix .. 'log', '+', print_id(from), 'COUNT', most)
if #entries == most then
    local oldest_ms = EPOCH_MS + floor(tonumber(string.match(entries[most][1], '^%d+')) / 4096)
    window_ms = math.max(now_ms - oldest_ms, 1)
end
return {#entries, window_ms}
