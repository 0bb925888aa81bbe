-- unrevoke.lua - withdraws a revocation: the tokens that it revoked are valid again.
--
-- ARGV: shards, request id, its id. Returns {repeated, event id}.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local before = answered('unrevoke')
if before then
    return before
end
local list, id = prefix .. 'revocations', ARGV[3]
if call('ZCOUNT', list, id, id) == 0 then
    return refuse('NOREVOCATION', 'there is no revocation ' .. id)
end
call('ZCARD', prefix .. 'revocations_until')
local clock
clock, refusal = read_clock()
if not clock then
    return refusal
end

take_id(clock)
call('ZREMRANGEBYSCORE', list, id, id)
call('ZREM', prefix .. 'revocations_until', id)
emit(meta, clock, 'unrevoke', '"revocation":"' .. id .. '"')
return answer('unrevoke', clock.id)
