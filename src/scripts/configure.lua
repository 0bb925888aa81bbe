-- configure.lua - changes one setting of the shard.
--
-- ARGV: shards, request id (not used), field, value; without a value the setting is reset to its
-- default. Returns {}. It also works if a setting is damaged.
local refusal = check_shard(unpack(call('HMGET', KEYS[1], 'schema', 'shards', 'pubsub', 'forms', 'moving')))
if refusal then
    return refusal
end
local field, value = ARGV[3], ARGV[4]
if not SETTINGS[field] or not read_setting(field, value) then
    return refuse('DAMAGED', 'there is no such setting, or it cannot be set to this')
end
call('XLEN', prefix .. 'log')

if value then
    call('HSET', KEYS[1], field, value)
else
    call('HDEL', KEYS[1], field)
end
if field == 'timeline' then
    call('HINCRBY', KEYS[1], 'epoch', 1)
end
local meta = open_shard()
if meta then
    trim_log(meta, ids_ms(time_ms()))
end
return {}
