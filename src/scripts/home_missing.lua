-- home_missing.lua - what must be read into a reader's home timeline. Writes nothing.
--
-- ARGV: shards, request id (not used), reader's id. Returns {} for nothing, or {version, 1 if
-- everything must be read again, the current floor ('' for none), size of a timeline, id above
-- which to read, the authors to read, the authors that need not be read}.
local meta, refusal = open_shard('timeline', 'home_size')
if not meta then
    return refusal
end
local reader = ARGV[3]
local state = read_home_state(meta, reader)
if not state then
    return {}
end
local is_all = not state.floor or is_thin(meta, reader, state)
local authors = call('SMEMBERS', prefix .. 'behind:' .. reader)
if is_all then
    authors = home_authors(meta, reader, nil)
elseif #authors == 0 then
    return {}
end

-- Authors who are merged by reads are never read in.
local wanted, merged = {}, {}
for _, author in ipairs(keep_wanted(reader, authors)) do
    local is_left = meta.timeline == HYBRID and author ~= reader
        and call('ZSCORE', prefix .. 'merged', author)
    local list = is_left and merged or wanted
    list[#list + 1] = author
end
return {state.version, is_all and 1 or 0, state.floor or '', print_id(meta.home_size),
    is_all and '0' or state.floor, wanted, merged}
