-- task_save.lua - a worker still works on a task, and may say how far it has come.
--
-- Renews the lease. ARGV: shards, request id (not used), consumer, entry, progress (empty: none).
-- Progress makes this the first try again. Returns 1, or 0 when the task is the consumer's no more.
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
