-- home_apply.lua - pushes a post of another shard to readers of this one, or takes it back from
-- them.
--
-- ARGV: shards, request id (not used), 'push' or 'take_back', post, author, id of the operation,
-- then the readers, each with the follow by which the author's shard knows it. Returns 1.
local meta, refusal = open_shard('home_size')
if not meta then
    return refusal
end
local id, author = ARGV[4], ARGV[5]
call('ZCARD', prefix .. 'gone')

if ARGV[3] == 'take_back' then
    note_gone(id, tonumber(ARGV[6]))
    for i = 7, #ARGV, 2 do
        home_drop_safely(ARGV[i], id, author)
    end
elseif not is_gone(id) then
    for i = 7, #ARGV, 2 do
        if call('EXISTS', prefix .. 'active:' .. ARGV[i]) == 1 and is_wanted(ARGV[i], author)
            and follows_since(ARGV[i], author, ARGV[i + 1]) then
            home_push_safely(meta, ARGV[i], id, author)
        end
    end
end
return 1
