-- homes.lua - home timelines. Like common.lua, which comes before it, it precedes every script.
--
-- A home timeline consists of the newest `home_size` posts by the reader and the users followed by
-- the reader, as far as the reader may see them. The setting `timeline` says where they come from:
-- they are pushed to the reader when they are posted; or pulled from the authors' profiles when the
-- reader reads; or pushed except for authors with more than `merge_above` followers, whose posts
-- are merged by reads (hybrid). The shard of an active reader has
--
--   home:ID    what was pushed or read in: entries 'POST:AUTHOR' (see below)
--   behind:ID  set: authors whose posts have not been read in yet; reads ask them until they are
--   active:ID  hash: `version`, the id of the last change of the set of authors; `floor`, the id
--              above which home:ID is complete (absent: nothing was read in, reads ask all authors);
--              `epoch`, that of meta at its creation; `cut`, up to where pushed posts were dropped
--              before there was a floor; `asked`, when a backfill task was last added
--
-- which expire when the reader stays away. A post in home:ID is not necessarily visible: the shard
-- of its author decides that at each read. The invariant is that above the floor no post is
-- missing, except those of authors that are behind or merged.
local PULL, HYBRID = 2, 3 -- values of the setting; 1 is push
local GONE_TTL_MS = 86400000 -- how late a deleted post may still be pushed
local ASK_AGAIN_MS = 10000 -- when to add a backfill task again if the first has not run

local function is_here(id)
    return shard_of(id) == shard
end

local function home_keys(reader)
    return prefix .. 'active:' .. reader, prefix .. 'home:' .. reader, prefix .. 'behind:' .. reader
end

-- Calls run(...) with as many members at a time as a command accepts.
local function in_portions(members, run)
    for i = 1, #members, 1000 do
        run(unpack(members, i, math.min(i + 999, #members)))
    end
end

-- ---- the entries of a home ----
--
-- In a shard with the form `homes` they are a list, newest first, of 34 bytes for each entry.
-- Otherwise, for programs before 0.2, they are a sorted set by the post's id, which takes 137 bytes
-- for each entry if there are many. A remaining sorted set is converted to a list when it is read
-- or changed. Posts arrive in the order of their ids, except for those that tasks bring late: a
-- list is searched from its newest end.

local function entry_post(entry)
    return tonumber(string.match(entry, '^%d+'))
end

local function make_list(home, entries)
    local left_ms = call('PTTL', home)
    call('UNLINK', home)
    in_portions(entries, function(...) call('RPUSH', home, ...) end)
    if left_ms > 0 and entries[1] then
        call('PEXPIRE', home, left_ms)
    end
end

-- The number of entries. Raises WRONGTYPE.
local function count_entries(home)
    if not has_home_lists then
        return call('ZCARD', home)
    end
    local count = redis.pcall('LLEN', home)
    if type(count) == 'table' then
        make_list(home, call('ZREVRANGE', home, 0, -1))
        count = call('LLEN', home)
    end
    return count
end

-- All entries, newest first. This and the following functions need a home that was counted before.
local function all_entries(home)
    return call(has_home_lists and 'LRANGE' or 'ZREVRANGE', home, 0, -1)
end

-- The number of entries for the post `id` or newer ones.
local function count_from(home, id)
    if not has_home_lists then
        return call('ZCOUNT', home, print_id(id), '+inf')
    end
    local low, high = 0, call('LLEN', home)
    while low < high do
        local middle = floor((low + high) / 2)
        if entry_post(call('LINDEX', home, middle)) >= id then
            low = middle + 1
        else
            high = middle
        end
    end
    return low
end

-- Up to `limit` entries, newest first, and how many precede them; `before` and `after` as in
-- read_feed().
local function read_entries(home, before, after, limit)
    local newer = before ~= '+inf' and count_from(home, tonumber(string.sub(before, 2))) or 0
    if not has_home_lists then
        return call('ZREVRANGEBYSCORE', home, before, after, 'LIMIT', 0, limit), newer
    end
    local found = call('LRANGE', home, newer, newer + limit - 1)
    local last = after ~= '-inf' and tonumber(string.sub(after, 2)) or 0
    while found[1] and entry_post(found[#found]) <= last do
        found[#found] = nil
    end
    return found, newer
end

-- Adds an entry. Returns the new number of entries.
local function add_entry(home, id, author)
    local entry = id .. ':' .. author
    if not has_home_lists then
        call('ZADD', home, id, entry)
        return call('ZCARD', home)
    end
    local newest = redis.pcall('LINDEX', home, 0)
    if type(newest) == 'table' then
        count_entries(home)
        newest = call('LINDEX', home, 0)
    end
    if not newest or entry_post(newest) < tonumber(id) then
        return call('LPUSH', home, entry)
    end
    local place = count_from(home, tonumber(id)) -- 1 or more: the newest entry is not older
    local before = call('LINDEX', home, place - 1)
    return before == entry and call('LLEN', home) or call('LINSERT', home, 'AFTER', before, entry)
end

local function remove_entry(home, entry)
    if not has_home_lists then
        call('ZREM', home, entry)
    elseif type(redis.pcall('LREM', home, 1, entry)) == 'table' then
        count_entries(home)
        call('LREM', home, 1, entry)
    end
end

-- Removes the `count` oldest entries. Returns the newest post of them.
local function cut_entries(home, count)
    if not has_home_lists then
        local cut = call('ZPOPMIN', home, count)
        return cut[#cut]
    end
    local newest = call('LINDEX', home, -count)
    call('LTRIM', home, 0, -count - 1)
    return print_id(entry_post(newest))
end

-- Adds entries in any order, and removes those not above the post `floor_id`.
local function merge_entries(home, entries, floor_id)
    if not has_home_lists then
        for _, entry in ipairs(entries) do
            call('ZADD', home, print_id(entry_post(entry)), entry)
        end
        call('ZREMRANGEBYSCORE', home, '-inf', print_id(floor_id))
        return
    end
    local merged, posts = {}, {}
    for _, list in ipairs({all_entries(home), entries}) do
        for _, entry in ipairs(list) do
            local post = entry_post(entry)
            if not posts[entry] and post > floor_id then
                merged[#merged + 1], posts[entry] = entry, post
            end
        end
    end
    table.sort(merged, function(a, b) return posts[a] > posts[b] end)
    make_list(home, merged)
end

-- Raises WRONGTYPE. Call it before the first write of a script that changes the reader's home.
local function check_home(reader)
    local active, home, behind = home_keys(reader)
    call('HLEN', active)
    count_entries(home)
    call('SCARD', behind)
end

-- Whether the reader wants posts of the author: follows, has not muted, and is not hidden from, as
-- far as the reader's shard knows.
local function is_wanted(reader, author)
    return reader == author
        or (call('ZSCORE', prefix .. 'following:' .. reader, author)
            and call('SISMEMBER', prefix .. 'mutes:' .. reader, author) == 0
            and call('SISMEMBER', prefix .. 'hidden_by:' .. reader, author) == 0)
end

-- Whether the reader follows the author by the follow `since`, by which the author's shard knows
-- it. If the reader has unfollowed meanwhile, that shard may have forgotten the reader, and has not
-- reported deleted posts to this one. Nothing is lost if it is another follow: when the author's
-- shard learns of that, the author's posts are read in (home_gain.lua).
local function follows_since(reader, author, since)
    return call('ZSCORE', prefix .. 'following:' .. reader, author) == since
end

-- What is being read in now dates from before the change `id`, and is discarded.
local function home_changed(active, id)
    call('HSET', active, 'version', id)
    call('HDEL', active, 'asked')
end

-- After the change `id` the reader may want the author's posts.
local function home_gain(reader, author, id)
    local active, _, behind = home_keys(reader)
    if call('EXISTS', active) == 1 and is_wanted(reader, author) then
        call('SADD', behind, author)
        call('PEXPIRE', behind, call('PTTL', active))
        home_changed(active, id)
    end
end

-- After the change `id` the reader no longer wants posts of these authors, which are keys.
local function home_lose(reader, authors, id)
    local active, home, behind = home_keys(reader)
    if call('EXISTS', active) == 0 then
        call('UNLINK', home, behind) -- left from a reader who was away, if it still exists
        return
    end
    for _, entry in ipairs(all_entries(home)) do
        if authors[string.match(entry, ':(%d+)$')] then
            remove_entry(home, entry)
        end
    end
    for author in pairs(authors) do
        call('SREM', behind, author)
    end
    home_changed(active, id)
end

-- `user` hides from or mutes `target`, or has ended it: changes the home of the one of them who
-- reads, if it is in this shard.
local function home_change_privacy(operation, user, target, id)
    local reader, author = user, target
    if privacy_is_hiding(operation) then
        reader, author = target, user
    end
    if not is_here(reader) then
        return
    elseif privacy_turns_on(operation) then
        home_lose(reader, {[author] = true}, id)
    else
        home_gain(reader, author, id)
    end
end

-- More than the size is stored, so that deletions do not shorten the timeline at once, and not
-- every push has to trim.
local function home_trim(meta, home, count, active, field)
    local excess = count - meta.home_size
    if excess > meta.home_size / 8 then
        call('HSET', active, field, cut_entries(home, excess))
    end
end

-- Adds a post to the home timeline of a reader who wants it, if the reader is active.
local function home_push(meta, reader, id, author)
    local active, home = home_keys(reader)
    local state = call('HMGET', active, 'version', 'floor')
    local floor_id = state[2]
    if not state[1] or (floor_id and tonumber(id) <= tonumber(floor_id)) then
        return
    end
    local count = add_entry(home, id, author)
    home_trim(meta, home, count, active, floor_id and 'floor' or 'cut')
    if count == 1 then
        call('PEXPIRE', home, call('PTTL', active))
    end
end

-- A home key with another type concerns only its reader, and must not prevent an author from
-- posting.
local function home_push_safely(...)
    pcall(home_push, ...)
end

local function home_drop_safely(reader, id, author)
    pcall(remove_entry, prefix .. 'home:' .. reader, id .. ':' .. author)
end

-- Remembers a deleted post, for pushes that come late.
local function note_gone(id, deletion)
    local gone = prefix .. 'gone'
    call('ZADD', gone, deletion, id)
    forget_until(gone, print_id(deletion - GONE_TTL_MS * 4096))
end

local function is_gone(id)
    return call('ZSCORE', prefix .. 'gone', id) and true or false
end

-- is_out_of_sight for one author and many readers.
local function sight_of(author)
    local hidden, muted = prefix .. 'hidden_from:' .. author, prefix .. 'muted_by:' .. author
    local has_hidden, has_muted = call('EXISTS', hidden) == 1, call('EXISTS', muted) == 1
    return function(_, reader)
        return (has_hidden and call('SISMEMBER', hidden, reader) == 1)
            or (has_muted and call('SISMEMBER', muted, reader) == 1)
    end
end

-- Pushes a post to those of the batch of followers who may see it and are in this shard. Returns
-- the others who may see it, each followed by the follow by which this shard knows it.
local function push_to(meta, post, page)
    local is_out = sight_of(post.user)
    local elsewhere = {}
    for i = 1, #page, 2 do
        local reader = page[i]
        if may_see(reader, post, is_out) then
            if is_here(reader) then
                home_push_safely(meta, reader, post.id, post.user)
            else
                elsewhere[#elsewhere + 1] = reader
                elsewhere[#elsewhere + 1] = page[i + 1]
            end
        end
    end
    return elsewhere
end

-- Takes a post back from those of the batch of followers who are in this shard. Returns the others
-- in the same form.
local function take_back_from(id, author, page)
    local elsewhere = {}
    for i = 1, #page, 2 do
        if is_here(page[i]) then
            home_drop_safely(page[i], id, author)
        else
            elsewhere[#elsewhere + 1] = page[i]
            elsewhere[#elsewhere + 1] = page[i + 1]
        end
    end
    return elsewhere
end

-- Where a task continues after a batch of `wanted` followers that a script has processed itself;
-- nil: no task is needed. With a single shard it continues where the script ended; with several,
-- the followers of the batch in other shards are still to be processed.
local function rest_behind(page, wanted, elsewhere)
    if ARGV[1] == '1' then
        return #page == 2 * wanted and page[#page] or nil
    end
    return (#page == 2 * wanted or #elsewhere > 0) and '+inf' or nil
end

-- Raises WRONGTYPE. Call it before the first write of a script that posts or deletes.
local function check_spread(author)
    check_home(author)
    check_tasks()
    call('ZCARD', prefix .. 'merged')
    call('ZCARD', prefix .. 'gone')
end

-- Whether posts of this author of this shard are merged by reads. The first post with too many
-- followers makes it so, permanently and in all shards.
local function is_merged(meta, author, followers, id)
    local merged = prefix .. 'merged'
    if meta.timeline ~= HYBRID then
        return false
    elseif call('ZSCORE', merged, author) then
        return true
    elseif tonumber(followers) <= meta.merge_above then
        return false
    end
    call('ZADD', merged, id, author)
    if ARGV[1] ~= '1' then
        enqueue('merge', id, 'author', author)
    end
    return true
end

-- Pushes a new post.
local function home_spread(meta, post, followers)
    if meta.timeline == PULL then
        return
    end
    home_push_safely(meta, post.user, post.id, post.user)
    if tonumber(followers) == 0 or is_merged(meta, post.user, followers, post.id) then
        return
    end
    local page = follower_range(post.user)('+inf', meta.push_at_once)
    local rest = rest_behind(page, meta.push_at_once, push_to(meta, post, page))
    if rest then
        enqueue('fan_out', post.id, 'post', post.id, 'author', post.user, 'from', rest)
    end
end

-- Takes back a post that was deleted by the event `deletion`.
local function home_take_back(meta, post, deletion)
    local since = call('ZSCORE', prefix .. 'merged', post.user)
    if meta.timeline == PULL then
        return
    end
    note_gone(post.id, deletion)
    home_drop_safely(post.user, post.id, post.user)
    if meta.timeline == HYBRID and since and tonumber(post.id) >= tonumber(since) then
        return
    end
    local page = follower_range(post.user)('+inf', meta.push_at_once)
    local rest = rest_behind(page, meta.push_at_once,
        take_back_from(post.id, post.user, page))
    if rest then
        enqueue('take_back', deletion, 'post', post.id, 'author', post.user, 'from', rest)
    end
end

-- ---- reading ----

-- A heap of authors with remaining posts; the one with the newest next post is first.
local function sift_down(heap, i)
    while true do
        local first, child = i, 2 * i
        if heap[child] and heap[child].id > heap[first].id then
            first = child
        end
        if heap[child + 1] and heap[child + 1].id > heap[first].id then
            first = child + 1
        end
        if first == i then
            return
        end
        heap[i], heap[first] = heap[first], heap[i]
        i = first
    end
end

local function pop(heap)
    heap[1] = heap[#heap]
    heap[#heap] = nil
    if heap[1] then
        sift_down(heap, 1)
    end
end

local CHUNK = 20 -- posts of an author read at once
local FEED_WORK = 500 -- posts examined by one feed

-- Advances to the author's next post; false: there is none.
local function advance(source, after)
    source.at = source.at + 1
    if source.at > #source.ids then
        if #source.ids < source.wanted then
            return false
        end
        local last = source.ids[#source.ids]
        source.wanted = CHUNK
        source.ids = call('ZREVRANGEBYSCORE', source.key, '(' .. last, after, 'LIMIT', 0, CHUNK)
        source.at = 1
        if #source.ids == 0 then
            return false
        end
    end
    source.id = tonumber(source.ids[source.at])
    return true
end

-- How the reader sees this shard: is_out(author), which caches results, and row_of(id), by `form`
-- ('0': {id, author}; '1': a complete row, see post_row; '2': a bare one if possible, see
-- bare_row); nil if the reader may not see the post, false if there is none.
local function view_of(reader, form)
    local known = {}
    local function is_out(author)
        if known[author] == nil then
            known[author] = is_out_of_sight(author, reader)
        end
        return known[author]
    end
    local function row_of(id)
        if form ~= '0' then
            return seen_row(id, reader, form == '2', is_out)
        end
        local post = bare_post(id)
        if not post then
            return false
        end
        return may_see(reader, post, is_out) and {id, post.user} or nil
    end
    return is_out, row_of
end

-- Adds to `rows` the newest posts by authors of this shard that the reader may see: up to `limit`
-- ids below `before` and above `after` ('(ID', or '+inf' and '-inf'), newest first. Returns the id
-- above which they are complete: 0 at the end.
local function read_feed(reader, authors, before, after, limit, is_out, row_of, rows)
    local heap = {}
    local wanted = math.max(1, math.min(CHUNK, math.ceil(2 * limit / math.max(#authors, 1))))
    for _, author in ipairs(authors) do
        local source = {author = author, key = prefix .. 'profile:' .. author, wanted = wanted}
        source.ids = call('ZREVRANGEBYSCORE', source.key, before, after, 'LIMIT', 0, wanted)
        if source.ids[1] then
            source.at, source.id = 1, tonumber(source.ids[1])
            heap[#heap + 1] = source
        end
    end
    for i = floor(#heap / 2), 1, -1 do
        sift_down(heap, i)
    end
    local work, last = 0, #rows + limit
    while heap[1] and #rows < last and work < FEED_WORK do
        local source = heap[1]
        local is_over = source.author ~= reader and is_out(source.author)
        if not is_over then
            rows[#rows + 1] = row_of(source.ids[source.at]) or nil
            is_over = not advance(source, after)
        end
        if is_over then
            pop(heap)
        else
            sift_down(heap, 1)
        end
        work = work + 1
    end
    return heap[1] and heap[1].id or 0
end

-- Reads a part of a home timeline from this shard: the posts among `posts`, and those of `authors`,
-- that the reader may see. Returns rows, the result of read_feed, and those of `posts` that do not
-- exist.
local function read_part(reader, posts, authors, before, after, limit, form)
    local is_out, row_of = view_of(reader, form)
    local rows, missing = {}, {}
    for _, id in ipairs(posts) do
        local row = row_of(id)
        if row then
            rows[#rows + 1] = row
        elseif row == false then
            missing[#missing + 1] = id
        end
    end
    return rows, read_feed(reader, authors, before, after, limit, is_out, row_of, rows), missing
end

-- An upper limit for the number of posts of these authors before the page: all from `before` on.
local function count_newer(authors, before)
    local count = 0
    if before ~= '+inf' then
        for _, author in ipairs(authors) do
            count = count + call('ZCOUNT', prefix .. 'profile:' .. author, string.sub(before, 2),
                '+inf')
        end
    end
    return count
end

-- Those of the authors whose posts the reader wants.
local function keep_wanted(reader, authors)
    for _, name in ipairs({'mutes:', 'hidden_by:'}) do
        local set = prefix .. name .. reader
        if authors[1] and call('EXISTS', set) == 1 then
            local kept = {}
            for i = 1, #authors, 1000 do
                local last = math.min(i + 999, #authors)
                for at, is_in in ipairs(call('SMISMEMBER', set, unpack(authors, i, last))) do
                    if is_in == 0 then
                        kept[#kept + 1] = authors[i + at - 1]
                    end
                end
            end
            authors = kept
        end
    end
    return authors
end

-- The authors whose posts belong on the reader's timeline: those that every read asks, and those
-- whose posts are pushed. `state`: that of an active reader; nil if nothing is stored of the
-- timeline.
local function home_authors(meta, reader, state)
    local followed = keep_wanted(reader, call('ZRANGE', prefix .. 'following:' .. reader, 0, -1))
    if not state or not state.floor then
        followed[#followed + 1] = reader
        return followed, {}
    end
    local asked, is_asked, pushed = {}, {}, {reader}
    for _, author in ipairs(call('SMEMBERS', prefix .. 'behind:' .. reader)) do
        is_asked[author] = true
    end
    if meta.timeline == HYBRID then
        for _, author in ipairs(call('ZINTER', 2, prefix .. 'following:' .. reader,
            prefix .. 'merged')) do
            is_asked[author] = true
        end
    end
    for _, author in ipairs(followed) do
        local list = is_asked[author] and asked or pushed
        list[#list + 1] = author
    end
    return asked, pushed
end

-- Changes with the setting `timeline`: what was stored before is incomplete.
local function home_epoch()
    return call('HGET', KEYS[1], 'epoch') or '0'
end

-- The state of the stored part of the reader's timeline, or nil.
local function read_home_state(meta, reader)
    local state = call('HMGET', (home_keys(reader)), 'version', 'epoch', 'floor', 'cut', 'asked')
    if meta.timeline == PULL or not state[1] or state[2] ~= home_epoch() then
        return nil
    end
    return {version = state[1], floor = state[3], cut = state[4], asked = state[5]}
end

-- Whether unfollowing or deletions have emptied the home so much that it must be filled again.
local function is_thin(meta, reader, state)
    return state.floor and state.floor ~= '0'
        and count_entries(prefix .. 'home:' .. reader) < meta.home_size / 2
end
