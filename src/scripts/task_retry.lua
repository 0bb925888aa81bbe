-- task_retry.lua - turns a dead letter into a new task.
--
-- Refused if so much time has passed that later operations on the same pair may have been forgotten
-- (is_outdated), because the task might undo them. ARGV: shards, request id (not used), entry in
-- `dead`. Returns 1, or 0 if there is none.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local dead = prefix .. 'dead'
check_tasks()
local letter = call('XRANGE', dead, ARGV[3], ARGV[3])[1]
if not letter then
    return 0
end
local left_ms = tonumber(string.match(letter[2][2], '^%d+')) -- when the task was added
if time_ms() - left_ms >= APPLIED_TTL_MS then
    return refuse('TOOLATE', 'the task is more than a week old, and what came after it is not known')
end

call('XADD', prefix .. 'tasks', '*', unpack(letter[2], 7)) -- after those of task_fail.lua
call('XDEL', dead, ARGV[3])
return 1
