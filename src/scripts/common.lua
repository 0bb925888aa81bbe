-- common.lua - what every script begins with.
--
-- KEYS[1] is the shard's `meta`: it routes the script to its hash slot, and the names of all other
-- keys begin as its own does. ARGV[1] is the number of shards that the caller knows of, ARGV[2] its
-- request id, or empty.
--
-- Redis does not roll a script back, so a script decides everything before it writes anything:
-- each key that it will write is read first, with a command of the key's type, which raises
-- WRONGTYPE where another type lives. A refusal is an error reply that begins with a code; the
-- codes are listed in src/call/reply.c.
--
-- In front of this stands SETTINGS, made of src/database/settings.def: field -> {lowest, highest, default}.
local call = redis.call
local floor = math.floor

local prefix = string.sub(KEYS[1], 1, -5)
local shard = tonumber(string.match(prefix, '{(%d+)}'))

local SCHEMA, UPGRADED = '1', '2'
local FORMS = {homes = true, likes = true} -- of an upgraded database; src/database/forms.c says what they are
local EPOCH_MS = 1767225600000 -- 2026-01-01T00:00:00Z
local ID_MAX = 9007199254740991

local function refuse(code, text)
    return redis.error_reply(code .. ' ' .. text)
end

-- Ids are exact in a double; tostring() would print them with 14 digits.
local function print_id(id)
    return string.format('%.0f', id)
end

local function shard_of(id)
    return floor(tonumber(id) / 64) % 64
end

-- In a Redis Cluster a slot is moved key by key, and a script that runs meanwhile finds keys absent
-- that are at the other node. So scripts ask for two keys that never exist: on a slot that is being
-- moved the server answers that with an error, at the node that gives it and at the one that takes it.
-- `sluice shards move` says so in the field `moving` of meta, too, since a replica that is promoted
-- meanwhile knows nothing of it.
local function refuse_if_moving(target)
    if target then
        return refuse('MOVING', 'the shard is being moved to ' .. target .. '; try again')
    end
    if type(redis.pcall('EXISTS', prefix .. 'none', prefix .. 'nothing')) == 'table' then
        return refuse('MOVING', 'the shard is being moved to another node; try again')
    end
    return nil
end

-- The field `pubsub` of meta -> the command that publishes. 'sharded' is a database in a cluster.
local SHARDED = 'sharded'
local PUBLISH_COMMANDS = {[false] = 'PUBLISH', [SHARDED] = 'SPUBLISH'}

-- The field `forms` of meta: names of forms of data in it that programs of before them cannot read, with
-- commas between them. A database that has some has schema 2, which programs of before 0.2 refuse.
local function check_forms(forms)
    for form in string.gmatch(forms, '[^,]+') do
        if not FORMS[form] then
            return refuse('SCHEMA', 'the database has the form ' .. form .. ', which this program does not know')
        end
    end
    return nil
end

-- Why this is no shard of a database that the caller may work on; nil: it is one. All fields of meta.
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

-- The value of a setting whose field holds `text`, or nil when that is none.
local function read_setting(name, text)
    local lowest, highest, fallback = unpack(SETTINGS[name])
    if not text then
        return fallback
    end
    local value = string.find(text, '^%d+$') and tonumber(text)
    return value and value >= lowest and value <= highest and value or nil
end

-- How long a request id is remembered, until when ids are ahead of the machine's clock (see ids_ms), and
-- whether the shard has the form `homes`; open_shard() reads them.
local repeat_for_ms, clock_until_ms, has_home_lists

-- nil: the field holds no time.
local function read_clock_until(text)
    if not text then
        return 0
    end
    local until_ms = string.find(text, '^%d+$') and tonumber(text)
    return until_ms and until_ms <= ID_MAX and until_ms or nil
end

-- The settings of the shard by field: those of every write, and those that are named (all of them in
-- src/database/settings.def). Or nil and a refusal.
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

-- Request ids: the answer to a write is kept under its request id together with a digest of what
-- was asked, so that a repeated request gets the same answer and a reused id is noticed.
local function request_key()
    return prefix .. 'done:' .. ARGV[2]
end

local function request_digest(operation)
    return redis.sha1hex(operation .. '\0' .. table.concat(ARGV, '\0', 3))
end

-- What to answer at once: the kept answer, or a refusal; nil: go on. A kept answer is kept anew: that
-- is a write, so that whoever waits for replicas afterwards (WAIT) waits for all before it.
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

-- How many answers are kept, for those who look after the memory: `done_counts` has for each five
-- minutes how many came. It is no part of the write, and must not stop one.
local KEPT_SLOT_MS = 300000

local function kept_slot()
    return floor(call('TIME')[1] * 1000 / KEPT_SLOT_MS)
end

local function count_kept()
    local key, slot = prefix .. 'done_counts', kept_slot()
    if redis.pcall('HINCRBY', key, slot, 1) ~= 1 then
        return
    end
    for _, old in ipairs(call('HKEYS', key)) do -- the first of a slot: those that are over go
        if tonumber(old) < slot - repeat_for_ms / KEPT_SLOT_MS then
            call('HDEL', key, old)
        end
    end
end

-- As many as have come within `repeat_for_ms`, to five minutes.
local function kept_count()
    local counts, first, sum = redis.pcall('HGETALL', prefix .. 'done_counts'), kept_slot(), 0
    first = first - repeat_for_ms / KEPT_SLOT_MS
    for i = 1, #counts, 2 do
        sum = sum + (tonumber(counts[i]) >= first and tonumber(counts[i + 1]) or 0)
    end
    return sum
end

-- Ends a write of many things: keeps its answer and returns it. A result is an id, or a refusal.
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

-- The same for a write of one thing.
local function answer(operation, id)
    return answer_all(operation, {id})
end

-- The id of the last event in the log, 0 when there has been none.
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

-- The smallest id of this shard that is greater than `last`: the next of the 64 of its
-- millisecond, or when they are used up the first of the next one.
local function next_after(last)
    if shard_of(last) == shard and last % 64 < 63 then
        return last + 1
    end
    return (floor(last / 4096) + 1) * 4096 + shard * 64
end

-- Unix time by the machine's clock, which may step.
local function time_ms()
    local time = call('TIME')
    return time[1] * 1000 + floor(time[2] / 1000)
end

-- The time that ids are minted by, and that what is compared with ids goes by. It is the machine's
-- but for when that has stepped back: then it goes on from where it was (raise_clock.lua), in all
-- shards alike, at an eighth of the machine's speed, so that they meet at `clock_until`. An eighth leaves
-- a shard 8 ids a millisecond. sl_database_clock_ms() in src/database/database_clock.c is the same.
local SLOWER = 8

local function ids_ms(now_ms)
    return math.max(now_ms, clock_until_ms - floor((clock_until_ms - now_ms) / SLOWER))
end

-- What the clock says for `count` events to come, each as {id, ms, now_ms, previous}: ids are
-- greater than every id that the shard has given or logged, however the machine's clock has
-- stepped. Or nil and a refusal.
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

-- The same for one, an event or not.
local function read_clock()
    local clocks, refusal = read_clocks(1)
    return clocks and clocks[1], refusal
end

-- Days to year, month, day after Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
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

-- Are these, and the two behind, counters?
local function are_numbers(fields, first)
    for i = first, first + 2 do
        if not fields[i] or not string.find(fields[i], '^%d+$') then
            return false
        end
    end
    return true
end

-- A user as {id, login, name, ...} by '=ID' or '@FOLDED LOGIN', or nil and a refusal.
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


-- Followers. A user's followers are one set, kept in parts when they are very many: `followers:ID`,
-- the open part, takes new ones. Grown to `followers_part` it is renamed to `followers:ID:LAST`, LAST
-- being the newest follow in it, and noted in `follower_parts:ID`; so a part holds the follows behind
-- the LAST before its own. To add, to remove and to ask for somebody costs a look at each part.

-- Their keys, newest part first, each with its LAST (none: the open one).
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

-- Reads the followers newest first, as zset_range does.
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

-- Both write, and count what they change. Ask follower_since() first, which raises WRONGTYPE.
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

-- By the follow `id`, in the stead of an older one.
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

-- Takes from a sorted set of things that are remembered for a time what is older than `score`, some at
-- a time: each that comes makes room for more than itself, and no call takes long.
local function forget_until(key, score)
    local count = math.min(call('ZCOUNT', key, '-inf', score), 100)
    if count > 0 then
        call('ZREMRANGEBYRANK', key, 0, count - 1)
    end
end

-- Who may see a post. The one rule: whatever reads or pushes posts asks may_see(), in the shard of
-- the post's author, which has all that it takes. What gateways go by is sl_audience_allows() in
-- src/model/audience.h, for the audience, and the lists of their readers for the rest.

-- What everybody may know of an audience.
local function audience_kind(audience)
    return string.match(audience or 'public', '^[^:]*')
end

-- Does an audience like 'only:1,2' list the user?
local function is_listed(audience, user)
    local list = string.match(audience, ':(.*)$')
    return list ~= nil and string.find(',' .. list .. ',', ',' .. user .. ',', 1, true) ~= nil
end

-- Does the author hide from the reader, or has the reader muted the author?
local function is_out_of_sight(author, reader)
    return call('SISMEMBER', prefix .. 'hidden_from:' .. author, reader) == 1
        or call('SISMEMBER', prefix .. 'muted_by:' .. author, reader) == 1
end

-- The audience's part of the rule, for a reader who is not the author; '' is somebody unknown.
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

-- `post` needs `user` and `audience`; `reader` is a user's id, '' for somebody unknown, or '*' for
-- the site itself, which sees everything. `is_out`: is_out_of_sight, or what somebody who asks often
-- knows of it already.
local function may_see(reader, post, is_out)
    return reader == post.user or reader == '*'
        or (audience_allows(post.audience or 'public', post.user, reader)
            and not (is_out or is_out_of_sight)(post.user, reader))
end

-- Whose is a post, for others that refer to it? Those who may see the one need not see the other:
-- of a post that is not public they keep the id alone, and nobody reposts it. nil: that.
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

-- cjson escapes every / as well, which JSON allows but nobody wants to read or to pay for.
local function quote(text)
    return (string.gsub(cjson.encode(text), '\\/', '/'))
end

-- How a user that read_user() found is answered to a read. The last is what the user says of
-- itself, as members of JSON; the one before it the change by which that, or the login, came.
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

-- The same without what seldom changes, for readers who have a cache (src/cache/cached_rows.h). nil: no user.
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

-- Members of a post behind its text, in the order of the event; `true`: kept as JSON already.
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

-- A post as in its hash, or nil and a refusal.
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

-- The same if the reader may see it; for others it is not there.
local function find_post(id, reader)
    local post, refusal = read_post(id)
    if post and not may_see(reader, post) then
        return nil, refuse('NOPOST', 'there is no post ' .. id)
    end
    return post, refusal
end

-- How a post that the reader may see is answered to a read: {id, JSON, likes, comments}. The JSON is
-- that of its event, with the name that the author has now, and for others than the author without
-- the list of its audience.
local function post_row(post, reader)
    if reader ~= post.user and reader ~= '*' then
        post.audience = audience_kind(post.audience)
    end
    local author = call('HMGET', prefix .. 'user:' .. post.user, 'login', 'name')
    local user = {id = post.user, login = author[1] or post.login, name = author[2]}
    return {post.id, post_json(post, user), call('ZCARD', prefix .. 'likes:' .. post.id),
        call('ZCARD', prefix .. 'comments:' .. post.id)}
end

-- A row of a public post without what never changes, for readers who have a cache (src/cache/cached_rows.h):
-- {id, author, author's login, name, likes, comments}.
local function bare_row(post)
    local author = call('HMGET', prefix .. 'user:' .. post.user, 'login', 'name')
    return {post.id, post.user, author[1] or '', author[2] or '',
        call('ZCARD', prefix .. 'likes:' .. post.id), call('ZCARD', prefix .. 'comments:' .. post.id)}
end

-- As much of a post as decides who may see it, or nil.
local function bare_post(id)
    local fields = call('HMGET', prefix .. 'post:' .. id, 'user', 'audience')
    return fields[1] and {id = id, user = fields[1], audience = fields[2] or 'public'} or nil
end

-- The row of a post that the reader may see: for `is_bare` a bare one where the post is public, else
-- a whole one. nil: it may not be seen; false: there is none. `is_out` as in may_see().
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

-- The archive: posts beyond `profile_max`, on disk (src/archive/archive.h), where workers move them. The
-- user's `posts` counts both: those of the profile and those that only the archive has.

-- The newest of the user's posts that the archive may have; 0: it has none.
local function archived_until(user)
    return tonumber(call('GET', prefix .. 'archived:' .. user) or '0')
end

-- Is the post deleted, but the archive may have it? Erasing it there is a task of its own.
local function is_erased(id)
    return call('ZSCORE', prefix .. 'erased', id) and true or false
end

-- A post as the archive keeps it, or nil and a refusal. `id`: which it must be; nil: whichever it is.
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

-- Tasks: what a script cannot do itself, because it belongs to another shard or takes long. The
-- stream `tasks` of the shard is the outbox: a task is left there in the script that makes it
-- necessary, and workers (src/tasks/worker.h) run it, at least once and in any order. So a task changes
-- nothing the second time, nor behind a newer one about the same pair (is_outdated).
local TASK_GROUP = 'workers'
local APPLIED_TTL_MS = 604800000 -- how long a task may be late: a week

-- Raises WRONGTYPE before the first write of a script that will enqueue().
local function check_tasks()
    call('XLEN', prefix .. 'tasks')
end

-- Leaves a task of this kind (src/tasks/task_kinds.c) for the operation `id`; then names and values.
local function enqueue(kind, id, ...)
    call('XADD', prefix .. 'tasks', '*', 'task', kind, 'id', id, ...)
end

-- Forgets a task, whoever holds it. Returns 1, or 0 when there was none.
local function end_task(entry)
    call('XACK', prefix .. 'tasks', TASK_GROUP, entry)
    call('DEL', prefix .. 'task:' .. entry)
    return call('XDEL', prefix .. 'tasks', entry)
end

-- Makes the shard's consumer group where there is none.
local function make_task_group()
    local made = redis.pcall('XGROUP', 'CREATE', prefix .. 'tasks', TASK_GROUP, '0', 'MKSTREAM')
    if made.err and not string.find(made.err, '^BUSYGROUP') then
        return made
    end
end

-- One task of a pair, as in follow and unfollow of `b` by `a`: is `id` older than, or the same as,
-- the last that was applied here? `kind` is one for all tasks that undo each other.
local function is_outdated(kind, a, b, id)
    local last = call('GET', prefix .. 'applied:' .. kind .. ':' .. a .. ':' .. b)
    return last and tonumber(last) >= tonumber(id)
end

-- A write: remembers `id` as the last that was applied to the pair.
local function note_applied(kind, a, b, id)
    call('SET', prefix .. 'applied:' .. kind .. ':' .. a .. ':' .. b, id, 'PX', APPLIED_TTL_MS)
end

-- Comments: a post is listed with the post that it answers, its `parent`, in the parent's shard; what
-- lives elsewhere is told by a task. Raises WRONGTYPE before the first write.
local function check_comment(parent)
    if shard_of(parent) == shard then
        call('ZCARD', prefix .. 'comments:' .. parent)
    else
        check_tasks()
    end
end

-- Writes; `operation` is 'comment' or 'uncomment', `id` its own. A post that is gone is not answered.
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

-- Without an archive posts beyond `profile_max` may be dropped (profile_rest). Which, when the author
-- posts one more: {{id, parent}, ...}, the oldest; some at a time, so that a limit that has fallen far is
-- reached over the next posts. Raises WRONGTYPE before the first write. What the archive may have is left.
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

-- Writes. No event tells of it: it is no deletion by the author.
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

-- Is `id` on the list 'followers' or 'following' of a user of this shard?
local function is_on_list(name, user, id)
    if name == 'followers' then
        return follower_since(user, id) ~= nil
    end
    return call('ZSCORE', prefix .. 'following:' .. user, id) and true or false
end

-- Writes: the list of what a user of this shard likes. It is noted before the like, and taken back before
-- the end of it, so that it may hold a post too many, which whoever reads it asks about.
local function change_liked(operation, user, post, id)
    if operation == 'like' then
        call('ZADD', prefix .. 'liked:' .. user, id, post)
    else
        call('ZREM', prefix .. 'liked:' .. user, post)
    end
end

-- Reads a sorted set newest first: up to `count` members with a score below `before` ('+inf' or
-- '(SCORE'), each with its score behind it.
local function zset_range(key)
    return function(before, count)
        return call('ZREVRANGEBYSCORE', key, before, '-inf', 'WITHSCORES', 'LIMIT', 0, count)
    end
end

-- Reads a set of ids in the same form, greatest first; an id is its own position. Goes through the whole
-- set, as whoever reads a home timeline does.
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

-- A page of what `range` reads: up to `limit` of the rows that `row_of(member, score)` makes. What
-- it makes none of is passed over, so that only the page behind the end has no rows.
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

-- The first write of every script: the id is given away now.
local function take_id(clock)
    call('SET', prefix .. 'clock', clock.id)
end

-- Takes from the log what is beyond its limits, in whole nodes of the stream (100 entries at most,
-- fewer when they are long) and at most 10,000 entries at a time: a limit that has fallen far is
-- reached over the next events, and no call takes long. Costs nothing while nothing is to be taken.
local function trim_log(meta, now_ms)
    local log = prefix .. 'log'
    local oldest = math.max(0, now_ms - EPOCH_MS - meta.log_age_ms) * 4096
    call('XTRIM', log, 'MAXLEN', '~', print_id(meta.log_count))
    call('XTRIM', log, 'MINID', '~', print_id(oldest))
end

-- Logs and publishes the event that this script is about; `body` are its members behind `at`.
local function emit(meta, clock, kind, body)
    local json = '{"id":"' .. clock.id .. '","type":"' .. kind .. '","at":"'
        .. rfc3339(clock.ms) .. '",' .. body .. '}'
    call('XADD', prefix .. 'log', clock.id .. '-0', 'p', clock.previous, 'e', json)
    trim_log(meta, clock.now_ms)
    call(meta.publish_command, prefix .. 'live', clock.id .. ' ' .. clock.previous .. ' ' .. json)
end
