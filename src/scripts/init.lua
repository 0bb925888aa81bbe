-- init.lua - makes a shard's meta unless it exists, and returns it as it is then.
--
-- ARGV: shards, request id (not used), database id; both are taken for a new database only.
-- Returns {created, schema, database, shards}.
local function read_meta()
    return call('HMGET', KEYS[1], 'schema', 'database', 'shards')
end

local meta = read_meta()
local created = meta[1] and 0 or 1

if created == 1 then
    call('HSET', KEYS[1], 'schema', SCHEMA, 'database', ARGV[3], 'shards', ARGV[1])
    meta = read_meta()
end
return {created, meta[1], meta[2] or '', meta[3] or ''}
