-- note_likes.lua - adds likes to the lists of what users like, for likes made before there were
-- such lists.
--
-- Runs in the shard of the users. ARGV: shards, request id (not used), then user, post and the
-- like's id in turn. Existing entries are unchanged. Returns the number of entries added.
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
