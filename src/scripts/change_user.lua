-- change_user.lua - changes a user's name, login or profile.
--
-- ARGV: shards, request id, user ('=ID' or '@FOLDED LOGIN'), then names and values in turn: `name`,
-- `login` followed by the folded login, and `bio`, `avatar`, `fields`, of which an empty value
-- removes the member. A login is never given to another user: whoever has had it keeps it, and is
-- found by it. The event contains what has changed; if nothing has, there is none. Returns
-- {repeated, user id}.
local LOGINS = 8 -- maximum number of logins of a user

local meta, refusal = open_shard()
if not meta then
    return refusal
end
local before = answered('change_user')
if before then
    return before
end
local user
user, refusal = read_user(ARGV[3])
if not user then
    return refusal
end

local key, logins = prefix .. 'user:' .. user.id, prefix .. 'logins'
local set, gone, changed, folded = {}, {}, {}, nil
local i = 4
while ARGV[i] do
    local name, value = ARGV[i], ARGV[i + 1]
    i = i + 2
    if name == 'login' then
        folded = ARGV[i]
        i = i + 1
    end
    if value ~= (user[name] or '') then
        changed[#changed + 1] = '"' .. name .. '"'
        user[name] = value
    end
    if value == '' then
        gone[#gone + 1] = name
    else
        set[#set + 1] = name
        set[#set + 1] = value
    end
end
local is_new = false
if folded then
    local owner = call('HGET', logins, folded)
    if owner and owner ~= user.id then
        return refuse('LOGINTAKEN', 'the login @' .. folded .. ' is taken by user ' .. owner)
    end
    is_new = not owner
    if is_new and tonumber(call('HGET', key, 'logins') or '1') >= LOGINS then
        return refuse('LIMIT', 'user ' .. user.id .. ' has had ' .. LOGINS .. ' logins')
    end
end
local clock
clock, refusal = read_clock()
if not clock then
    return refusal
end

take_id(clock)
if is_new then
    call('HSET', logins, folded, user.id)
    call('HSETNX', key, 'logins', 1)
    call('HINCRBY', key, 'logins', 1)
end
if #gone > 0 then
    call('HDEL', key, unpack(gone))
end
set[#set + 1] = 'version'
set[#set + 1] = clock.id
call('HSET', key, unpack(set))
if #changed > 0 then
    emit(meta, clock, 'user', '"user":' .. user_json(user) .. ',"change":"updated","members":['
        .. table.concat(changed, ',') .. ']')
end
return answer('change_user', user.id)
