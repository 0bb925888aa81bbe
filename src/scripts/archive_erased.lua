-- archive_erased.lua - the archive has erased a post, so the mark of its deletion can expire.
--
-- The mark is kept for one day, for readers that have read the post from the archive before. ARGV:
-- shards, request id (not used), post id. Returns 1.
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
