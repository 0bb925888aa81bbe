-- home_read.lua - a page of a home timeline: this shard's part of it, and whom else to ask.
--
-- Runs in the shard of the reader, who counts as active from now on. ARGV: shards, request id (not
-- used), reader ('=ID' or '@FOLDED LOGIN'), before ('+inf' or '(ID'), after ('-inf' or '(ID'),
-- limit, form of the rows (see view_of), 1 if only the stored part is wanted, because the authors
-- have been asked before. Returns {reader's id, size of a timeline, id above which the stored posts
-- are complete, how many posts come before the page (at most), id above which those of authors of
-- this shard are complete, these authors; authors to ask; authors to ask for what is older than the
-- stored part, from where on; stored posts to ask for; rows (see read_part)}.
local FEED_AUTHORS = 250

local meta, refusal = open_shard('timeline', 'home_size', 'home_away_ms')
if not meta then
    return refusal
end
local user
user, refusal = read_user(ARGV[3])
if not user then
    return refusal
end
local reader, before, after, limit = user.id, ARGV[4], ARGV[5], tonumber(ARGV[6])
local form, only_kept = ARGV[7], ARGV[8] == '1'
local active, home, behind = home_keys(reader)
check_home(reader)
check_tasks()

-- Makes the reader active: from now on posts are pushed. A task does the rest.
local function be_active()
    local state = read_home_state(meta, reader)
    local clock, damage = read_clock()
    if not clock then
        return nil, damage
    end
    if not state then
        take_id(clock)
        call('UNLINK', active, home, behind)
        call('HSET', active, 'version', clock.id, 'epoch', home_epoch())
        state = {version = clock.id}
    end
    for _, key in ipairs({active, home, behind}) do
        call('PEXPIRE', key, meta.home_away_ms)
    end
    if (not state.floor or call('SCARD', behind) > 0 or is_thin(meta, reader, state))
        and (not state.asked or clock.now_ms - tonumber(state.asked) > ASK_AGAIN_MS) then
        call('HSET', active, 'asked', print_id(clock.now_ms))
        enqueue('backfill', state.version, 'user', reader)
    end
    return state
end

local state
if meta.timeline ~= PULL then
    state, refusal = be_active()
    if not state then
        return refusal
    end
end

-- The stored part.
local kept, kept_until, newer = {}, 0, 0
local posts, elsewhere, entry_of = {}, {}, {}
local is_end = true
if state and state.floor then
    kept, newer = read_entries(home, before, after, limit)
    is_end = #kept < limit
    for _, entry in ipairs(kept) do
        local id = string.match(entry, '^%d+')
        local list = is_here(id) and posts or elsewhere
        list[#list + 1] = id
        entry_of[id] = entry
    end
    kept_until = is_end and 0 or entry_post(kept[#kept]) - 1
end

-- The authors to ask.
local asked, pushed = home_authors(meta, reader, state)
local below = state and tonumber(state.floor or 0) or 0
if not is_end or below == 0 then
    pushed = {}
end
if not only_kept and before ~= '+inf' and below >= tonumber(string.sub(before, 2)) - 1 then
    for _, author in ipairs(pushed) do -- nothing of this page is stored
        asked[#asked + 1] = author
    end
    pushed = {}
end
local fed, others = {}, {}
for _, author in ipairs(only_kept and {} or asked) do
    local list = is_here(author) and #fed < FEED_AUTHORS and fed or others
    list[#list + 1] = author
end

local rows, fed_until, missing = read_part(reader, posts, fed, before, after, limit, form)
for _, id in ipairs(missing) do
    remove_entry(home, entry_of[id])
end
return {reader, print_id(meta.home_size), print_id(kept_until),
    print_id(newer + count_newer(fed, before)), print_id(fed_until), fed, others, pushed,
    print_id(below), elsewhere, rows}
