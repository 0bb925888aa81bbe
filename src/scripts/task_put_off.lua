-- task_put_off.lua - a task cannot be done now, through no fault of its own: it is tried again
-- later, and this try does not count.
--
-- ARGV: shards, request id (not used), consumer, entry, lease in ms, why. Returns 'later', or
-- 'lost' if the task no longer belongs to the consumer. For how it waits see task_fail.lua. Only
-- tasks for the archive are put off; the reason is recorded for a minute, for task_counts.lua.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local WAIT_MS, AWAY_MS = 5000, 60000
local tasks = prefix .. 'tasks'
local consumer, entry, lease_ms, why = ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local pending = call('XPENDING', tasks, TASK_GROUP, entry, entry, 1)[1]
if not pending or pending[2] ~= consumer then
    return 'lost'
end
if not call('XRANGE', tasks, entry, entry)[1] then
    end_task(entry) -- deleted by hand
    return 'lost'
end
call('HSET', prefix .. 'task:' .. entry, 'error', why)
call('SET', prefix .. 'archive_away', why, 'PX', AWAY_MS)
call('XCLAIM', tasks, TASK_GROUP, 'waiting', 0, entry, 'IDLE',
    print_id(lease_ms - math.min(lease_ms, WAIT_MS)), 'RETRYCOUNT', pending[4] - 1, 'JUSTID')
return 'later'
