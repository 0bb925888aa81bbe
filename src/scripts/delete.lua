-- delete.lua - an author takes a post back.
--
-- Runs in the shard of the post, which is its author's. ARGV: shards, request id, who asks ('=ID',
-- '@FOLDED LOGIN', or '-' for somebody of another shard), post id.
-- Returns {repeated, event id}.
local meta, refusal = open_shard('timeline', 'push_at_once')
if not meta then
    return refusal
end
local before = answered('delete')
if before then
    return before
end
local author = {}
if ARGV[3] ~= '-' then
    author, refusal = read_user(ARGV[3])
    if not author then
        return refusal
    end
end

local id = ARGV[4]
local post
post, refusal = read_post(id)
if not post then
    return refusal
end
if post.user ~= author.id then
    return refuse('NOTOWNER', 'post ' .. id .. ' is not yours')
end
if post.parent then
    check_comment(post.parent)
end
local profile = prefix .. 'profile:' .. author.id
call('ZSCORE', profile, id)
check_spread(author.id)
local clock
clock, refusal = read_clock()
if not clock then
    return refusal
end

take_id(clock)
call('DEL', prefix .. 'post:' .. id, prefix .. 'likes:' .. id, prefix .. 'comments:' .. id)
local removed = call('ZREM', profile, id)
call('HINCRBY', prefix .. 'user:' .. author.id, 'posts', 0 - removed) -- -0 would print as such
if post.parent then
    change_comment('uncomment', clock.id, post.parent, id)
end
emit(meta, clock, 'delete', '"post":' .. post_json(post, author))
home_take_back(meta, post, clock.id)
return answer('delete', clock.id)
