-- post.lua - a user posts.
--
-- ARGV: shards, request id, author ('=ID' or '@FOLDED LOGIN'), then members of the post, name and
-- value in turn, as they are kept in its hash (see POST_MEMBERS). A reference that is no JSON but
-- an id is to a post of this shard, whose author is looked up here.
-- Returns {repeated, post id}.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local before = answered('post')
if before then
    return before
end
local author
author, refusal = read_user(ARGV[3])
if not author then
    return refusal
end

local post = {}
for i = 4, #ARGV, 2 do
    post[ARGV[i]] = ARGV[i + 1]
end
for _, reference in ipairs({'reply_to', 'repost_of', 'quote_of'}) do
    local id = post[reference]
    if id and string.sub(id, 1, 1) ~= '{' then
        local found = call('HMGET', prefix .. 'post:' .. id, 'user', 'login')
        if not found[1] then
            return refuse('NOPOST', 'there is no post ' .. id)
        end
        post[reference] = '{"post":"' .. id .. '","user":"' .. found[1] .. '","login":'
            .. quote(found[2]) .. '}'
    end
end

local clock
clock, refusal = read_clock()
if not clock then
    return refusal
end
post.id = clock.id
post.user = author.id
post.login = author.login
post.created_at = rfc3339(clock.ms)
post.audience = post.audience or 'public'

local key = prefix .. 'post:' .. post.id
local profile = prefix .. 'profile:' .. author.id
if call('EXISTS', key) == 1 or call('ZSCORE', profile, post.id) then
    return refuse('DAMAGED', 'post ' .. post.id .. ' exists, but the clock says it is new')
end
local fields = {}
for name, value in pairs(post) do
    fields[#fields + 1] = name
    fields[#fields + 1] = value
end

take_id(clock)
call('HSET', key, unpack(fields))
call('ZADD', profile, post.id, post.id)
call('HINCRBY', prefix .. 'user:' .. author.id, 'posts', 1)
emit(meta, clock, 'post', '"post":' .. post_json(post, author))
return answer('post', post.id)
