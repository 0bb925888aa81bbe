-- task_counts.lua - counts the tasks of the shard. Writes nothing.
--
-- ARGV: shards. Returns {tasks, taken, age of the oldest in ms, dead, why tasks wait for the
-- archive ('': they do not), answers stored for request ids}.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local tasks = prefix .. 'tasks'
local taken = redis.pcall('XPENDING', tasks, TASK_GROUP) -- fails if there is no group yet
local oldest = call('XRANGE', tasks, '-', '+', 'COUNT', 1)[1]
local age_ms = 0
if oldest then
    age_ms = math.max(0, time_ms() - tonumber(string.match(oldest[1], '^%d+')))
end
return {call('XLEN', tasks), taken[1] or 0, age_ms, call('XLEN', prefix .. 'dead'),
    call('GET', prefix .. 'archive_away') or '', kept_count()}
