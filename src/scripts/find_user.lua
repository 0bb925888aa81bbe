-- find_user.lua - finds a user by id or login. Writes nothing.
--
-- ARGV: shards, request id (not used), '=ID' or '@FOLDED LOGIN'. Returns {id, login, name}.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local user
user, refusal = read_user(ARGV[3])
if not user then
    return refusal
end
return {user.id, user.login, user.name or ''}
