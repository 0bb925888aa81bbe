-- fan_out.lua - pushes a post to a batch of its author's followers, or takes it back from them.
--
-- Runs in the shard of the author; processes the followers of this shard and returns the others.
-- ARGV: shards, request id (not used), 'push' or 'take_back', post, author, before ('+inf' or a
-- score), number of followers. Returns {position of the next batch ('' for none), followers
-- elsewhere, each with its follow}.
local meta, refusal = open_shard('timeline', 'home_size')
if not meta then
    return refusal
end
local id, author, before, limit = ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])
local post = {}
if ARGV[3] == 'push' then
    post = read_post(id)
    if not post or meta.timeline == PULL then
        return {''}
    end
end
local page = follower_range(author)(before == '+inf' and before or '(' .. before, limit)
local elsewhere
if ARGV[3] == 'push' then
    elsewhere = push_to(meta, post, page)
else
    elsewhere = take_back_from(id, author, page)
end
return {#page == 2 * limit and page[#page] or '', unpack(elsewhere)}
