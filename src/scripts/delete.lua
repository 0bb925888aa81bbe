-- delete.lua - an author deletes a post.
--
-- Runs in the shard of the post, which is that of its author. ARGV: shards, request id, the user
-- ('=ID', '@FOLDED LOGIN', or '-' for a login of another shard), post id, and if the caller has
-- found it in the archive, the post as stored there. Returns {repeated, event id}. Users who may
-- not see the post are told that there is none.
local meta, refusal = open_shard('timeline', 'push_at_once')
if not meta then
    return refusal
end
local archived = table.remove(ARGV, 5) -- the digest of the request must be the same with and
                                       -- without it
local before = answered('delete')
if before then
    return before
end
local author = {id = string.match(ARGV[3], '^=(.*)') or ''}
if string.sub(ARGV[3], 1, 1) == '@' or (author.id ~= '' and shard_of(author.id) == shard) then
    author, refusal = read_user(ARGV[3])
    if not author then
        return refusal
    end
end

local id = ARGV[4]
local post
post, refusal = read_post(id)
local is_archived = not post and archived ~= nil
if is_archived then
    post, refusal = archived_post(archived, id)
end
if not post then
    return refusal
end
if not may_see(author.id, post) then
    return refuse('NOPOST', 'there is no post ' .. id)
end
if post.user ~= author.id then
    return refuse('NOTOWNER', 'post ' .. id .. ' is not yours')
end
if post.parent then
    check_comment(post.parent)
end
local profile = prefix .. 'profile:' .. author.id
call('ZSCORE', profile, id)
local may_be_archived = archived_until(author.id) >= tonumber(id)
if may_be_archived then
    call('ZSCORE', prefix .. 'erased', id)
    check_tasks()
end
check_spread(author.id)
local clock
clock, refusal = read_clock()
if not clock then
    return refusal
end

take_id(clock)
call('UNLINK', prefix .. 'post:' .. id, prefix .. 'likes:' .. id, prefix .. 'comments:' .. id)
local removed = call('ZREM', profile, id)
if is_archived then
    removed = 1
end
call('HINCRBY', prefix .. 'user:' .. author.id, 'posts', 0 - removed) -- -0 would be printed as such
if may_be_archived then
    call('ZADD', prefix .. 'erased', '+inf', id)
    enqueue('unarchive', clock.id, 'post', id)
end
if post.parent then
    change_comment('uncomment', clock.id, post.parent, id)
end
emit(meta, clock, 'delete', '"post":' .. post_json(post, author))
home_take_back(meta, post, clock.id)
return answer('delete', clock.id)
