-- log_check.lua - checks whether an event could be written now. Changes nothing.
--
-- ARGV: shards, request id (not used). Returns 1, or the error with which a write would fail:
-- because the database is invalid, the log has another type, or Redis refuses writes. Redis checks
-- disk, memory and permission before it executes a command; the one used here sets a key only if it
-- exists, which it never does.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
last_event()
call('SET', prefix .. 'absent', '', 'XX')
return 1
