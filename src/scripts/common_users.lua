-- common_users.lua - the users who are on one user's list and also on another's. Writes nothing.
--
-- Runs in the shard of the first user. ARGV: shards, request id (not used), 'followers' or
-- 'following', id of the first, id of the second, before ('+inf' or a position), limit. Examines up
-- to SCAN users of the first list, newest first. Returns {1 if the second list was searched,
-- position at which to continue or '0' at the end, then position and id of each}. If the second
-- user is in another shard, all examined users are returned, to be checked there
-- (check_common.lua).
local SCAN = 2000

local meta, refusal = open_shard()
if not meta then
    return refusal
end
local name, first, second = ARGV[3], ARGV[4], ARGV[5]
local limit = tonumber(ARGV[7])
local is_here = shard_of(second) == shard
for _, id in ipairs({first, is_here and second or first}) do
    local user, missing = read_user('=' .. id)
    if not user then
        return missing
    end
end

local range = name == 'followers' and follower_range(first)
    or zset_range(prefix .. 'following:' .. first)
local before = ARGV[6] == '+inf' and ARGV[6] or '(' .. ARGV[6]
local found = range(before, SCAN)
local reply = {is_here and 1 or 0, #found == 2 * SCAN and found[#found] or '0'}
for i = 1, #found, 2 do
    if not is_here or is_on_list(name, second, found[i]) then
        reply[#reply + 1] = found[i + 1]
        reply[#reply + 1] = found[i]
        if is_here and #reply == 2 + 2 * limit then
            reply[2] = i + 1 < #found and found[i + 1] or reply[2]
            break
        end
    end
end
return reply
