-- task_fail.lua - a task could not be done: it is tried again later, or put to the dead.
--
-- ARGV: shards, request id (not used), consumer, entry, lease in ms, why. Returns 'later', 'dead',
-- or 'lost' when the task is the consumer's no more.
--
-- A task that waits belongs to the consumer named `waiting`, who has held it just so long that its
-- lease ends when the time to wait does: it doubles from try to try, up to the lease.
local meta, refusal = open_shard('task_tries')
if not meta then
    return refusal
end
local tasks, dead = prefix .. 'tasks', prefix .. 'dead'
local consumer, entry, lease_ms, why = ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local pending = call('XPENDING', tasks, TASK_GROUP, entry, entry, 1)[1]
if not pending or pending[2] ~= consumer then
    return 'lost'
end
local found = call('XRANGE', tasks, entry, entry)[1]
if not found then
    end_task(entry) -- deleted by hand
    return 'lost'
end
local tries = pending[4]
if tries < meta.task_tries then
    local wait_ms = math.min(lease_ms, 1000 * 2 ^ (tries - 1))
    call('HSET', prefix .. 'task:' .. entry, 'error', why)
    call('XCLAIM', tasks, TASK_GROUP, 'waiting', 0, entry, 'IDLE', print_id(lease_ms - wait_ms),
        'RETRYCOUNT', tries, 'JUSTID')
    return 'later'
end

call('XLEN', dead)
-- The fields of a letter; task_retry.lua and src/tasks/tasks.c know that there are three before the task's.
call('XADD', dead, '*', 'entry', entry, 'tries', tries, 'error', why, unpack(found[2]))
end_task(entry)
return 'dead'
