-- task_done.lua - a task is done and forgotten, whoever holds it by now.
--
-- ARGV: shards, request id (not used), entry. Returns how many were forgotten: 1, or 0 when it was
-- done already.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local tasks = prefix .. 'tasks'
local entry = ARGV[3]
call('XACK', tasks, TASK_GROUP, entry)
call('DEL', prefix .. 'task:' .. entry)
return call('XDEL', tasks, entry)
