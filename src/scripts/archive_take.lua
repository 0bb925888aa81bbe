-- archive_take.lua - returns posts of a user to be moved to the archive: those beyond
-- `profile_max`, and those older than `archive_age_ms`.
--
-- ARGV: shards, request id (not used), user id, the maximum number, the archive's identity. First
-- records that the archive may have the posts: if one is deleted from now on, it is erased there,
-- too. The first archive that takes posts becomes the archive of the shard; others are refused.
-- Returns {{post id, its hash as JSON}, ...}, oldest first; empty if there are no more to move.
local meta, refusal = open_shard('profile_max', 'archive', 'archive_age_ms')
if not meta then
    return refusal
end
local user, archive = ARGV[3], ARGV[5]
local known = call('HGET', KEYS[1], 'archive_id')
if known and known ~= archive then
    return refuse('ARCHIVE', 'posts of this database were archived to ' .. known .. ', not to ' .. archive)
end
local profile = prefix .. 'profile:' .. user
local surplus = call('ZCARD', profile) - meta.profile_max
local oldest = oldest_to_stay(meta)
if oldest then
    surplus = math.max(surplus, call('ZCOUNT', profile, '-inf', '(' .. print_id(oldest)))
end
if meta.archive ~= 1 or surplus <= 0 then
    return {}
end
local taken = {}
for i, id in ipairs(call('ZRANGE', profile, 0, math.min(surplus, tonumber(ARGV[4])) - 1)) do
    local post, missing = read_post(id)
    if not post then
        return missing
    end
    taken[i] = {id, cjson.encode(post)}
end
if not known then
    call('HSET', KEYS[1], 'archive_id', archive)
end
if tonumber(taken[#taken][1]) > archived_until(user) then
    call('SET', prefix .. 'archived:' .. user, taken[#taken][1])
end
return taken
