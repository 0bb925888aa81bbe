-- like.lua - a user likes a post, or no longer likes it.
--
-- Runs in the shard of the post. A user of this shard is looked up; for one of another shard the
-- caller must have done so. ARGV: shards, request id, 'like' or 'unlike', user ('=ID' or '@FOLDED
-- LOGIN'), post id. Returns {repeated, id of the change, or 0 if nothing had to be changed}. The id
-- is the like's position in the list of the post's likes, and in the list of what a user of this
-- shard likes; for a user of another shard note_like.lua has changed that list before.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local operation = ARGV[3]
local before = answered(operation)
if before then
    return before
end
local user = {id = string.sub(ARGV[4], 2)}
if string.sub(ARGV[4], 1, 1) == '@' or shard_of(user.id) == shard then
    user, refusal = read_user(ARGV[4])
    if not user then
        return refusal
    end
end
local post
post, refusal = read_post(ARGV[5])
if not post then
    return refusal
end

local likes = prefix .. 'likes:' .. post.id
local is_liked = call('ZSCORE', likes, user.id) and true or false
if not is_liked and not may_see(user.id, post) then
    return refuse('NOPOST', 'there is no post ' .. post.id)
end
if is_liked == (operation == 'like') then
    return answer(operation, '0')
end
local is_own = shard_of(user.id) == shard
if is_own then
    call('ZCARD', prefix .. 'liked:' .. user.id)
end
local clock
clock, refusal = read_clock()
if not clock then
    return refusal
end

take_id(clock)
if operation == 'like' then
    call('ZADD', likes, clock.id, user.id)
else
    call('ZREM', likes, user.id)
end
if is_own then
    change_liked(operation, user.id, post.id, clock.id)
end
return answer(operation, clock.id)
