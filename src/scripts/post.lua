-- post.lua - a user creates a post.
--
-- ARGV: shards, request id, author ('=ID' or '@FOLDED LOGIN'), then members of the post, name and
-- value in turn, as stored in its hash (see POST_MEMBERS). A reference that is an id instead of
-- JSON refers to a post of this shard, whose author is looked up here. `parent` is the post of
-- another shard that this one is a comment on; within this shard that is the post of `reply_to`.
-- Returns {repeated, post id}.
local meta, refusal = open_shard('profile_max', 'profile_rest', 'archive', 'timeline', 'home_size', 'push_at_once',
    'merge_above')
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
        local found, missing = find_post(id, author.id)
        if not found then
            return missing
        end
        local named = named_author(found)
        if reference == 'repost_of' and not named then
            return refuse('NOTPUBLIC', 'post ' .. id .. ' is not public: nobody can repost it')
        end
        post[reference] = '{"post":"' .. id .. '"'
            .. (named and ',"user":"' .. named[1] .. '","login":' .. quote(named[2]) or '') .. '}'
        if reference == 'reply_to' then
            post.parent = id
        end
    end
end
if post.parent then
    check_comment(post.parent)
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
check_spread(author.id)
-- Posts beyond profile_max are removed when the archive has stored them. Without an archive they
-- stay, unless the settings say to drop them.
local has_archive = meta.archive == 1
local dropped = posts_to_drop(meta, author.id)
local fields = {}
for name, value in pairs(post) do
    fields[#fields + 1] = name
    fields[#fields + 1] = value
end

take_id(clock)
call('HSET', key, unpack(fields))
call('ZADD', profile, post.id, post.id)
call('HINCRBY', prefix .. 'user:' .. author.id, 'posts', 1)
if has_archive and call('ZCARD', profile) > meta.profile_max then
    enqueue('archive', clock.id, 'user', author.id)
end
drop_posts(dropped, author.id, clock.id)
if post.parent then
    change_comment('comment', clock.id, post.parent, post.id)
end
emit(meta, clock, 'post', '"post":' .. post_json(post, author))
home_spread(meta, post, author.followers)
return answer('post', post.id)
