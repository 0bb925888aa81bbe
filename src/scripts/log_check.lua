-- log_check.lua - would an event be taken now? Changes nothing.
--
-- ARGV: shards, request id (not used). Returns 1, or the error that a write would end with: that of
-- a database that is not one, of a log of another type, or of Redis, which looks whether its disk
-- and its memory are full and whether it may be written to before it does what it is asked. That
-- is to set a key which must be there, and never is.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
last_event()
call('SET', prefix .. 'absent', '', 'XX')
return 1
