-- note_like.lua - a user of this shard likes a post of another shard, or no longer likes it.
--
-- Runs before like.lua in the post's shard. The list of what a user likes may contain a post too
-- many, so readers of the list must ask the post. ARGV: shards, request id, 'like' or 'unlike',
-- user ('=ID' or '@FOLDED LOGIN'), post id. Returns {id, login, name} of the user.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local user
user, refusal = read_user(ARGV[4])
if not user then
    return refusal
end
local liked = prefix .. 'liked:' .. user.id
local is_noted = call('ZSCORE', liked, ARGV[5]) and true or false
if is_noted ~= (ARGV[3] == 'like') then
    local clock
    clock, refusal = read_clock()
    if not clock then
        return refusal
    end
    take_id(clock)
    change_liked(ARGV[3], user.id, ARGV[5], clock.id)
end
return {user.id, user.login, user.name or ''}
