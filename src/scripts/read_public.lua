-- read_public.lua - the newest public posts of this shard that a reader may see. Writes nothing.
--
-- They are read from the log, which has every post, newest first. A separate list would lack
-- earlier posts and those created by older programs. ARGV: shards, request id (not used), reader,
-- before ('+inf' or an id), limit. Examines up to LOOKS events. Returns {the id down to which they
-- are complete, '0' at the end of the log, then ids of posts}.
local LOOKS, STEP = 1000, 100
local HEAD = 80 -- bytes of an event that contain its type

local meta, refusal = open_shard()
if not meta then
    return refusal
end
local reader, limit = ARGV[3], tonumber(ARGV[5])
local from = ARGV[4] == '+inf' and '+' or print_id(tonumber(ARGV[4]) - 1)
local reply, looks = {'0'}, 0

local function event_of(fields)
    for i = 1, #fields, 2 do
        if fields[i] == 'e' then
            return fields[i + 1]
        end
    end
    return ''
end

local function is_to_be_seen(id, event)
    if not string.find(string.sub(event, 1, HEAD), '"type":"post"', 1, true) then
        return false
    end
    local post = bare_post(id)
    return post and post.audience == 'public' and may_see(reader, post)
end

while from and looks < LOOKS do
    local found = call('XREVRANGE', prefix .. 'log', from, '-', 'COUNT', STEP)
    from = nil
    for i, entry in ipairs(found) do
        local id = string.match(entry[1], '^%d+')
        looks = looks + 1
        if is_to_be_seen(id, event_of(entry[2])) then
            reply[#reply + 1] = id
        end
        if #reply > limit then
            reply[1] = id
            return reply
        end
        if i == STEP then
            reply[1] = id
            from = print_id(tonumber(id) - 1)
        end
    end
    if not from then
        reply[1] = '0'
    end
end
return reply
