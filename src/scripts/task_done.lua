-- task_done.lua - removes a task that is done, whoever holds it.
--
-- ARGV: shards, request id (not used), entry. Returns the number of tasks removed: 1, or 0 if it
-- was done already.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
return end_task(ARGV[3])
