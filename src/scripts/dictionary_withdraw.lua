-- dictionary_withdraw.lua - withdraws a dictionary: it is no longer used or given to clients.
--
-- ARGV: shards, request id (not used), its id. Its entry in the list stays, so that the id is never
-- used again. Returns 1, or 0 if it had been withdrawn before.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local list, id = prefix .. 'dictionaries', ARGV[3]
local entry = call('HGET', list, id)
if not entry then
    return refuse('NODICTIONARY', 'there is no dictionary ' .. id)
end
local said = string.match(entry, '^(%d+ %d+ %d+) 0$')
if said then
    call('HSET', list, id, said .. ' ' .. print_id(time_ms()))
    call('DEL', prefix .. 'dictionary:' .. id)
end
return said and 1 or 0
