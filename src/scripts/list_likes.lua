-- list_likes.lua - lists the likes of a user's posts, some at a time. Writes nothing.
--
-- ARGV: shards, request id (not used), user id, then where to continue: '0', '0' at first, later
-- the post and the like that were returned, until the post is '0' again. Returns {post, like, then
-- for each like the user who likes, the post, the like's id}. Examines 100 posts.
local LOOKS, LIKES = 100, 500

local meta, refusal = open_shard()
if not meta then
    return refusal
end
local from, behind = ARGV[4], ARGV[5]
local reply = {'0', '0'}
local posts = call('ZRANGEBYSCORE', prefix .. 'profile:' .. ARGV[3], from, '+inf', 'LIMIT', 0, LOOKS + 1)
for i, post in ipairs(posts) do
    if i > LOOKS then
        reply[1], reply[2] = post, '0'
        break
    end
    local left = LIKES - (#reply - 2) / 3
    local found = call('ZRANGEBYSCORE', prefix .. 'likes:' .. post, '(' .. (post == from and behind or '0'), '+inf',
        'WITHSCORES', 'LIMIT', 0, left)
    for at = 1, #found, 2 do
        reply[#reply + 1] = found[at]
        reply[#reply + 1] = post
        reply[#reply + 1] = found[at + 1]
    end
    if #found == 2 * left then
        reply[1], reply[2] = post, found[#found]
        break
    end
end
return reply
