-- read_users.lua - users as others see them. Writes nothing.
--
-- ARGV: shards, request id (not used), then users, each '=ID' or '@FOLDED LOGIN', or where the reader
-- has it from a cache '+ID'.
-- Returns for each a row (see user_row; of what is cached bare_user_row), or an error: there is no
-- such user.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local rows = {}
for i = 3, #ARGV do
    local row = string.sub(ARGV[i], 1, 1) == '+' and bare_user_row(string.sub(ARGV[i], 2))
    if not row then
        local user, missing = read_user(ARGV[i])
        row = user and user_row(user) or missing
    end
    rows[#rows + 1] = row
end
return rows
