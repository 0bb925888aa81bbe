-- init.lua - creates a shard's meta and the consumer group of its workers, unless they exist.
-- Returns the meta.
--
-- ARGV: shards, request id (not used), database id; shards and database id are for a new database
-- only; then 'sharded' from a caller that knows the Redis to be a cluster: from now on the shard
-- publishes accordingly. Returns {created, schema, database, shards, pubsub, clock_until or '0',
-- forms}.
local function read_meta()
    return call('HMGET', KEYS[1], 'schema', 'database', 'shards', 'pubsub', 'clock_until', 'forms')
end

local meta = read_meta()
local created = meta[1] and 0 or 1
local pubsub = ARGV[4] == SHARDED and SHARDED or meta[4]

if created == 1 or pubsub ~= meta[4] then
    local refusal = refuse_if_moving()
    if not refusal and created == 1 then
        refusal = make_task_group()
    end
    if refusal then
        return refusal
    end
end
if created == 1 then
    call('HSET', KEYS[1], 'schema', SCHEMA, 'database', ARGV[3], 'shards', ARGV[1])
end
if pubsub ~= meta[4] then
    call('HSET', KEYS[1], 'pubsub', pubsub)
end
meta = created == 1 and read_meta() or meta
return {created, meta[1], meta[2] or '', meta[3] or '', pubsub or '', meta[5] or '0', meta[6] or ''}
