-- log_state.lua - length, age and size of the log. Writes nothing.
--
-- ARGV: shards, request id (not used). Returns {entries, id of the oldest one or '0', bytes in
-- memory}. The last is estimated from a few nodes of the stream, however many there are.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local log = prefix .. 'log'
local first = call('XRANGE', log, '-', '+', 'COUNT', 1)[1]
return {
    print_id(call('XLEN', log)),
    first and string.match(first[1], '^%d+') or '0',
    print_id(call('MEMORY', 'USAGE', log, 'SAMPLES', 5) or 0),
}
