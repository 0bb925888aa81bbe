-- dictionary_add.lua - adds a dictionary for compressed streams.
--
-- ARGV: shards, request id (not used), its id, the number of posts from which it was made, its
-- bytes. All are in shard 0: the hash `dictionaries` has for each '<Unix ms when> <bytes> <posts>
-- <Unix ms of its withdrawal, or 0>', and the bytes are in `dictionary:ID`. An id is never used
-- again, because clients may keep the bytes for ever. Returns {}.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local ACTIVE_MAX = 8 -- each takes memory in all gateways; also in src/database/dictionaries.h

local list = prefix .. 'dictionaries'
local id, posts, bytes = ARGV[3], ARGV[4], ARGV[5]
local key = prefix .. 'dictionary:' .. id
local entries = call('HGETALL', list)
local now, kept, active = time_ms(), call('GET', key), 0
for i = 1, #entries, 2 do
    if entries[i] == id then
        if kept == bytes then
            return {} -- a repetition, because the first answer was lost
        end
        return refuse('TAKEN', 'there is, or was, a dictionary ' .. id)
    end
    if string.match(entries[i + 1], ' 0$') then
        active = active + 1
    end
end
if active >= ACTIVE_MAX then
    return refuse('TOOMANY', 'there are ' .. active .. ' dictionaries; withdraw one first')
end
call('SET', key, bytes)
call('HSET', list, id, print_id(now) .. ' ' .. #bytes .. ' ' .. posts .. ' 0')
return {}
