-- archive_due.lua - adds a task for each user who has a post older than `archive_age_ms`.
--
-- Checks some users of the shard, about as many as ARGV says, and continues there the next time;
-- each worker with an archive calls it every second. `archive_due` is a hash: `cursor` is the
-- position in `logins`; `at` is the time before which no check is needed: one second after the
-- last, and after a complete pass a tenth of the age, at most an hour. While tasks wait for the
-- archive none is added. ARGV: shards, request id (not used), how many. Returns the number of tasks
-- added.
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
if at and now_ms < tonumber(at) and now_ms + PASS_MS >= tonumber(at) then -- otherwise the clock was
                                                                          -- set back
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
