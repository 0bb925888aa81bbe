-- raise_clock.lua - makes this shard mint ids above HIGH.
--
-- Called when events of other shards up to HIGH have been delivered, but this shard may mint lower
-- ids, or has: because the machine's clock was set back, or because gateways could not wait for the
-- shard.
--
-- If the log has events in (LOW, HIGH], which readers have not received in order, a marker is
-- logged above HIGH, an event of type `late`: a client that resumes from an id up to the marker's
-- `to` may lack them, and must be told. Idempotent: further calls write nothing.
--
-- ARGV: shards, request id (not used), LOW, HIGH, and `clock_until` of another shard of this Redis,
-- or 0. Shards that share a clock must have the same `clock_until` in the end, so a caller must
-- call for all of them with the value returned here. Returns {clock_until, 1 if it was raised, 1 if
-- a marker was logged}.
local AHEAD_MAX_MS = 3600000 -- of the machine's clock: ids must not get into the far future
-- More than necessary, so that later calls for other gateways find it done. In a cluster it is no
-- more than gateways differ by, because they wait until the clocks of the other nodes catch up.
local LEAP_MS, CLUSTER_LEAP_MS = 1000, 200

local meta, refusal = open_shard()
if not meta then
    return refusal
end
local leap_ms = meta.publish_command == 'SPUBLISH' and CLUSTER_LEAP_MS or LEAP_MS
local low, high, until_ms = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local now_ms, high_ms = time_ms(), floor(high / 4096) + EPOCH_MS
local before_ms = clock_until_ms
clock_until_ms = math.max(clock_until_ms, until_ms)
if ids_ms(now_ms) <= high_ms then
    local wanted_ms = high_ms + leap_ms
    clock_until_ms = wanted_ms + math.ceil((wanted_ms - now_ms) / (SLOWER - 1))
end
local is_raised = clock_until_ms > before_ms
if is_raised and ids_ms(now_ms) > now_ms + AHEAD_MAX_MS + LEAP_MS then
    return refuse('AHEAD', 'ids would be more than an hour ahead of the clock of Redis')
end

local clock
clock, refusal = read_clock()
if not clock then
    return refusal
end
local marked_from, marked_to = string.match(call('HGET', KEYS[1], 'late') or '0-0', '^(%d+)-(%d+)$')
if not marked_from then
    return refuse('DAMAGED', 'meta has no usable late')
end
local first = call('XRANGE', prefix .. 'log', '(' .. low, ARGV[4], 'COUNT', 1)[1]
first = first and tonumber(string.match(first[1], '^%d+'))
local is_marked = first and (tonumber(marked_from) >= first or tonumber(marked_to) < high)

if is_raised then
    call('HSET', KEYS[1], 'clock_until', print_id(clock_until_ms))
end
if is_marked then
    -- There is nothing between LOW and the first event: a reader that continues from `from` reads
    -- no more than necessary.
    local from, to = print_id(first - 1), print_id(tonumber(clock.id) - 1)
    take_id(clock)
    call('HSET', KEYS[1], 'late', from .. '-' .. to)
    emit(meta, clock, 'late', '"shard":' .. shard .. ',"from":"' .. from .. '","to":"' .. to .. '"')
elseif is_raised and tonumber(call('GET', prefix .. 'clock') or '0') < high then
    call('SET', prefix .. 'clock', ARGV[4]) -- for programs that do not know clock_until
end
return {print_id(clock_until_ms), is_raised and 1 or 0, is_marked and 1 or 0}
