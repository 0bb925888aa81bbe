-- task_fail.lua - a task has failed: it is tried again later, or becomes a dead letter.
--
-- ARGV: shards, request id (not used), consumer, entry, lease in ms, why. Returns 'later', 'dead',
-- or 'lost' if the task no longer belongs to the consumer.
--
-- A waiting task belongs to the consumer named `waiting`, with an idle time such that its lease
-- ends when the waiting time does. That time doubles with each try, up to the lease.
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
-- The fields of a dead letter. task_retry.lua and src/tasks/tasks.c rely on three fields before
-- those of the task.
call('XADD', dead, '*', 'entry', entry, 'tries', tries, 'error', why, unpack(found[2]))
end_task(entry)
return 'dead'
