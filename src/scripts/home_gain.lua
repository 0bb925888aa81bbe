-- home_gain.lua - the shard of an author knows now that the reader follows, or has unmuted, the
-- author. What was posted before was not pushed and must be read in.
--
-- ARGV: shards, request id (not used), reader's id, author's id. Returns 1.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
check_home(ARGV[3])
local clock
clock, refusal = read_clock()
if not clock then
    return refusal
end
if call('EXISTS', prefix .. 'active:' .. ARGV[3]) == 1 then
    take_id(clock)
    home_gain(ARGV[3], ARGV[4], clock.id)
end
return 1
