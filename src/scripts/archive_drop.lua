-- archive_drop.lua - the archive has these posts: Redis forgets them.
--
-- ARGV: shards, request id (not used), user id, then ids of posts. The user's counter stays: it
-- counts the archived posts, too. So do the posts' likes and comments. What has been deleted
-- meanwhile is not here any more, and nothing is done about it.
-- Returns how many were forgotten.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
call('DEL', prefix .. 'archive_away')
local profile = prefix .. 'profile:' .. ARGV[3]
local count = 0
for i = 4, #ARGV do
    if call('ZREM', profile, ARGV[i]) == 1 then
        call('DEL', prefix .. 'post:' .. ARGV[i])
        count = count + 1
    end
end
return count
