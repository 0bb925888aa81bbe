-- archive_erased.lua - the archive has erased a post: the mark that it is to is not needed for long.
--
-- It stays a day, for whoever has read the post there before. ARGV: shards, request id (not used),
-- post id. Returns 1.
local meta, refusal = open_shard()
if not meta then
    return refusal
end
call('DEL', prefix .. 'archive_away')
local now = (time_ms() - EPOCH_MS) * 4096
local erased = prefix .. 'erased'
call('ZADD', erased, 'XX', print_id(now), ARGV[3])
forget_until(erased, print_id(now - 86400000 * 4096))
return 1
