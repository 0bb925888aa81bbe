-- archive_due.lua - leaves a task for each user of whom a post is older than `archive_age_ms`.
--
-- Looks at some users of the shard, about as many as ARGV says, and goes on there the next time; each
-- worker that has an archive asks every second. `archive_due` is a hash: `cursor`, where among `logins`
-- the next are; `at`, the time before which nobody needs to look: a second behind the last, and behind
-- the end of a pass a tenth of the age, an hour at most. While tasks wait for the archive none is added.
-- ARGV: shards, request id (not used), how many. Returns how many tasks were left.
local meta, refusal = open_shard('archive', 'archive_age_ms')
if not meta then
    return refusal
end
local oldest = oldest_to_stay(meta)
if meta.archive ~= 1 or not oldest or call('EXISTS', prefix .. 'archive_away') == 1 then
    return 0
end
local STEP_MS, PASS_MS = 1000, 3600000
local now_ms = time_ms()
local key = prefix .. 'archive_due'
local cursor, at = unpack(call('HMGET', key, 'cursor', 'at'))
if at and now_ms < tonumber(at) and now_ms + PASS_MS >= tonumber(at) then -- else the clock was set back
    return 0
end
check_tasks()

local found = call('HSCAN', prefix .. 'logins', cursor or '0', 'COUNT', ARGV[3])
local due = {}
for i = 2, #found[2], 2 do
    local user = found[2][i]
    local first = call('ZRANGE', prefix .. 'profile:' .. user, 0, 0)[1]
    if first and tonumber(first) < oldest then
        due[#due + 1] = {first, user}
    end
end
local wait_ms = STEP_MS
if found[1] == '0' then
    wait_ms = math.max(STEP_MS, math.min(PASS_MS, floor(meta.archive_age_ms / 10)))
end
call('HSET', key, 'cursor', found[1], 'at', print_id(now_ms + wait_ms))
for _, one in ipairs(due) do
    enqueue('archive', one[1], 'user', one[2])
end
return #due
