-- task_done.lua - a task is done and forgotten, whoever holds it by now.
--
-- ARGV: shards, request id (not used), entry. Returns how many were forgotten: 1, or 0 when it was
-- done already.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
return end_task(ARGV[3])
