-- task_save.lua - renews the lease of a task, and saves its progress.
--
-- ARGV: shards, request id (not used), consumer, entry, progress (empty: none). With progress, the
-- tries are counted from one again. Returns 1, or 0 if the task no longer belongs to the consumer.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local tasks = prefix .. 'tasks'
local consumer, entry, progress = ARGV[3], ARGV[4], ARGV[5]
local pending = call('XPENDING', tasks, TASK_GROUP, entry, entry, 1)[1]
if not pending or pending[2] ~= consumer then
    return 0
end
local tries = pending[4]
if progress ~= '' then
    call('HSET', prefix .. 'task:' .. entry, 'progress', progress)
    tries = 1
end
call('XCLAIM', tasks, TASK_GROUP, consumer, 0, entry, 'RETRYCOUNT', tries, 'JUSTID')
return 1
