-- task_claim.lua - takes over tasks whose worker has been silent for longer than the lease, and
-- failed tasks that have waited long enough (task_fail.lua).
--
-- ARGV: shards, request id (not used), consumer, lease in ms, how many. Returns a list of {entry,
-- {name, value, ...}, tries, exhausted, progress}; `tries` includes this one. An exhausted task has
-- no tries left: it must not be run, but reported as failed.
--
-- If a consumer claims a task from itself, it never received the answer that contained it; that
-- does not count as a try.
local meta, refusal = open_shard('task_tries')
if not meta then
    return refusal
end
local tasks = prefix .. 'tasks'
local consumer = ARGV[3]

-- Consumers of workers that ended long ago; one that holds tasks is kept until they are claimed.
local FORGET_MS = 3600000
for _, fields in ipairs(call('XINFO', 'CONSUMERS', tasks, TASK_GROUP)) do
    local info = {}
    for i = 1, #fields, 2 do
        info[fields[i]] = fields[i + 1]
    end
    if info.pending == 0 and info.idle > FORGET_MS then
        call('XGROUP', 'DELCONSUMER', tasks, TASK_GROUP, info.name)
    end
end

local claimed = {}
local idle = call('XPENDING', tasks, TASK_GROUP, 'IDLE', ARGV[4], '-', '+', ARGV[5])
for _, pending in ipairs(idle) do
    local entry, owner, tries = pending[1], pending[2], pending[4]
    local found = call('XRANGE', tasks, entry, entry)
    if not found[1] then
        end_task(entry) -- deleted by hand
    else
        local exhausted = tries >= meta.task_tries
        if not exhausted and owner ~= consumer then
            tries = tries + 1
        end
        call('XCLAIM', tasks, TASK_GROUP, consumer, 0, entry, 'RETRYCOUNT', tries, 'JUSTID')
        claimed[#claimed + 1] = {entry, found[1][2], tries, exhausted and 1 or 0,
            call('HGET', prefix .. 'task:' .. entry, 'progress') or ''}
    end
end
return claimed
