-- read_users.lua - reads users. Writes nothing.
--
-- ARGV: shards, request id (not used), then users, each '=ID' or '@FOLDED LOGIN', or '+ID:VERSION'
-- if the reader has it in a cache. Returns for each a row (see user_row; for cached ones
-- bare_user_row), or an error if there is no such user.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
local rows = {}
for i = 3, #ARGV do
    local id, version = string.match(ARGV[i], '^%+(%d+):(%d+)$')
    local row = id and bare_user_row(id)
    if not row or row[6] ~= version then
        local user, missing = read_user(id and '=' .. id or ARGV[i])
        row = user and user_row(user) or missing
    end
    rows[#rows + 1] = row
end
return rows
