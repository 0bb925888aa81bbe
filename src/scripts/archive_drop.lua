-- archive_drop.lua - deletes posts from Redis that the archive has stored.
--
-- ARGV: shards, request id (not used), user id, then ids of posts. The user's counter of posts is
-- unchanged, because it includes archived posts. The posts' likes and comments are kept, too. Posts
-- that were deleted meanwhile are skipped. Returns the number of posts removed.
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
