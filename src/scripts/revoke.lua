-- revoke.lua - revokes tokens: they are refused from now on, and their streams end.
--
-- All revocations are in shard 0: `revocations` has the JSON of each by its id, `revocations_until`
-- the ids by the Unix ms until which they matter. The event informs all gateways, in the order of
-- the log; a gateway that was away for longer than the log reaches reads the list. ARGV: shards,
-- request id, sub, jti, kid, who revokes, Unix ms before which the token was issued, Unix ms until
-- when the revocation matters; each may be empty. Without the last it matters as long as a token
-- may live. Returns {repeated, id}.
local MOST = 100000 -- each takes memory in all gateways; also in src/database/revocations.h
local FORGET_MOST = 100

local meta, refusal = open_shard('token_life_ms')
if not meta then
    return refusal
end
local before = answered('revoke')
if before then
    return before
end
local list, by_end = prefix .. 'revocations', prefix .. 'revocations_until'
local now_ms = time_ms()
call('ZCARD', list)
if call('ZCOUNT', by_end, '(' .. print_id(now_ms), '+inf') >= MOST then
    return refuse('TOOMANY', 'there are ' .. MOST .. ' revocations; take some back, or wait for their end')
end
local clock
clock, refusal = read_clock()
if not clock then
    return refusal
end

local issued_ms = tonumber(ARGV[7])
local until_ms = tonumber(ARGV[8]) or math.max(now_ms, issued_ms or 0) + meta.token_life_ms
local members = {}
for i, name in ipairs({'sub', 'jti', 'kid', 'by'}) do
    if ARGV[i + 2] ~= '' then
        members[#members + 1] = '"' .. name .. '":' .. quote(ARGV[i + 2])
    end
end
if issued_ms then
    members[#members + 1] = '"before":"' .. rfc3339(issued_ms - EPOCH_MS) .. '"'
end
members[#members + 1] = '"until":"' .. rfc3339(until_ms - EPOCH_MS) .. '"'
local body = table.concat(members, ',')

take_id(clock)
for _, id in ipairs(call('ZRANGEBYSCORE', by_end, '-inf', print_id(now_ms), 'LIMIT', 0, FORGET_MOST)) do
    call('ZREMRANGEBYSCORE', list, id, id)
    call('ZREM', by_end, id)
end
call('ZADD', list, clock.id, '{"id":"' .. clock.id .. '","at":"' .. rfc3339(clock.ms) .. '",' .. body .. '}')
call('ZADD', by_end, print_id(until_ms), clock.id)
emit(meta, clock, 'revoke', body)
return answer('revoke', clock.id)
