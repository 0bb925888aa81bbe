-- init.lua - makes a shard's meta, and the group of its workers, unless it exists; returns the meta
-- as it is then.
--
-- ARGV: shards, request id (not used), database id; both are taken for a new database only.
-- Returns {created, schema, database, shards}.
local function read_meta()
    return call('HMGET', KEYS[1], 'schema', 'database', 'shards')
end

local meta = read_meta()
local created = meta[1] and 0 or 1

if created == 1 then
    local refusal = make_task_group()
    if refusal then
        return refusal
    end
    call('HSET', KEYS[1], 'schema', SCHEMA, 'database', ARGV[3], 'shards', ARGV[1])
    meta = read_meta()
end
return {created, meta[1], meta[2] or '', meta[3] or ''}
