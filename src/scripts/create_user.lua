-- create_user.lua - creates a user with a login that nobody else has.
--
-- ARGV: shards, request id, folded login, login, name. Returns {repeated, user id}, which is also
-- the id of the event.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local before = answered('create_user')
if before then
    return before
end

local folded, login, name = ARGV[3], ARGV[4], ARGV[5]
local logins = prefix .. 'logins'
local owner = call('HGET', logins, folded)
if owner then
    return refuse('LOGINTAKEN', 'the login @' .. folded .. ' is taken by user ' .. owner)
end

local clock
clock, refusal = read_clock()
if not clock then
    return refusal
end
local key = prefix .. 'user:' .. clock.id
if call('EXISTS', key) == 1 then
    return refuse('DAMAGED', 'user ' .. clock.id .. ' exists, but the clock says it is new')
end

take_id(clock)
call('HSET', logins, folded, clock.id)
call('HSET', key, 'id', clock.id, 'login', login, 'name', name, 'signup', rfc3339(clock.ms),
    'followers', 0, 'following', 0, 'posts', 0)
emit(meta, clock, 'user', '"user":' .. user_json({id = clock.id, login = login, name = name}) .. ',"change":"created"')
return answer('create_user', clock.id)
