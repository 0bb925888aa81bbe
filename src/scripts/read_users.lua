-- read_users.lua - users as others see them. Writes nothing.
--
-- ARGV: shards, request id (not used), then users, each '=ID' or '@FOLDED LOGIN'.
-- Returns for each a row (see user_row), or an error: there is no such user.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local rows = {}
for i = 3, #ARGV do
    local user, missing = read_user(ARGV[i])
    rows[#rows + 1] = user and user_row(user) or missing
end
return rows
