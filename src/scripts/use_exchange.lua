-- use_exchange.lua - reports what subjects and addresses have used at one gateway, and returns what
-- they have used at all gateways.
--
-- ARGV: shards, request id (not used), id of the gateway, comma-separated ids of all gateways, and
-- then eleven for each account: its name; for two rates how much was taken, the limit ('-': none)
-- and its window in ms; events, bytes and replayed events; its streams at this gateway. Returns
-- {day, level, level, events, bytes, replayed, streams at other gateways} for each, as text.
--
-- A rate is the level of a leaky bucket. A gateway reports ten seconds at once, so the bucket has
-- room for what leaks in ten seconds: the level may be below zero by that amount. A level never
-- exceeds the limit plus that amount.
local EXCHANGE_MS, DAY_MS, KEEP_MS, FIELDS = 10000, 86400000, 172800000, 11
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local day = floor(now / DAY_MS)
local there = {}
for id in string.gmatch(ARGV[4], '[^,]+') do
    there[id] = true
end

local function leaked(level, passed_ms, added, limit, window_ms)
    if not limit then
        return 0
    end
    local a_ms = limit / window_ms
    local least, most = -a_ms * EXCHANGE_MS, limit + a_ms * EXCHANGE_MS
    level = math.max(least, (level or least) - passed_ms * a_ms) + added
    return math.min(level, most)
end

-- The streams at each existing gateway, and the sum of those elsewhere; gateways that no longer
-- exist are removed.
local function streams_of(fields, key)
    local elsewhere = 0
    for field, value in pairs(fields) do
        local id = string.match(field, '^at:(.+)$')
        if id and not there[id] then
            call('HDEL', key, field)
        elseif id and id ~= ARGV[3] then
            elsewhere = elsewhere + (tonumber(value) or 0)
        end
    end
    return elsewhere
end

local function exchange(first)
    local key = prefix .. 'use:' .. ARGV[first]
    local flat, fields, told = call('HGETALL', key), {}, {print_id(day)}
    for i = 1, #flat, 2 do
        fields[flat[i]] = flat[i + 1]
    end
    local is_today = tonumber(fields.day) == day
    local passed_ms = math.max(0, now - (tonumber(fields.time) or now))
    local changes = {'day', print_id(day), 'time', print_id(now)}
    for rate = 1, 2 do
        local at = first + 1 + (rate - 1) * 3
        local level = leaked(tonumber(fields['rate' .. rate]), passed_ms, tonumber(ARGV[at]), tonumber(ARGV[at + 1]),
            tonumber(ARGV[at + 2]))
        changes[#changes + 1] = 'rate' .. rate
        changes[#changes + 1] = string.format('%.3f', level)
        told[#told + 1] = string.format('%.3f', math.max(0, level))
    end
    for sum = 1, 3 do
        local name = 'sum' .. sum
        local value = (is_today and tonumber(fields[name]) or 0) + tonumber(ARGV[first + 6 + sum])
        changes[#changes + 1] = name
        changes[#changes + 1] = print_id(value)
        told[#told + 1] = print_id(value)
    end
    local elsewhere = streams_of(fields, key)
    if tonumber(ARGV[first + 10]) > 0 then
        changes[#changes + 1] = 'at:' .. ARGV[3]
        changes[#changes + 1] = ARGV[first + 10]
    else
        call('HDEL', key, 'at:' .. ARGV[3])
    end
    call('HSET', key, unpack(changes))
    call('PEXPIRE', key, KEEP_MS)
    told[#told + 1] = print_id(elsewhere)
    return told
end

local answers = {}
for first = 5, #ARGV - FIELDS + 1, FIELDS do
    answers[#answers + 1] = exchange(first)
end
return answers
