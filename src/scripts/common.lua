-- common.lua - the functions that all scripts share; it precedes each of them.
--
-- KEYS[1] is the shard's `meta`. It routes the script to the hash slot, and all other keys begin
-- like it. ARGV[1] is the number of shards that the caller knows, ARGV[2] its request id, or empty.
--
-- Redis does not roll back scripts, so a script makes every check before its first write: each key
-- to be written is read first, with a command of the key's type, which raises WRONGTYPE if the key
-- has another type. A refusal is an error reply that begins with a code; the codes are listed in
-- src/call/reply.c.
--
-- The table SETTINGS precedes this file. It is generated from src/database/settings.def: field ->
-- {lowest, highest, default}.
local call = redis.call
local floor = math.floor

local prefix = string.sub(KEYS[1], 1, -5)
local shard = tonumber(string.match(prefix, '{(%d+)}'))

local SCHEMA, UPGRADED = '1', '2'
local FORMS = {homes = true, likes = true} -- of an upgraded database; see src/database/forms.c
local EPOCH_MS = 1767225600000 -- 2026-01-01T00:00:00Z
local ID_MAX = 9007199254740991

local function refuse(code, text)
    return redis.error_reply(code .. ' ' .. text)
end

-- Ids are exact in a double, but tostring() would print only 14 digits.
local function print_id(id)
    return string.format('%.0f', id)
end

local function shard_of(id)
    return floor(tonumber(id) / 64) % 64
end

-- In a Redis Cluster a slot is moved key by key, and a script that runs meanwhile does not find the
-- keys that are at the other node. Therefore scripts access two keys that never exist: while the
-- slot is being moved, the server answers this with an error, both at the source and at the target
-- node. `sluice shards move` also sets the field `moving` of meta, because a replica that is
-- promoted meanwhile does not know that the slot is moving.
local function refuse_if_moving(target)
    if target then
        return refuse('MOVING', 'the shard is being moved to ' .. target .. '; try again')
    end
    if type(redis.pcall('EXISTS', prefix .. 'none', prefix .. 'nothing')) == 'table' then
        return refuse('MOVING', 'the shard is being moved to another node; try again')
    end
    return nil
end

-- The command that publishes, by the field `pubsub` of meta. 'sharded': a database in a cluster.
local SHARDED = 'sharded'
local PUBLISH_COMMANDS = {[false] = 'PUBLISH', [SHARDED] = 'SPUBLISH'}

-- The field `forms` of meta: a comma-separated list of storage formats that older programs cannot
-- read. A database with forms has schema 2, which programs before 0.2 refuse.
local function check_forms(forms)
    for form in string.gmatch(forms, '[^,]+') do
        if not FORMS[form] then
            return refuse('SCHEMA', 'the database has the form ' .. form .. ', which this program does not know')
        end
    end
    return nil
end

-- Why the caller may not work on this shard; nil: it may. The arguments are the fields of meta.
local function check_shard(schema, shards, pubsub, forms, moving)
    if not schema then
        return refuse('NOTINIT', 'this Redis holds no Sluice database yet')
    end
    if schema ~= SCHEMA and schema ~= UPGRADED then
        return refuse('SCHEMA', 'the database has schema ' .. schema .. ', not ' .. SCHEMA .. ' or ' .. UPGRADED)
    end
    local unknown = forms and check_forms(forms)
    if unknown then
        return unknown
    end
    if shards ~= ARGV[1] then
        return refuse('SHARDS', 'the database has ' .. tostring(shards) .. ' shards')
    end
    if not PUBLISH_COMMANDS[pubsub] then
        return refuse('DAMAGED', 'meta has no usable pubsub')
    end
    return pubsub == SHARDED and refuse_if_moving(moving) or nil
end

-- The value of a setting whose field contains `text`, or nil if that is invalid.
local function read_setting(name, text)
    local lowest, highest, fallback = unpack(SETTINGS[name])
    if not text then
        return fallback
    end
    local value = string.find(text, '^%d+$') and tonumber(text)
    return value and value >= lowest and value <= highest and value or nil
end

-- Set by open_shard(): how long a request id is remembered, until when ids are ahead of the
-- machine's clock (see ids_ms), and whether the shard has the form `homes`.
local repeat_for_ms, clock_until_ms, has_home_lists

-- nil: the field does not contain a time.
local function read_clock_until(text)
    if not text then
        return 0
    end
    local until_ms = string.find(text, '^%d+$') and tonumber(text)
    return until_ms and until_ms <= ID_MAX and until_ms or nil
end

-- Returns the settings of the shard by field: those that every write needs, and those named by the
-- arguments (names as in src/database/settings.def). Or nil and a refusal.
local function open_shard(...)
    local names = {'log_count', 'log_age_ms', 'repeat_for_ms', ...}
    local fields = call('HMGET', KEYS[1], 'schema', 'shards', 'pubsub', 'forms', 'clock_until',
        'moving', unpack(names))
    local refusal = check_shard(fields[1], fields[2], fields[3], fields[4], fields[6])
    if refusal then
        return nil, refusal
    end
    clock_until_ms = read_clock_until(fields[5])
    if not clock_until_ms then
        return nil, refuse('DAMAGED', 'meta has no usable clock_until')
    end
    has_home_lists = fields[4] and string.find(',' .. fields[4] .. ',', ',homes,', 1, true) ~= nil
    local meta = {publish_command = PUBLISH_COMMANDS[fields[3]]}
    for i, name in ipairs(names) do
        meta[name] = read_setting(name, fields[i + 6])
        if not meta[name] then
            return nil, refuse('DAMAGED', 'meta has no usable ' .. name)
        end
    end
    repeat_for_ms = meta.repeat_for_ms
    return meta
end

-- Request ids: the answer to a write is stored under its request id, together with a digest of the
-- request, so that a repeated request gets the same answer, and the reuse of an id for another
-- request is detected.
local function request_key()
    return prefix .. 'done:' .. ARGV[2]
end

local function request_digest(operation)
    return redis.sha1hex(operation .. '\0' .. table.concat(ARGV, '\0', 3))
end

-- The answer to return at once: the stored answer, or a refusal; nil: continue. A stored answer is
-- written again, so that a caller that then waits for replicas (WAIT) waits for everything before
-- it.
local function answered(operation)
    local kept = ARGV[2] ~= '' and call('GET', request_key())
    if not kept then
        return nil
    end
    local digest, results = string.match(kept, '^(%x+) (.+)$')
    if digest ~= request_digest(operation) then
        return refuse('REUSED', 'this request id was used for another request')
    end
    call('PEXPIRE', request_key(), repeat_for_ms)
    local reply = {1}
    for result in string.gmatch(results, '[^\n]+') do
        reply[#reply + 1] = string.find(result, '^%d') and result or redis.error_reply(result)
    end
    return reply
end

-- The number of stored answers, for monitoring memory: `done_counts` has the number added in each
-- five minutes. It is not part of the write, and must not prevent one.
local KEPT_SLOT_MS = 300000

local function kept_slot()
    return floor(call('TIME')[1] * 1000 / KEPT_SLOT_MS)
end

local function count_kept()
    local key, slot = prefix .. 'done_counts', kept_slot()
    if redis.pcall('HINCRBY', key, slot, 1) ~= 1 then
        return
    end
    for _, old in ipairs(call('HKEYS', key)) do -- the first of a slot removes those that are over
        if tonumber(old) < slot - repeat_for_ms / KEPT_SLOT_MS then
            call('HDEL', key, old)
        end
    end
end

-- The number added within `repeat_for_ms`, rounded to five minutes.
local function kept_count()
    local counts, first, sum = redis.pcall('HGETALL', prefix .. 'done_counts'), kept_slot(), 0
    first = first - repeat_for_ms / KEPT_SLOT_MS
    for i = 1, #counts, 2 do
        sum = sum + (tonumber(counts[i]) >= first and tonumber(counts[i + 1]) or 0)
    end
    return sum
end

-- Ends a write of many items: stores and returns its answer. A result is an id, or a refusal.
local function answer_all(operation, results)
    if ARGV[2] ~= '' then
        local kept = {}
        for i, result in ipairs(results) do
            kept[i] = result.err and string.gsub(result.err, '^-', '') or result
        end
        call('SET', request_key(), request_digest(operation) .. ' ' .. table.concat(kept, '\n'),
            'PX', repeat_for_ms)
        count_kept()
    end
    return {0, unpack(results)}
end

-- The same for a write of one item.
local function answer(operation, id)
    return answer_all(operation, {id})
end

-- The id of the last event in the log; 0 if there are none.
local function last_event()
    local log = prefix .. 'log'
    if call('EXISTS', log) == 0 then
        return 0
    end
    local info = call('XINFO', 'STREAM', log)
    for i = 1, #info, 2 do
        if info[i] == 'last-generated-id' then
            return tonumber(string.match(info[i + 1], '^%d+'))
        end
    end
end

-- The smallest id of this shard that is greater than `last`: the next of the 64 of its millisecond,
-- or if these are used up the first of the next millisecond.
local function next_after(last)
    if shard_of(last) == shard and last % 64 < 63 then
        return last + 1
    end
    return (floor(last / 4096) + 1) * 4096 + shard * 64
end

-- Unix time by the machine's clock, which may be set back.
local function time_ms()
    local time = call('TIME')
    return time[1] * 1000 + floor(time[2] / 1000)
end

-- The time from which ids are minted, and with which times of ids are compared. It is the machine's
-- time, unless that was set back: then it continues from where it was (raise_clock.lua), the same
-- in all shards, at an eighth of the normal speed, until both meet at `clock_until`. At this speed
-- a shard can mint 8 ids in a millisecond. sl_database_clock_ms() in src/database/database_clock.c
-- computes the same.
local SLOWER = 8

local function ids_ms(now_ms)
    return math.max(now_ms, clock_until_ms - floor((clock_until_ms - now_ms) / SLOWER))
end

-- Ids and times for `count` new events, each as {id, ms, now_ms, previous}. The ids are greater
-- than every id that the shard has minted or logged, even if the machine's clock was set back. Or
-- nil and a refusal.
local function read_clocks(count)
    local now_ms = ids_ms(time_ms())
    local previous = last_event()
    local last = tonumber(call('GET', prefix .. 'clock') or '0')
    if not last or last < 0 or last ~= floor(last) then
        return nil, refuse('DAMAGED', 'the clock of the shard is no number')
    end
    last = math.max(last, previous)
    local id = (now_ms - EPOCH_MS) * 4096 + shard * 64
    if id <= last then
        id = next_after(last)
    end
    local clocks = {}
    for i = 1, count do
        if id > ID_MAX then
            return nil, refuse('DAMAGED', 'the clock of the shard has run out of ids')
        end
        clocks[i] = {id = print_id(id), ms = floor(id / 4096), now_ms = now_ms,
            previous = print_id(previous)}
        previous = id
        id = next_after(id)
    end
    return clocks
end

-- The same for one, which need not be an event.
local function read_clock()
    local clocks, refusal = read_clocks(1)
    return clocks and clocks[1], refusal
end

-- Converts days to year, month, day by Howard Hinnant, "chrono-Compatible Low-Level Date
-- Algorithms".
local function rfc3339(ms)
    local day_ms = ms % 86400000
    local days = (ms - day_ms) / 86400000 + 20454 + 719468 -- since 0000-03-01
    local era = floor(days / 146097)
    local of_era = days - era * 146097
    local year = floor((of_era - floor(of_era / 1460) + floor(of_era / 36524)
        - floor(of_era / 146096)) / 365)
    local of_year = of_era - (365 * year + floor(year / 4) - floor(year / 100))
    local march = floor((5 * of_year + 2) / 153)
    local day = of_year - floor((153 * march + 2) / 5) + 1
    local month = march < 10 and march + 3 or march - 9
    year = year + era * 400 + (month <= 2 and 1 or 0)
    return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, day,
        floor(day_ms / 3600000), floor(day_ms / 60000) % 60, floor(day_ms / 1000) % 60,
        day_ms % 1000)
end

-- Whether the field at `first` and the two after it are counters.
local function are_numbers(fields, first)
    for i = first, first + 2 do
        if not fields[i] or not string.find(fields[i], '^%d+$') then
            return false
        end
    end
    return true
end

-- Reads a user given as '=ID' or '@FOLDED LOGIN', as {id, login, name, ...}; or nil and a refusal.
local function read_user(who)
    local id = string.sub(who, 2)
    if string.sub(who, 1, 1) == '@' then
        id = call('HGET', prefix .. 'logins', id)
    end
    local fields = id and call('HMGET', prefix .. 'user:' .. id, 'login', 'name', 'followers',
        'following', 'posts', 'signup', 'version', 'bio', 'avatar', 'fields')
    if not fields or not fields[1] then
        local name = string.gsub(who, '^[=+]', '')
        return nil, refuse('NOUSER', 'there is no user ' .. name)
    end
    if not are_numbers(fields, 3) then
        return nil, refuse('DAMAGED', 'user ' .. id .. ' has a counter that is no number')
    end
    return {id = id, login = fields[1], name = fields[2], followers = fields[3],
        following = fields[4], posts = fields[5], signup = fields[6], version = fields[7],
        bio = fields[8], avatar = fields[9], fields = fields[10]}
end


-- Followers. The followers of a user are one sorted set, which is split into parts if it is very
-- large. `followers:ID`, the open part, takes new ones. When it reaches `followers_part` it is
-- renamed to `followers:ID:LAST`, where LAST is the newest follow in it, and recorded in
-- `follower_parts:ID`; so a part contains the follows after the LAST of the part before. Adding,
-- removing and looking up need one access to each part.

-- The keys of the parts, newest first, each with its LAST (none for the open part).
local function follower_parts(user)
    local name = prefix .. 'followers:' .. user
    local parts = {{key = name}}
    for _, last in ipairs(call('ZREVRANGE', prefix .. 'follower_parts:' .. user, 0, -1)) do
        parts[#parts + 1] = {key = name .. ':' .. last, last = last}
    end
    return parts
end

-- The id of the follow by which `follower` follows `user`, or nil.
local function follower_since(user, follower)
    for _, part in ipairs(follower_parts(user)) do
        local since = call('ZSCORE', part.key, follower)
        if since then
            return since
        end
    end
    return nil
end

-- Reads the followers newest first, like zset_range.
local function follower_range(user)
    return function(before, count)
        local found = {}
        for _, part in ipairs(follower_parts(user)) do
            local wanted = count - #found / 2
            if wanted == 0 then
                break
            end
            for _, text in ipairs(call('ZREVRANGEBYSCORE', part.key, before, '-inf', 'WITHSCORES',
                'LIMIT', 0, wanted)) do
                found[#found + 1] = text
            end
        end
        return found
    end
end

-- Both write and update the counters. Call follower_since() before, which raises WRONGTYPE.
local function remove_follower(user, follower)
    for _, part in ipairs(follower_parts(user)) do
        if call('ZREM', part.key, follower) == 1 then
            call('HINCRBY', prefix .. 'user:' .. user, 'followers', -1)
            if part.last and call('EXISTS', part.key) == 0 then
                call('ZREM', prefix .. 'follower_parts:' .. user, part.last)
            end
            return
        end
    end
end

-- Adds the follow `id`, which replaces an older one.
local function add_follower(meta, user, follower, id)
    local key = prefix .. 'followers:' .. user
    local index = prefix .. 'follower_parts:' .. user
    remove_follower(user, follower)
    if call('ZCARD', key) >= meta.followers_part then
        local last = call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]
        call('RENAME', key, key .. ':' .. last)
        call('ZADD', index, last, last)
    end
    local last = call('ZRANGEBYSCORE', index, id, '+inf', 'LIMIT', 0, 1)[1]
    call('ZADD', last and key .. ':' .. last or key, id, follower)
    call('HINCRBY', prefix .. 'user:' .. user, 'followers', 1)
end

-- Removes entries older than `score` from a sorted set of things that are remembered for a time. A
-- few at a time: each call removes more than it adds, and none takes long.
local function forget_until(key, score)
    local count = math.min(call('ZCOUNT', key, '-inf', score), 100)
    if count > 0 then
        call('ZREMRANGEBYRANK', key, 0, count - 1)
    end
end

-- Visibility of posts. This is the only rule: everything that reads or pushes posts calls
-- may_see(), in the shard of the post's author, which has all data that it needs. Gateways use
-- sl_audience_allows() in src/model/audience.h for the audience, and the lists of their readers for
-- the rest.

-- The part of an audience that everybody may know.
local function audience_kind(audience)
    return string.match(audience or 'public', '^[^:]*')
end

-- Whether an audience like 'only:1,2' lists the user.
local function is_listed(audience, user)
    local list = string.match(audience, ':(.*)$')
    return list ~= nil and string.find(',' .. list .. ',', ',' .. user .. ',', 1, true) ~= nil
end

-- Whether the author hides from the reader, or the reader has muted the author.
local function is_out_of_sight(author, reader)
    return call('SISMEMBER', prefix .. 'hidden_from:' .. author, reader) == 1
        or call('SISMEMBER', prefix .. 'muted_by:' .. author, reader) == 1
end

-- The part of the rule that concerns the audience, for a reader who is not the author; '' is an
-- anonymous reader.
local function audience_allows(audience, author, reader)
    local kind = audience_kind(audience)
    if kind == 'public' then
        return true
    elseif reader == '' then
        return false
    elseif kind == 'followers' then
        return follower_since(author, reader) ~= nil
    elseif kind == 'only' then
        return is_listed(audience, reader)
    elseif kind == 'except' then
        return not is_listed(audience, reader)
    elseif kind == 'followers-except' then
        return not is_listed(audience, reader) and follower_since(author, reader) ~= nil
    end
    return false
end

-- Whether the reader may see the post, which needs `user` and `audience`. `reader` is a user's id,
-- '' for an anonymous reader, or '*' for the site itself, which sees everything. `is_out`:
-- is_out_of_sight, or a variant that caches results.
local function may_see(reader, post, is_out)
    return reader == post.user or reader == '*'
        or (audience_allows(post.audience or 'public', post.user, reader)
            and not (is_out or is_out_of_sight)(post.user, reader))
end

-- The author of a post, for posts that refer to it. Readers of those posts need not be allowed to
-- see this one: a reference to a post that is not public contains only its id, and such a post
-- cannot be reposted. nil: not public.
local function named_author(post)
    if audience_kind(post.audience) == 'public' then
        return {post.user, post.login}
    end
end

local function privacy_is_hiding(operation)
    return operation == 'hide' or operation == 'unhide'
end

local function privacy_turns_on(operation)
    return operation == 'hide' or operation == 'mute'
end

-- The sets that hide, unhide, mute and unmute change: the user's own, and its mirror in the
-- target's shard.
local function privacy_sets(operation, user, target)
    if privacy_is_hiding(operation) then
        return prefix .. 'hidden_from:' .. user, prefix .. 'hidden_by:' .. target
    end
    return prefix .. 'mutes:' .. user, prefix .. 'muted_by:' .. target
end

-- cjson also escapes every /, which JSON allows but is longer and harder to read.
local function quote(text)
    return (string.gsub(cjson.encode(text), '\\/', '/'))
end

-- The row with which reads return a user found by read_user(). Its last element is the profile as
-- JSON members; the one before is the id of the change that set profile or login last.
local function user_row(user)
    local profile = {}
    for _, name in ipairs({'bio', 'avatar'}) do
        if user[name] then
            profile[#profile + 1] = '"' .. name .. '":' .. quote(user[name])
        end
    end
    if user.fields then
        profile[#profile + 1] = '"fields":' .. user.fields
    end
    return {user.id, user.login, user.name or '', user.signup or '', user.followers,
        user.following, user.posts, user.version or '0', table.concat(profile, ',')}
end

-- The same without what seldom changes, for readers with a cache (src/cache/cached_rows.h). nil: no
-- such user.
local function bare_user_row(id)
    local fields = call('HMGET', prefix .. 'user:' .. id, 'name', 'followers', 'following', 'posts',
        'version')
    fields[5] = fields[5] or '0'
    return fields[1] and are_numbers(fields, 2) and {id, unpack(fields)} or nil
end

local function user_json(user)
    local json = '{"id":"' .. user.id .. '"'
    if user.login then
        json = json .. ',"login":' .. quote(user.login)
    end
    if user.name then
        json = json .. ',"name":' .. quote(user.name)
    end
    return json .. '}'
end

-- The members of a post after its text, in the order of the event; `true`: already stored as JSON.
local POST_MEMBERS = {
    {'lang'}, {'created_at'}, {'geo', true}, {'place', true}, {'reply_to', true},
    {'repost_of', true}, {'quote_of', true}, {'urls', true}, {'media', true}, {'source'},
    {'audience'},
}

-- `post` as in its hash: member -> string.
local function post_json(post, user)
    local parts = {'{"id":"', post.id, '","user":', user_json(user), ',"text":', quote(post.text)}
    for _, member in ipairs(POST_MEMBERS) do
        local value = post[member[1]]
        if value then
            parts[#parts + 1] = ',"' .. member[1] .. '":'
            parts[#parts + 1] = member[2] and value or quote(value)
        end
    end
    parts[#parts + 1] = '}'
    return table.concat(parts)
end

-- Reads a post from its hash, or returns nil and a refusal.
local function read_post(id)
    local fields = call('HGETALL', prefix .. 'post:' .. id)
    if #fields == 0 then
        return nil, refuse('NOPOST', 'there is no post ' .. id)
    end
    local post = {}
    for i = 1, #fields, 2 do
        post[fields[i]] = fields[i + 1]
    end
    if post.id ~= id or not post.text then
        return nil, refuse('DAMAGED', 'post ' .. id .. ' is not whole')
    end
    return post
end

-- The same for a post that the reader may see; other posts are treated as missing.
local function find_post(id, reader)
    local post, refusal = read_post(id)
    if post and not may_see(reader, post) then
        return nil, refuse('NOPOST', 'there is no post ' .. id)
    end
    return post, refusal
end

-- The row with which reads return a post that the reader may see: {id, JSON, likes, comments}. The
-- JSON is that of its event with the author's current name, and for readers other than the author
-- without the list of its audience.
local function post_row(post, reader)
    if reader ~= post.user and reader ~= '*' then
        post.audience = audience_kind(post.audience)
    end
    local author = call('HMGET', prefix .. 'user:' .. post.user, 'login', 'name')
    local user = {id = post.user, login = author[1] or post.login, name = author[2]}
    return {post.id, post_json(post, user), call('ZCARD', prefix .. 'likes:' .. post.id),
        call('ZCARD', prefix .. 'comments:' .. post.id)}
end

-- The row of a public post without what never changes, for readers with a cache
-- (src/cache/cached_rows.h): {id, author, author's login, name, likes, comments}.
local function bare_row(post)
    local author = call('HMGET', prefix .. 'user:' .. post.user, 'login', 'name')
    return {post.id, post.user, author[1] or '', author[2] or '',
        call('ZCARD', prefix .. 'likes:' .. post.id), call('ZCARD', prefix .. 'comments:' .. post.id)}
end

-- The fields of a post that decide who may see it, or nil.
local function bare_post(id)
    local fields = call('HMGET', prefix .. 'post:' .. id, 'user', 'audience')
    return fields[1] and {id = id, user = fields[1], audience = fields[2] or 'public'} or nil
end

-- The row of a post that the reader may see: with `is_bare` a bare one if the post is public, else
-- a complete one. nil: the reader may not see it; false: there is none. `is_out` as in may_see().
local function seen_row(id, reader, is_bare, is_out)
    local post = is_bare and bare_post(id)
    if not post or post.audience ~= 'public' then
        is_bare = false
        post = read_post(id)
    end
    if not post then
        return false
    end
    return may_see(reader, post, is_out) and (is_bare and bare_row or post_row)(post, reader) or nil
end

-- The archive: posts beyond `profile_max` are moved to disk by workers (src/archive/archive.h). The
-- user's `posts` counts both those in the profile and those that only the archive has.

-- The newest of the user's posts that the archive may have; 0: it has none.
local function archived_until(user)
    return tonumber(call('GET', prefix .. 'archived:' .. user) or '0')
end

-- Whether the post is deleted but the archive may still have it, until a task erases it there.
local function is_erased(id)
    return call('ZSCORE', prefix .. 'erased', id) and true or false
end

-- Parses a post in the form stored by the archive, or returns nil and a refusal. `id`: the id that
-- it must have; nil: any.
local function archived_post(json, id)
    local is_good, post = pcall(cjson.decode, json)
    if not is_good or type(post) ~= 'table' or not post.id or not post.user or not post.text then
        return nil, refuse('DAMAGED', 'the archive has a post that is not whole')
    end
    if id and post.id ~= id then
        return nil, refuse('DAMAGED', 'the archive has another post for ' .. id)
    end
    if archived_until(post.user) < tonumber(post.id) or is_erased(post.id) then
        return nil, refuse('NOPOST', 'there is no post ' .. post.id)
    end
    return post
end

-- Tasks: work that a script cannot do itself, because it belongs to another shard or takes long.
-- The stream `tasks` of the shard is the outbox: a script adds a task in the same step in which the
-- task becomes necessary, and workers (src/tasks/worker.h) run it, at least once and in any order.
-- So a task must change nothing when it runs again, or after a newer one about the same pair
-- (is_outdated).
local TASK_GROUP = 'workers'
local APPLIED_TTL_MS = 604800000 -- how late a task may run: a week

-- Raises WRONGTYPE. Call it before the first write of a script that calls enqueue().
local function check_tasks()
    call('XLEN', prefix .. 'tasks')
end

-- Adds a task of this kind (src/tasks/task_kinds.c) for the operation `id`, with fields as names
-- and values.
local function enqueue(kind, id, ...)
    call('XADD', prefix .. 'tasks', '*', 'task', kind, 'id', id, ...)
end

-- Removes a task, whoever holds it. Returns 1, or 0 if there was none.
local function end_task(entry)
    call('XACK', prefix .. 'tasks', TASK_GROUP, entry)
    call('DEL', prefix .. 'task:' .. entry)
    return call('XDEL', prefix .. 'tasks', entry)
end

-- Creates the shard's consumer group if there is none.
local function make_task_group()
    local made = redis.pcall('XGROUP', 'CREATE', prefix .. 'tasks', TASK_GROUP, '0', 'MKSTREAM')
    if made.err and not string.find(made.err, '^BUSYGROUP') then
        return made
    end
end

-- For tasks about a pair, such as follow and unfollow of `b` by `a`: whether `id` is not newer than
-- the last one applied here. `kind` is the same for all tasks that undo each other.
local function is_outdated(kind, a, b, id)
    local last = call('GET', prefix .. 'applied:' .. kind .. ':' .. a .. ':' .. b)
    return last and tonumber(last) >= tonumber(id)
end

-- Writes: records `id` as the last one applied to the pair.
local function note_applied(kind, a, b, id)
    call('SET', prefix .. 'applied:' .. kind .. ':' .. a .. ':' .. b, id, 'PX', APPLIED_TTL_MS)
end

-- Comments: a post is listed with the post that it replies to, its `parent`, in the parent's shard.
-- A task informs another shard. Raises WRONGTYPE before the first write.
local function check_comment(parent)
    if shard_of(parent) == shard then
        call('ZCARD', prefix .. 'comments:' .. parent)
    else
        check_tasks()
    end
end

-- Writes. `operation` is 'comment' or 'uncomment', `id` that of the operation. No effect if the
-- parent is deleted.
local function change_comment(operation, id, parent, comment)
    if shard_of(parent) ~= shard then
        enqueue(operation, id, 'parent', parent, 'comment', comment)
    elseif operation == 'comment' then
        if call('EXISTS', prefix .. 'post:' .. parent) == 1 then
            call('ZADD', prefix .. 'comments:' .. parent, comment, comment)
        end
    else
        call('ZREM', prefix .. 'comments:' .. parent, comment)
    end
end

-- Without an archive, posts beyond `profile_max` may be dropped (profile_rest). Returns those to
-- drop when the author creates another post: {{id, parent}, ...}, the oldest ones; only a few at a
-- time, so that a limit that was lowered a lot is reached over the next posts. Raises WRONGTYPE
-- before the first write. Posts that the archive may have are kept.
local DROPS, DROP_MOST = 2, 20

local function posts_to_drop(meta, author)
    local found = {}
    if meta.archive == 1 or meta.profile_rest ~= DROPS then
        return found
    end
    local profile = prefix .. 'profile:' .. author
    local surplus = math.min(call('ZCARD', profile) + 1 - meta.profile_max, DROP_MOST)
    if surplus <= 0 then
        return found
    end
    for _, id in ipairs(call('ZRANGEBYSCORE', profile, '(' .. print_id(archived_until(author)), '+inf',
        'LIMIT', 0, surplus)) do
        local parent = call('HGET', prefix .. 'post:' .. id, 'parent')
        if parent then
            check_comment(parent)
        end
        found[#found + 1] = {id, parent}
    end
    return found
end

-- Writes. There is no event, because the author did not delete the posts.
local function drop_posts(found, author, operation_id)
    for _, post in ipairs(found) do
        local id, parent = unpack(post)
        call('UNLINK', prefix .. 'post:' .. id, prefix .. 'likes:' .. id, prefix .. 'comments:' .. id)
        call('ZREM', prefix .. 'profile:' .. author, id)
        call('HINCRBY', prefix .. 'user:' .. author, 'posts', -1)
        if parent then
            change_comment('uncomment', operation_id, parent, id)
        end
    end
end

-- The id below which posts are older than `archive_age_ms`; nil: there is no such limit.
local function oldest_to_stay(meta)
    if meta.archive_age_ms == 0 then
        return nil
    end
    local oldest_ms = ids_ms(time_ms()) - EPOCH_MS - meta.archive_age_ms
    return math.max(0, oldest_ms) * 4096
end

-- Whether `id` is on the list 'followers' or 'following' of a user of this shard.
local function is_on_list(name, user, id)
    if name == 'followers' then
        return follower_since(user, id) ~= nil
    end
    return call('ZSCORE', prefix .. 'following:' .. user, id) and true or false
end

-- Writes: the list of what a user of this shard likes. It is changed before the like is made, and
-- also before it is removed, so the list may contain a post too many, which readers must check.
local function change_liked(operation, user, post, id)
    if operation == 'like' then
        call('ZADD', prefix .. 'liked:' .. user, id, post)
    else
        call('ZREM', prefix .. 'liked:' .. user, post)
    end
end

-- Reads a sorted set newest first: up to `count` members with a score below `before` ('+inf' or
-- '(SCORE'), each followed by its score.
local function zset_range(key)
    return function(before, count)
        return call('ZREVRANGEBYSCORE', key, before, '-inf', 'WITHSCORES', 'LIMIT', 0, count)
    end
end

-- Reads a set of ids in the same form, greatest first; an id is its own position. Reads the whole
-- set, which reads of home timelines do as well.
local function set_range(key)
    return function(before, count)
        local members, found = call('SMEMBERS', key), {}
        table.sort(members, function(a, b)
            return #a > #b or (#a == #b and a > b)
        end)
        local last = before ~= '+inf' and tonumber(string.sub(before, 2)) or math.huge
        for _, member in ipairs(members) do
            if #found == 2 * count then
                break
            end
            if tonumber(member) < last then
                found[#found + 1] = member
                found[#found + 1] = member
            end
        end
        return found
    end
end

-- A page of what `range` reads: up to `limit` rows made by `row_of(member, score)`. Members for
-- which it returns none are skipped, so only a page after the end is empty.
local function read_page(range, before, limit, row_of)
    local rows = {}
    before = before == '+inf' and before or '(' .. before
    while #rows < limit do
        local wanted = limit - #rows
        local found = range(before, wanted)
        for i = 1, #found, 2 do
            rows[#rows + 1] = row_of(found[i], found[i + 1])
        end
        if #found < 2 * wanted then
            break
        end
        before = '(' .. found[#found]
    end
    return rows
end

-- The first write of every script: uses up the id.
local function take_id(clock)
    call('SET', prefix .. 'clock', clock.id)
end

-- Trims the log to its limits, in whole nodes of the stream (at most 100 entries, fewer if they are
-- long) and at most 10,000 entries at a time: a limit that was lowered a lot is reached over the
-- next events, and no call takes long. Costs nothing if there is nothing to trim.
local function trim_log(meta, now_ms)
    local log = prefix .. 'log'
    local oldest = math.max(0, now_ms - EPOCH_MS - meta.log_age_ms) * 4096
    call('XTRIM', log, 'MAXLEN', '~', print_id(meta.log_count))
    call('XTRIM', log, 'MINID', '~', print_id(oldest))
end

-- Logs and publishes the event of this script; `body` contains its members after `at`.
local function emit(meta, clock, kind, body)
    local json = '{"id":"' .. clock.id .. '","type":"' .. kind .. '","at":"'
        .. rfc3339(clock.ms) .. '",' .. body .. '}'
    call('XADD', prefix .. 'log', clock.id .. '-0', 'p', clock.previous, 'e', json)
    trim_log(meta, clock.now_ms)
    call(meta.publish_command, prefix .. 'live', clock.id .. ' ' .. clock.previous .. ' ' .. json)
end
