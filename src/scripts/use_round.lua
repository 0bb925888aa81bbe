-- use_round.lua - returns the existing gateways, and the secret from which they derive the names of
-- accounts.
--
-- Runs in shard 0. ARGV: shards, request id (not used), id of the gateway, a secret to use if there
-- is none yet (hexadecimal), and 'leaves' if the gateway does. A gateway that was silent for
-- AWAY_MS is removed. Returns {the secret, ids of the gateways}.
local AWAY_MS, KEEP_MS = 30000, 172800000
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local gateways, secret_key = prefix .. 'use_gateways', prefix .. 'use_secret'
local secret, known = call('GET', secret_key), call('HGETALL', gateways)
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)

secret = secret or ARGV[4]
call('SET', secret_key, secret, 'PX', KEEP_MS)
local there = {secret}
for i = 1, #known, 2 do
    local id, seen = known[i], tonumber(known[i + 1])
    if id ~= ARGV[3] and seen and seen + AWAY_MS > now and seen <= now + AWAY_MS then
        there[#there + 1] = id
    else
        call('HDEL', gateways, id)
    end
end
if ARGV[5] ~= 'leaves' then
    call('HSET', gateways, ARGV[3], print_id(now))
    there[#there + 1] = ARGV[3]
end
call('PEXPIRE', gateways, KEEP_MS)
return there
