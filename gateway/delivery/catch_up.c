/* catch_up.c - one step of one catcher at a time, as far as a turn's budget goes.
 *
 * A catcher stands in at most one list: of those that can go on, of those that wait for a page of a
 * log, or of those that have read everything and wait for what they have read to pass. One that
 * waits for its socket or its lane is in none. The idle handle runs while anybody can go on.
 *
 * The seam: a position in the ring is exact. Whoever reads a log has an id for each shard, and the
 * ring can be entered when it has lost no event above any of them; then events at or below these
 * ids are passed over. The log is read ahead of the live channel, so an id may be above the newest
 * that has passed: such a catcher reads on in the ring until that event has passed, too. */
#include "gateway/delivery/catch_up.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/intake/gap.h"

enum {
    STEP_BYTES = 64 << 10,   /* a catcher is given so much at once */
    TURN_BYTES = 256 << 10,  /* all of them together, in a turn of the loop */
    GATHER_BYTES = 16 << 10, /* less than this waits for the next page of the log, or a second */
    STEP_COST = 64, /* finding the next event that is wanted costs as much as these bytes */
    LOOK_COST = 4,  /* and each that is not, these */
    TICK_MS = 1000,
    WARN_EVERY_MS = 60000
};

enum catcher_state {
    CATCHER_RUNS,
    CATCHER_WAITS_FOR_SOCKET,
    CATCHER_WAITS_FOR_LANE,
    CATCHER_WAITS_FOR_LOG,
    CATCHER_WAITS_FOR_HEAD,
    CATCHER_LEAVES
};

struct catcher {
    struct catch_up *catch_up;
    struct client *client;
    struct lane *lane;
    struct outbox outbox;
    struct list_node in_lane, in_all;
    struct list_node node; /* by state */
    enum catcher_state state;
    uint32_t waits_for_shard;
    bool has_fallen; /* it was live */
    bool in_ring;
    uint64_t sequence;      /* the next to read in the ring; while reading the log: a guess */
    uint64_t unlogged_from; /* sequence: events without an id are owed from here on */
    uint64_t left_ring_at;  /* cursor then; where a gap of unlogged events begins */
    uint64_t had;           /* the cursor it came with; that event is not sent again */
    uint32_t waits;         /* for pages, since it has read of one */
    uint64_t sheet;         /* the number of the one it reads */
    uint64_t begun;         /* a bit for each shard whose log it has read from */
    uint64_t max_lag_ms;
    uint64_t fed_wall_ms;          /* when the newest event that it was given happened */
    uint64_t after[SL_SHARDS_MAX]; /* by shard: what it wants of it up to this id has been given */
};

struct catch_up {
    struct catch_up_settings settings;
    const struct ring *ring;
    struct log_pages *log;
    struct list all, running, at_head;
    struct list waiting[SL_SHARDS_MAX]; /* for pages of this shard's log */
    uv_idle_t idle;
    uv_timer_t tick_timer;
    unsigned open_handles;
    uint64_t wall_ms, monotonic_ms; /* when the turn, or what is done now, began */
    size_t budget;                  /* left in this turn; bytes */
};

/* --- waiting and going on --- */

static void on_idle(uv_idle_t *idle);

static struct list *list_of(struct catcher *catcher)
{
    struct catch_up *catch_up = catcher->catch_up;

    switch (catcher->state) {
    case CATCHER_RUNS:
        return &catch_up->running;
    case CATCHER_WAITS_FOR_LOG:
        return &catch_up->waiting[catcher->waits_for_shard];
    case CATCHER_WAITS_FOR_HEAD:
        return &catch_up->at_head;
    default:
        return NULL;
    }
}

/* Behind all others in the list of that state. */
static void enter(struct catcher *catcher, enum catcher_state state)
{
    if (list_contains(&catcher->node))
        list_remove(list_of(catcher), &catcher->node);
    catcher->state = state;
    if (list_of(catcher))
        list_append(list_of(catcher), &catcher->node);
    if (state == CATCHER_RUNS)
        uv_idle_start(&catcher->catch_up->idle, on_idle);
}

static void wait_for_log(struct catcher *catcher, uint32_t shard)
{
    if (list_contains(&catcher->node))
        list_remove(list_of(catcher), &catcher->node);
    catcher->waits_for_shard = shard;
    enter(catcher, CATCHER_WAITS_FOR_LOG);
}

static void evict(struct catcher *catcher, enum farewell farewell)
{
    enter(catcher, CATCHER_LEAVES);
    outbox_set_aside(catcher->client);
    catcher->client->transport->evict(catcher->client, farewell);
}

void catch_up_suspend(struct catcher *catcher)
{
    enter(catcher, CATCHER_LEAVES);
    outbox_set_aside(catcher->client);
}

void catch_up_evict_lane(struct lane *lane, enum farewell farewell)
{
    LIST_EACH(&lane->catchers, node)
    {
        struct catcher *catcher = LIST_OWNER(node, struct catcher, in_lane);

        if (catcher->state != CATCHER_LEAVES)
            evict(catcher, farewell);
    }
}

void catch_up_lane_ready(struct lane *lane)
{
    LIST_EACH(&lane->catchers, node)
    {
        struct catcher *catcher = LIST_OWNER(node, struct catcher, in_lane);

        if (catcher->state == CATCHER_WAITS_FOR_LANE)
            enter(catcher, CATCHER_RUNS);
    }
}

void catch_up_head_moved(struct catch_up *catch_up)
{
    LIST_EACH(&catch_up->at_head, node)
    enter(LIST_OWNER(node, struct catcher, node), CATCHER_RUNS);
}

void catch_up_writable(struct catcher *catcher)
{
    if (catcher->state == CATCHER_WAITS_FOR_SOCKET && catcher->client->place == CLIENT_IN_STEP)
        enter(catcher, CATCHER_RUNS);
}

/* --- where a catcher stands --- */

static uint64_t position(const struct catcher *catcher)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t shard = 0; shard < catcher->catch_up->ring->shards; shard++) {
        if (catcher->after[shard] < least)
            least = catcher->after[shard];
    }
    return least > catcher->had ? least : catcher->had;
}

uint64_t catch_up_cursor(const struct catcher *catcher)
{
    return outbox_client_cursor(catcher->client, position(catcher));
}

bool catch_up_is_unblocked(const struct catcher *catcher)
{
    return catcher->client->place == CLIENT_IN_STEP;
}

struct lane *catch_up_lane(const struct catcher *catcher)
{
    return catcher->lane;
}

/* Is it known that nothing at or below this id is still to come live, or that such an event has
 * been read already? */
static bool is_certain(const struct catcher *catcher, uint32_t shard)
{
    return catcher->after[shard] <= catcher->catch_up->ring->head[shard] ||
           (catcher->begun >> shard & 1);
}

static bool ring_has_rest(const struct catcher *catcher)
{
    const struct ring *ring = catcher->catch_up->ring;

    for (uint32_t shard = 0; shard < ring->shards; shard++) {
        if (catcher->after[shard] < ring->lost[shard] || !is_certain(catcher, shard))
            return false;
    }
    return true;
}

/* Everything that it has been given has passed here, too. */
static bool is_not_ahead(const struct catcher *catcher)
{
    const struct ring *ring = catcher->catch_up->ring;

    for (uint32_t shard = 0; shard < ring->shards; shard++) {
        if (catcher->after[shard] > ring->head[shard])
            return false;
    }
    return true;
}

/* --- giving --- */

static int give(struct catcher *catcher, struct event *event, struct sl_slice tail)
{
    return outbox_append(&catcher->outbox, event, position(catcher), tail, 0);
}

static int give_control_take(struct catcher *catcher, struct event *event)
{
    int r = event ? give(catcher, event, SL_SLICE_NONE) : -ENOMEM;

    event_unref(event);
    return r;
}

static int give_gap(struct catcher *catcher, uint32_t shard, uint64_t from, uint64_t to,
                    enum gap_reason reason)
{
    const struct gap gap = {shard, from, to, reason};

    metric_add(catcher->catch_up->settings.metrics, metric_at(METRIC_GAPS_TOLD, reason), 1);
    return give_control_take(catcher, gap_event(&gap));
}

static void sample_clocks(struct catch_up *catch_up)
{
    catch_up->wall_ms = clock_wall_ms();
    catch_up->monotonic_ms = clock_monotonic_ms();
}

static uint64_t happened_wall_ms(const struct catch_up *catch_up, const struct event *event)
{
    uint64_t age_ms = catch_up->monotonic_ms > event->received_ms
                          ? catch_up->monotonic_ms - event->received_ms
                          : 0;

    return event->id ? sl_id_time_ms(event->id) : catch_up->wall_ms - age_ms;
}

/* A guess while the log is read, which may be ahead of what has passed here. */
static uint64_t events_behind(const struct catcher *catcher)
{
    uint64_t next = catcher->catch_up->ring->next;

    return next > catcher->sequence ? next - catcher->sequence : 0;
}

/* Told when the socket has just taken all there was, so that it is read while it is still true. */
static int warn_if_due(struct catcher *catcher, uint64_t event_wall_ms)
{
    struct catch_up *catch_up = catcher->catch_up;
    uint64_t now_ms = uv_now(catch_up->settings.loop);
    struct client *client = catcher->client;
    char json[128];
    int size;

    if (!catcher->has_fallen || (client->warned_ms && now_ms - client->warned_ms < WARN_EVERY_MS))
        return 0;
    client->warned_ms = now_ms;
    size = snprintf(json, sizeof(json),
                    "{\"type\":\"warning\",\"code\":\"behind\",\"events\":%" PRIu64
                    ",\"ms\":%" PRIu64 "}",
                    events_behind(catcher),
                    catch_up->wall_ms > event_wall_ms ? catch_up->wall_ms - event_wall_ms : 0);
    return give_control_take(catcher,
                             event_new_control(EVENT_WARNING, sl_slice(json, (size_t)size)));
}

void catch_up_distance(const struct catcher *catcher, uint64_t wall_ms, uint64_t *ret_events,
                       uint64_t *ret_ms)
{
    *ret_events = events_behind(catcher);
    *ret_ms = wall_ms > catcher->fed_wall_ms ? wall_ms - catcher->fed_wall_ms : 0;
}

static bool has_room(const struct catcher *catcher, uint64_t bytes_before)
{
    return catcher->outbox.bytes - bytes_before < STEP_BYTES && catcher->catch_up->budget > 0;
}

static void spend(struct catch_up *catch_up, size_t bytes)
{
    catch_up->budget -= bytes < catch_up->budget ? bytes : catch_up->budget;
}

static int offer(struct catcher *catcher, struct event *event, struct sl_slice tail)
{
    uint64_t bytes = catcher->outbox.bytes;
    int r;

    catcher->fed_wall_ms = happened_wall_ms(catcher->catch_up, event);
    r = warn_if_due(catcher, catcher->fed_wall_ms);
    if (r == 0)
        r = give(catcher, event, tail);
    spend(catcher->catch_up, catcher->outbox.bytes - bytes);
    return r;
}

static int next_wanted(struct catcher *catcher, struct page *page, size_t place, size_t *ret_place,
                       struct sl_slice *ret_tail)
{
    int r = lane_next_wanted(catcher->lane, page, place, ret_place, ret_tail);

    if (r == 0)
        spend(catcher->catch_up, STEP_COST + (*ret_place - place) * LOOK_COST);
    return r;
}

/* --- from the ring --- */

enum progress {
    PROGRESS,
    PROGRESS_AT_HEAD,
    PROGRESS_NEEDS_LOG, /* of a shard; read_log() leaves it in `waits_for_shard` */
    PROGRESS_NEEDS_LANE,
    PROGRESS_OUT_OF_MEMORY,
    PROGRESS_OVERTAKEN /* the log was trimmed while it was read */
};

static bool was_given(const struct catcher *catcher, const struct page_entry *entry)
{
    return entry->id ? entry->id <= catcher->after[entry->event->shard]
                     : entry->event->sequence < catcher->unlogged_from;
}

static void pass_by(struct catcher *catcher, const struct page_entry *entry)
{
    uint64_t *after = &catcher->after[entry->event->shard];

    if (entry->id > *after)
        *after = entry->id;
    catcher->sequence++;
}

static enum progress read_ring(struct catcher *catcher, uint64_t bytes_before)
{
    const struct ring *ring = catcher->catch_up->ring;
    struct page *page;
    size_t place;

    if (catcher->sequence < ring->oldest) {
        catcher->in_ring = false;
        catcher->left_ring_at = position(catcher);
        if (catcher->sequence > catcher->unlogged_from)
            catcher->unlogged_from = catcher->sequence;
        return PROGRESS;
    }
    if (catcher->sequence == ring->next)
        return PROGRESS_AT_HEAD;
    page = ring_find(ring, catcher->sequence, &place);
    while (place < page->count && has_room(catcher, bytes_before)) {
        const struct page_entry *entry;
        struct sl_slice tail;
        size_t next;

        if (next_wanted(catcher, page, place, &next, &tail) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        while (place < next)
            pass_by(catcher, &page->entries[place++]);
        if (place == page->count)
            break;
        entry = &page->entries[place++];
        if (!was_given(catcher, entry) && offer(catcher, entry->event, tail) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        pass_by(catcher, entry);
    }
    return PROGRESS;
}

static enum progress enter_ring(struct catcher *catcher)
{
    const struct ring *ring = catcher->catch_up->ring;

    catcher->in_ring = true;
    catcher->sequence = ring->oldest;
    if (ring->lost_unlogged <= catcher->unlogged_from)
        return PROGRESS;
    catcher->unlogged_from = ring->lost_unlogged;
    return give_gap(catcher, 0, catcher->left_ring_at, position(catcher), GAP_UNLOGGED) < 0
               ? PROGRESS_OUT_OF_MEMORY
               : PROGRESS;
}

/* --- from the log --- */

/* The log's end, as far as this sheet knows. */
static enum progress end_of_log(struct catcher *catcher, struct log_sheet *sheet)
{
    struct catch_up *catch_up = catcher->catch_up;
    const struct ring *ring = catch_up->ring;
    uint32_t shard = sheet->shard;
    uint64_t *after = &catcher->after[shard];
    bool has_begun = catcher->begun >> shard & 1;
    uint64_t lost_to = sheet->is_unreadable ? ring->lost[shard] : sheet->known;

    if (!is_certain(catcher, shard))
        *after = ring->head[shard]; /* no event of ours, and in the future */
    if (*after >= ring->lost[shard])
        return PROGRESS;
    if (*after >= lost_to) { /* the ring has lost more since the sheet was read */
        log_pages_drop(catch_up->log, sheet);
        return PROGRESS_NEEDS_LOG;
    }
    if (has_begun && !sheet->is_unreadable)
        return PROGRESS_OVERTAKEN;
    if (give_gap(catcher, shard, *after, lost_to,
                 sheet->is_unreadable ? GAP_REDIS : GAP_RETENTION) < 0)
        return PROGRESS_OUT_OF_MEMORY;
    *after = lost_to;
    return PROGRESS;
}

/* What the log does not hold any more between what was given and this entry. A client that is told
 * so when it begins goes on; one that was too slow for the log comes back and is told then. */
static enum progress tell_trimmed(struct catcher *catcher, uint32_t shard,
                                  const struct page_entry *entry)
{
    uint64_t after = catcher->after[shard];

    if (sl_id_shard(catcher->had) == shard && catcher->had > after)
        after = catcher->had;
    if (entry->previous <= after)
        return PROGRESS;
    if (catcher->begun >> shard & 1)
        return PROGRESS_OVERTAKEN;
    return give_gap(catcher, shard, after, entry->previous, GAP_RETENTION) < 0
               ? PROGRESS_OUT_OF_MEMORY
               : PROGRESS;
}

static void pass_log(struct catcher *catcher, const struct log_sheet *sheet, size_t from, size_t to)
{
    catcher->after[sheet->shard] = sheet->page->entries[to - 1].id;
    catcher->begun |= UINT64_C(1) << sheet->shard;
    catcher->sequence += to - from;
}

/* Reads the sheet from this place on, up to the id `limit`. What is missing between two entries of
 * a sheet is looked for where the lane wants the second, which is as good as anywhere. */
static enum progress read_sheet(struct catcher *catcher, struct log_sheet *sheet, size_t place,
                                uint64_t limit, uint64_t bytes_before)
{
    const struct page_entry *entries = sheet->page->entries;
    size_t end = page_find_above(sheet->page, limit - 1);
    enum progress progress;
    struct sl_slice tail;
    size_t next;

    while (place < end && has_room(catcher, bytes_before)) {
        progress = tell_trimmed(catcher, sheet->shard, &entries[place]);
        if (progress != PROGRESS)
            return progress;
        if (next_wanted(catcher, sheet->page, place, &next, &tail) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        if (next >= end) {
            pass_log(catcher, sheet, place, end);
            break;
        }
        if (next > place) {
            pass_log(catcher, sheet, place, next);
            progress = tell_trimmed(catcher, sheet->shard, &entries[next]);
            if (progress != PROGRESS)
                return progress;
        }
        if (entries[next].id != catcher->had && offer(catcher, entries[next].event, tail) < 0)
            return PROGRESS_OUT_OF_MEMORY;
        pass_log(catcher, sheet, next, next + 1);
        place = next + 1;
    }
    return PROGRESS;
}

static void ask_log(struct catcher *catcher, uint32_t shard)
{
    struct catch_up *catch_up = catcher->catch_up;

    if (catch_up->log)
        log_pages_ask(catch_up->log, shard, catcher->after[shard], catch_up->ring->head[shard]);
}

/* Where a shard's log goes on. */
struct branch {
    struct log_sheet *sheet; /* NULL: it has ended */
    size_t place;
    uint64_t id;
};

static enum progress find_branch(struct catcher *catcher, uint32_t shard, struct branch *ret)
{
    struct log_pages *log = catcher->catch_up->log;
    struct log_sheet *sheet = log ? log_pages_find(log, shard, catcher->after[shard]) : NULL;

    *ret = (struct branch){.id = UINT64_MAX};
    if (!sheet)
        return PROGRESS_NEEDS_LOG;
    ret->place = page_find_above(sheet->page, catcher->after[shard]);
    if (ret->place < sheet->page->count) {
        ret->sheet = sheet;
        ret->id = sheet->page->entries[ret->place].id;
        return PROGRESS;
    }
    return end_of_log(catcher, sheet);
}

/* Reads on in the log whose next event is the oldest, until another's is. When the pages of several
 * logs push each other out of memory, it takes what is there at last, in an order between shards
 * that is not promised. */
static enum progress read_log(struct catcher *catcher, uint64_t bytes_before)
{
    const struct ring *ring = catcher->catch_up->ring;
    struct branch best = {.id = UINT64_MAX}, branch;
    uint64_t limit = UINT64_MAX;
    uint32_t missing = UINT32_MAX;
    enum progress progress;

    if (ring_has_rest(catcher))
        return enter_ring(catcher);
    for (uint32_t shard = 0; shard < ring->shards; shard++) {
        progress = find_branch(catcher, shard, &branch);
        if (progress == PROGRESS_NEEDS_LOG) {
            missing = shard;
            ask_log(catcher, shard);
        } else if (progress != PROGRESS) {
            return progress;
        }
        if (branch.id < best.id) {
            limit = best.id;
            best = branch;
        } else if (branch.id < limit) {
            limit = branch.id;
        }
    }
    if (missing < ring->shards && (!best.sheet || catcher->waits <= 2 * ring->shards)) {
        catcher->waits_for_shard = missing;
        return PROGRESS_NEEDS_LOG;
    }
    if (!best.sheet)
        return PROGRESS; /* all have ended */
    catcher->waits = 0;
    if (catcher->sheet != best.sheet->number)
        log_pages_note_use(catcher->catch_up->log, best.sheet);
    catcher->sheet = best.sheet->number;
    return read_sheet(catcher, best.sheet, best.place, limit, bytes_before);
}

/* --- steps --- */

static void catcher_free(struct catcher *catcher)
{
    struct catch_up *catch_up = catcher->catch_up;

    if (list_contains(&catcher->node))
        list_remove(list_of(catcher), &catcher->node);
    lane_remove_catcher(catcher->lane, &catcher->in_lane);
    list_remove(&catch_up->all, &catcher->in_all);
    metric_sub(catch_up->settings.metrics, METRIC_CATCHING_UP, 1);
    if (list_is_empty(&catch_up->all))
        uv_timer_stop(&catch_up->tick_timer);
    catcher->client->catcher = NULL;
    outbox_done(&catcher->outbox);
    mem_free(catcher);
}

void catch_up_leave(struct catcher *catcher)
{
    outbox_leave(catcher->client);
    catcher_free(catcher);
}

static void go_live(struct catcher *catcher)
{
    struct client *client = catcher->client;

    outbox_leave(client);
    outbox_join(&catcher->lane->outbox, client);
    catcher_free(catcher);
}

static enum progress read_some(struct catcher *catcher)
{
    uint64_t bytes_before = catcher->outbox.bytes;
    enum progress progress;

    if (!lane_is_ready(catcher->lane))
        return PROGRESS_NEEDS_LANE;
    do {
        progress =
            catcher->in_ring ? read_ring(catcher, bytes_before) : read_log(catcher, bytes_before);
    } while (progress == PROGRESS && has_room(catcher, bytes_before));
    return progress;
}

/* Few bytes, and more may come soon: a send costs the same however little it carries. */
static bool gathers(const struct catcher *catcher)
{
    return outbox_gathered_bytes(&catcher->outbox) < GATHER_BYTES;
}

/* false: the catcher waits for its socket now, or leaves. */
static bool flush(struct catcher *catcher)
{
    outbox_flush(&catcher->outbox, uv_now(catcher->catch_up->settings.loop));
    if (catcher->client->place == CLIENT_IN_STEP)
        return true;
    enter(catcher, catcher->client->place == CLIENT_BEHIND ? CATCHER_WAITS_FOR_SOCKET
                                                           : CATCHER_LEAVES); /* broken */
    return false;
}

static void step(struct catcher *catcher)
{
    enum progress progress = read_some(catcher);

    if (progress == PROGRESS_OUT_OF_MEMORY) {
        evict(catcher, FAREWELL_INTERNAL);
        return;
    }
    if (progress == PROGRESS_NEEDS_LOG && gathers(catcher)) {
        catcher->waits++;
        wait_for_log(catcher, catcher->waits_for_shard);
        return;
    }
    if (!flush(catcher))
        return;
    if (progress == PROGRESS_OVERTAKEN) {
        evict(catcher, FAREWELL_TOO_SLOW);
    } else if (progress == PROGRESS) {
        enter(catcher, CATCHER_RUNS);
    } else if (progress == PROGRESS_NEEDS_LANE) {
        enter(catcher, CATCHER_WAITS_FOR_LANE);
    } else if (progress == PROGRESS_NEEDS_LOG) {
        catcher->waits++;
        wait_for_log(catcher, catcher->waits_for_shard);
    } else if (is_not_ahead(catcher)) {
        go_live(catcher);
    } else {
        enter(catcher, CATCHER_WAITS_FOR_HEAD);
    }
}

static void on_idle(uv_idle_t *idle)
{
    struct catch_up *catch_up = idle->data;
    struct list_node *first;

    sample_clocks(catch_up);
    catch_up->budget = TURN_BYTES;
    while (catch_up->budget > 0 && (first = list_first(&catch_up->running)))
        step(LIST_OWNER(first, struct catcher, node));
    if (list_is_empty(&catch_up->running))
        uv_idle_stop(idle);
}

/* A sheet has come: those it serves go on; the next of the others has his turn to ask. */
static void on_sheet(void *owner, uint32_t shard, const struct log_sheet *sheet)
{
    struct catch_up *catch_up = owner;
    struct list_node *first;

    LIST_EACH(&catch_up->waiting[shard], node)
    {
        struct catcher *catcher = LIST_OWNER(node, struct catcher, node);
        uint64_t after = catcher->after[shard];

        if (sheet && after >= sheet->after && after < sheet->end)
            enter(catcher, CATCHER_RUNS);
    }
    first = list_first(&catch_up->waiting[shard]);
    if (first)
        ask_log(LIST_OWNER(first, struct catcher, node), shard);
}

void catch_up_set_log(struct catch_up *catch_up, struct log_pages *log)
{
    catch_up->log = log;
    if (log)
        log_pages_on_change(log, on_sheet, catch_up);
}

/* --- who is too slow --- */

/* Only a socket that takes nothing makes a client slow: what we or Redis are late with is not its
 * fault. */
static bool is_too_slow(const struct catcher *catcher, uint64_t now_ms)
{
    return catcher->state == CATCHER_WAITS_FOR_SOCKET &&
           now_ms > catcher->fed_wall_ms + catcher->max_lag_ms;
}

static void on_tick(uv_timer_t *timer)
{
    struct catch_up *catch_up = timer->data;
    uint64_t now_ms = clock_wall_ms();

    LIST_EACH(&catch_up->all, node)
    {
        struct catcher *catcher = LIST_OWNER(node, struct catcher, in_all);

        if (is_too_slow(catcher, now_ms))
            evict(catcher, FAREWELL_TOO_SLOW);
        else if (catcher->state == CATCHER_WAITS_FOR_LOG)
            flush(catcher);
    }
}

/* --- beginning --- */

static struct catcher *catcher_new(struct catch_up *catch_up, struct lane *lane,
                                   struct client *client)
{
    struct outbox_settings settings = lane->outbox.settings;
    struct catcher *catcher = mem_zalloc(sizeof(*catcher));

    if (!catcher)
        return NULL;
    settings.max_owed_bytes = SIZE_MAX;
    settings.overrun = NULL;
    outbox_init(&catcher->outbox, &settings, catch_up->settings.counts);
    catcher->catch_up = catch_up;
    catcher->client = client;
    catcher->lane = lane;
    catcher->max_lag_ms = catch_up->settings.max_lag_ms;
    catcher->fed_wall_ms = clock_wall_ms();
    return catcher;
}

/* From one outbox to the other. */
static void start(struct catcher *catcher)
{
    struct catch_up *catch_up = catcher->catch_up;
    struct client *client = catcher->client;

    outbox_leave(client);
    outbox_join(&catcher->outbox, client);
    client->catcher = catcher;
    lane_add_catcher(catcher->lane, &catcher->in_lane);
    if (list_is_empty(&catch_up->all))
        uv_timer_start(&catch_up->tick_timer, on_tick, TICK_MS, TICK_MS);
    list_append(&catch_up->all, &catcher->in_all);
    metric_add(catch_up->settings.metrics, METRIC_CATCHING_UP, 1);
}

/* A cursor above the newest event that has passed may be an event that has not passed yet, or a
 * time: the log tells, which is then read from that id on. Of other shards it says no more than
 * that all before is done. */
static uint64_t after_of_shard(const struct ring *ring, uint32_t shard, uint64_t cursor)
{
    if (cursor <= ring->head[shard])
        return cursor;
    return ring->shards == 1 || shard == sl_id_shard(cursor) ? cursor - 1 : ring->head[shard];
}

int catch_up_begin(struct catch_up *catch_up, struct lane *lane, struct client *client,
                   uint64_t cursor)
{
    const struct ring *ring = catch_up->ring;
    struct catcher *catcher = catcher_new(catch_up, lane, client);
    uint64_t came_ms = sl_id_time_ms(cursor);

    if (!catcher)
        return -ENOMEM;
    catcher->had = cursor;
    catcher->unlogged_from = ring->next;
    catcher->sequence = ring->next;
    if (catcher->fed_wall_ms > came_ms)
        catcher->max_lag_ms += catcher->fed_wall_ms - came_ms;
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        catcher->after[shard] = after_of_shard(ring, shard, cursor);
    start(catcher);
    enter(catcher, CATCHER_RUNS);
    metric_add(catch_up->settings.metrics, METRIC_RESUMED, 1);
    return 0;
}

/* What has passed up to there, and the lane wants, is in its outbox. */
static uint64_t all_owed_until(const struct lane *lane, uint64_t head)
{
    const struct outbox *outbox = &lane->outbox;

    return outbox->is_incomplete && outbox->complete_until < head ? outbox->complete_until : head;
}

int catch_up_fall(struct catch_up *catch_up, struct lane *lane, struct client *client)
{
    struct catcher *catcher = catcher_new(catch_up, lane, client);
    const struct event *event = outbox_owed(client, client->at);
    uint64_t owed = 0; /* a bit for each shard of which something is */

    if (!catcher)
        return -ENOMEM;
    sample_clocks(catch_up);
    catcher->has_fallen = true;
    catcher->in_ring = true;
    catcher->begun = UINT64_MAX;
    catcher->sequence = catcher->unlogged_from = event->sequence;
    catcher->fed_wall_ms = happened_wall_ms(catch_up, event);
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        catcher->after[shard] = all_owed_until(lane, catch_up->ring->head[shard]);
    for (uint64_t at = client->at; (event = outbox_owed(client, at)); at++) {
        if (event->id && !(owed >> event->shard & 1))
            catcher->after[event->shard] = event->id - 1;
        if (event->id)
            owed |= UINT64_C(1) << event->shard;
    }
    start(catcher);
    enter(catcher, CATCHER_WAITS_FOR_SOCKET);
    metric_add(catch_up->settings.metrics, METRIC_FALLEN_BEHIND, 1);
    return 0;
}

/* --- made and freed --- */

struct catch_up *catch_up_new(const struct catch_up_settings *settings)
{
    struct catch_up *catch_up = mem_zalloc(sizeof(*catch_up));

    if (!catch_up)
        return NULL;
    catch_up->settings = *settings;
    catch_up->ring = settings->ring;
    list_init(&catch_up->all);
    list_init(&catch_up->running);
    list_init(&catch_up->at_head);
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        list_init(&catch_up->waiting[shard]);
    catch_up->open_handles = 2;
    uv_idle_init(settings->loop, &catch_up->idle);
    uv_timer_init(settings->loop, &catch_up->tick_timer);
    catch_up->idle.data = catch_up->tick_timer.data = catch_up;
    return catch_up;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct catch_up *catch_up = handle->data;

    if (--catch_up->open_handles == 0)
        mem_free(catch_up);
}

void catch_up_free(struct catch_up *catch_up)
{
    if (!catch_up)
        return;
    uv_close((uv_handle_t *)&catch_up->idle, on_handle_closed);
    uv_close((uv_handle_t *)&catch_up->tick_timer, on_handle_closed);
}
