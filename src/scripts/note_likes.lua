-- note_likes.lua - puts likes of before there was a list of what a user likes onto these lists.
--
-- Runs in the shard of the users. ARGV: shards, request id (not used), then user, post and the like's id
-- in turn. What is on the list is left as it is. Returns how many were not.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
for i = 3, #ARGV, 3 do
    call('ZCARD', prefix .. 'liked:' .. ARGV[i])
end
local count = 0
for i = 3, #ARGV, 3 do
    if call('EXISTS', prefix .. 'user:' .. ARGV[i]) == 1 then
        count = count + call('ZADD', prefix .. 'liked:' .. ARGV[i], 'NX', ARGV[i + 2], ARGV[i + 1])
    end
end
return count
