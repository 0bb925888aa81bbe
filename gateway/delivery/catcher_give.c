/* catcher_give.c - advances the position, and puts events into the outbox.
 *
 * Each event contains a cursor for what has been sent with it. If this client's cursor is not the
 * same as that of other clients that are sent the event, it is given a copy with its own. Costs are
 * counted in bytes of the turn's budget. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "gateway/delivery/catcher_parts.h"

enum {
    STEP_COST = 64, /* the cost of finding the next wanted event, in bytes */
    LOOK_COST = 4,  /* and of each event that is not wanted */
    WARN_EVERY_MS = 60000
};

/* --- the position --- */

uint64_t catcher_at_shard(const struct catcher *catcher, uint32_t shard)
{
    return position_of_shard(catcher->counter ? &catcher->counts_from : &catcher->at, shard);
}

uint64_t catcher_had_of_shard(const struct catcher *catcher, uint32_t shard)
{
    uint64_t at = catcher_at_shard(catcher, shard), last = catcher->last[shard];

    return last > at ? last : at;
}

/* As long as it is unknown whether the event of its cursor has happened, that event is searched
 * for. */
uint64_t catcher_after(const struct catcher *catcher, uint32_t shard)
{
    return catcher_had_of_shard(catcher, shard) - catcher->is_unsure;
}

bool catch_up_has_heard_of(const struct catch_up *catch_up, uint64_t id)
{
    return id <= catch_up->ring->newest || id <= catch_up->ring->head[sl_id_shard(id)];
}

bool catcher_is_not_ahead(const struct catcher *catcher)
{
    return catcher->at.id <= catcher->catch_up->ring->newest;
}

bool catcher_is_in_step(const struct catcher *catcher)
{
    const struct position *passed = catcher->catch_up->settings.passed;

    for (uint64_t rest = catcher->counter ? 0 : passed->behind; rest; rest &= rest - 1) {
        uint32_t shard = (uint32_t)__builtin_ctzll(rest);

        if (catcher_at_shard(catcher, shard) > passed->low[shard])
            return false;
    }
    return catcher_is_not_ahead(catcher);
}

void catcher_skip_to_head(struct catcher *catcher)
{
    const struct catch_up *catch_up = catcher->catch_up;
    const struct sl_cursor passed = position_cursor(catch_up->settings.passed);

    position_reach(&catcher->at, &passed);
    memcpy(catcher->last, catch_up->ring->passed, sizeof(catcher->last));
    catcher->sequence = catcher->unlogged_from = catch_up->passed_to;
}

void catcher_move_in_ring(struct position *at, const struct event *event)
{
    const struct sl_cursor id = {.id = event->id};

    position_reach(at, event->cursor ? event->cursor : &id);
}

/* For shards that are behind now, more events may be logged before it. Late events in the ring also
 * come before it; they are read there, or from the log when they have left the ring. What the log
 * has of a gap is read before what the ring has of other shards. */
void catcher_move_in_log(const struct catcher *catcher, struct position *at, uint32_t shard,
                         uint64_t id)
{
    const struct position *passed = catcher->catch_up->settings.passed;
    const struct ring *ring = catcher->catch_up->ring;
    uint64_t held = passed->behind | ring->late_shards, lows[SL_SHARDS_MAX];

    if (id > ring->lost_of_all)
        held = UINT64_MAX >> (SL_SHARDS_MAX - ring->shards);
    for (uint32_t i = 0; held && i < ring->shards; i++) {
        lows[i] = ring->lost_of_all;
        if (ring->late_shards >> i & 1)
            lows[i] = ring->lost[i];
        else if (passed->behind >> i & 1 && passed->low[i] < lows[i])
            lows[i] = passed->low[i];
    }
    position_pass(at, shard, id, held, lows);
}

bool catcher_claims(const struct catcher *catcher, const struct event *event)
{
    return event->id <= sl_cursor_of_shard(&catcher->had, event->shard) &&
           (event->sequence < catcher->came_at || catcher->claims >> event->shard & 1);
}

void catcher_take_back_claim(struct catcher *catcher, uint32_t shard)
{
    if (sl_id_shard(sl_cursor_of_shard(&catcher->had, shard)) != shard)
        catcher->claims &= ~(UINT64_C(1) << shard);
}

bool catcher_is_late_news(const struct catcher *catcher, const struct event *event)
{
    return event->is_late && event->sequence >= catcher->came_at && !catcher_claims(catcher, event);
}

/* --- giving --- */

/* The cursor with which it could resume. */
struct sl_cursor catcher_cursor(const struct catcher *catcher)
{
    if (catcher->counter)
        return counter_cursor(catcher->counter);
    return position_cursor(&catcher->at);
}

static int give_control(struct catcher *catcher, struct event *event)
{
    const struct sl_cursor before = catcher_cursor(catcher);

    if (catcher_tell_left_out(catcher) < 0)
        return -ENOMEM;
    return outbox_append(&catcher->outbox, event, &before, SL_SLICE_NONE, 0);
}

int catcher_tell_left_out(struct catcher *catcher)
{
    struct left_out *left_out = &catcher->left_out;
    const struct sl_cursor after = catcher_cursor(catcher);
    struct event *event;
    int r;

    if (left_out->posts == 0)
        return 0;
    event = left_out_message(left_out, &after, catcher->last, 0);
    if (!event)
        return -ENOMEM;
    r = outbox_append(&catcher->outbox, event, &left_out->before, SL_SLICE_NONE, 0);
    event_unref(event);
    if (r < 0)
        return r;
    metric_add(catcher->catch_up->settings.metrics, METRIC_POSTS_SKIPPED, left_out->posts);
    left_out->posts = 0;
    return 0;
}

/* A post that is late only for this client is sent, too. */
static bool leaves_out(const struct catcher *catcher, const struct event *event)
{
    return lane_leaves_out(catcher->lane, event) && event->id > catcher->at.id &&
           !catcher_is_late_news(catcher, event);
}

/* The event contains the cursor of the other clients. If this client is not at the same position,
 * because a shard is behind or the event is late only for it, it is given a copy with its own
 * cursor. */
static int give_as_it_stands(struct catcher *catcher, struct event *event, struct sl_slice tail)
{
    struct position after = catcher->at;
    struct sl_cursor before, cursor, id = {.id = event->id};
    bool is_late = event->id < catcher->at.id;
    struct event *copy;
    int r;

    if (catcher_is_late_news(catcher, event))
        position_lower_shard(&after, event->shard, event->previous);
    before = position_cursor(&after);
    if (catcher->in_ring)
        catcher_move_in_ring(&after, event);
    else
        catcher_move_in_log(catcher, &after, event->shard, event->id);
    cursor = position_cursor(&after);
    if (is_late == event->is_late && sl_cursor_equals(&cursor, event->cursor ? event->cursor : &id))
        return outbox_append(&catcher->outbox, event, &before, tail, 0);
    copy = event_copy_with_cursor(event, &cursor, is_late);
    if (!copy)
        return -ENOMEM;
    r = outbox_append(&catcher->outbox, copy, &before, tail, 0);
    event_unref(copy);
    return r;
}

/* The client may be elsewhere than the clients that got it when it passed. */
static int give_unlogged(struct catcher *catcher, struct event *event, struct sl_slice tail)
{
    const struct sl_cursor cursor = catcher_cursor(catcher);
    struct event *placed = event_at_cursor(event, &cursor);
    int r = placed ? outbox_append(&catcher->outbox, placed, &cursor, tail, 0) : -ENOMEM;

    event_unref(placed);
    return r;
}

static int give(struct catcher *catcher, struct event *event, struct sl_slice tail)
{
    const struct sl_cursor before = {.id = catcher->at.id};

    if (event->id && catcher->catch_up->ring->shards > 1 &&
        (!position_is_plain(&catcher->at) || event->cursor || event->id < catcher->at.id ||
         !position_is_plain(catcher->catch_up->settings.passed)))
        return give_as_it_stands(catcher, event, tail);
    if (event_is_unlogged(event))
        return give_unlogged(catcher, event, tail);
    if (!event->id && !position_is_plain(&catcher->at))
        return give_control(catcher, event);
    return outbox_append(&catcher->outbox, event, &before, tail, 0);
}

int catcher_give_control_take(struct catcher *catcher, struct event *event)
{
    int r = event ? give_control(catcher, event) : -ENOMEM;

    event_unref(event);
    return r;
}

int catcher_send_gap(struct catcher *catcher, const struct gap *gap)
{
    const struct catch_up *catch_up = catcher->catch_up;
    bool names_shard = catch_up->ring->shards > 1 && gap->reason != GAP_UNLOGGED;

    metric_add(catch_up->settings.metrics, metric_at(METRIC_GAPS_TOLD, gap->reason), 1);
    return catcher_give_control_take(catcher, gap_event(gap, names_shard));
}

int catcher_tell_gap(struct catcher *catcher, uint32_t shard, uint64_t from, uint64_t to,
                     enum gap_reason reason)
{
    if (catcher->counter)
        counter_gap(catcher->counter, shard, from, to, reason);
    if (catcher->counter && to <= counter_silent_until(catcher->counter))
        return 0; /* the message says that it is incomplete */
    return catcher_send_gap(catcher, &(struct gap){shard, from, to, reason});
}

int catcher_tell_unlogged(struct catcher *catcher)
{
    uint64_t from = counter_cursor(catcher->counter).id;
    uint64_t passed = catcher->catch_up->settings.passed->id;

    return catcher_tell_gap(catcher, 0, from, passed > from ? passed : from, GAP_UNLOGGED);
}

/* What it has of the shard, it was sent or told by the server that issued its cursor, unless that
 * server derived it from a plain cursor: then it is not an id of the shard, nor the end of a
 * round. */
static bool knows_what_it_has(const struct catcher *catcher, uint32_t shard)
{
    uint64_t had = sl_cursor_of_shard(&catcher->had, shard);

    return had < catcher->had.id && (sl_id_shard(had) == shard || (had + 1) % SL_ID_PER_MS == 0);
}

bool catch_up_claims(const struct lane *lane, uint64_t had, uint64_t from, uint64_t to,
                     uint64_t *ret_to)
{
    uint64_t begin = had;

    *ret_to = had;
    if (lane->question.bucket_ms && !lane->question.pick.behind && had > 0) {
        begin = count_bucket_before(&lane->question, had) + 1;
        *ret_to = count_bucket_id(&lane->question, had);
    }
    return *ret_to > from && begin <= to;
}

int catcher_tell_late(struct catcher *catcher, uint32_t shard, uint64_t from, uint64_t to)
{
    uint64_t had = sl_cursor_of_shard(&catcher->had, shard), end;
    const struct gap *told = &catcher->late;

    if (!catcher->has_come || !catch_up_claims(catcher->lane, had, from, to, &end) ||
        knows_what_it_has(catcher, shard))
        return 0;
    if (told->shard == shard && told->to == end && told->from <= from)
        return 0;
    catcher->late = (struct gap){shard, from, end, GAP_LATE};
    catcher->client->told_late |= UINT64_C(1) << shard;
    return catcher_tell_gap(catcher, shard, from, end, GAP_LATE);
}

/* The rewind of the shard that has lost a part of the bucket of the client's cursor, or all of it;
 * NULL: none. What the client was sent of that bucket is no longer what the log says, and it left
 * before it was told, or perhaps after: then it is told twice. If the ring has the cursor after the
 * gap, the id was assigned again. */
static const struct ring_rewind *find_rewind(const struct catcher *catcher, uint32_t shard)
{
    const struct ring *ring = catcher->catch_up->ring;
    const struct ring_rewind *rewind = &ring->rewinds[shard];
    uint64_t had = sl_cursor_of_shard(&catcher->had, shard), end;

    if (!rewind->sequence || !catch_up_claims(catcher->lane, had, rewind->from, rewind->to, &end) ||
        ring_first_with(ring, had) > rewind->sequence)
        return NULL;
    return rewind;
}

struct gap catcher_lost(const struct catcher *catcher)
{
    const uint32_t shards = catcher->lane->question.bucket_ms ? catcher->catch_up->ring->shards : 0;
    struct gap lost = {.reason = GAP_REWOUND};

    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct ring_rewind *rewind = find_rewind(catcher, shard);

        if (rewind && (!lost.to || rewind->from < lost.from))
            lost.from = rewind->from;
        if (rewind && rewind->to > lost.to)
            lost.to = rewind->to;
    }
    return lost;
}

int catcher_tell_what_is_lost(struct catcher *catcher)
{
    int r = 0;

    for (uint32_t shard = 0; r == 0 && shard < catcher->catch_up->ring->shards; shard++) {
        const struct ring_rewind *rewind = find_rewind(catcher, shard);

        if (rewind)
            r = catcher_send_gap(catcher,
                                 &(struct gap){shard, rewind->from, rewind->to, GAP_REWOUND});
    }
    return r;
}

int catcher_tell_behind(struct catcher *catcher, const struct sl_cursor *passed)
{
    uint64_t untold = catcher->claims & ~catcher->told_behind;
    int r = 0;

    for (uint32_t i = 0; r == 0 && untold && i < passed->group_count; i++) {
        const struct sl_cursor_group *group = &passed->groups[i];

        if (group->low >= catcher->had.id)
            break;
        for (uint64_t rest = group->shards & untold; r == 0 && rest; rest &= rest - 1)
            r = catcher_tell_late(catcher, (uint32_t)__builtin_ctzll(rest), group->low, SL_ID_MAX);
        catcher->told_behind |= group->shards;
    }
    return r;
}

int catcher_tell_what_is_late(struct catcher *catcher)
{
    const struct catch_up_settings *settings = &catcher->catch_up->settings;
    const struct sl_cursor passed = position_cursor(settings->passed);
    int r = 0;

    for (uint32_t shard = 0; r == 0 && shard < settings->ring->shards; shard++) {
        const struct late_range *late = &settings->late[shard];

        r = catcher_tell_late(catcher, shard, late->from, late->to);
    }
    return r < 0 ? r : catcher_tell_behind(catcher, &passed);
}

int catcher_tell_marks(struct catcher *catcher, const struct segment *segment, size_t from,
                       size_t to)
{
    for (; segment->has_marks && from < to; from++) {
        const struct event *event = segment->entries[from].event;

        if (event && event->kind == EVENT_LATE &&
            catcher_tell_late(catcher, event->shard, event->late_from, event->late_to) < 0)
            return -ENOMEM;
    }
    return 0;
}

void catch_up_sample_clocks(struct catch_up *catch_up)
{
    catch_up->wall_ms = clock_wall_ms();
    catch_up->monotonic_ms = clock_monotonic_ms();
}

uint64_t catch_up_happened_ms(const struct catch_up *catch_up, const struct event *event)
{
    uint64_t received_ms = event->received_us / 1000;
    uint64_t age_ms =
        catch_up->monotonic_ms > received_ms ? catch_up->monotonic_ms - received_ms : 0;

    return event->id ? sl_id_time_ms(event->id) : catch_up->wall_ms - age_ms;
}

/* A guess while reading the log; it may be ahead of what has passed here. */
uint64_t catcher_events_behind(const struct catcher *catcher)
{
    uint64_t next = catcher->catch_up->ring->next;

    if (catcher->state == CATCHER_KEEPS_UP)
        return 0;
    return next > catcher->sequence ? next - catcher->sequence : 0;
}

/* Sent when the socket has accepted everything, so that the client reads it while it is still
 * true. */
static int warn_if_due(struct catcher *catcher, uint64_t event_wall_ms)
{
    struct catch_up *catch_up = catcher->catch_up;
    uint64_t now_ms = uv_now(catch_up->settings.loop);
    struct client *client = catcher->client;
    char json[128];
    int size;

    if (!catcher->has_fallen || client->sampling.is_wanted ||
        (client->warned_ms && now_ms - client->warned_ms < WARN_EVERY_MS))
        return 0;
    client->warned_ms = now_ms;
    size = snprintf(json, sizeof(json),
                    "{\"type\":\"warning\",\"code\":\"behind\",\"events\":%" PRIu64
                    ",\"ms\":%" PRIu64 "}",
                    catcher_events_behind(catcher),
                    catch_up->wall_ms > event_wall_ms ? catch_up->wall_ms - event_wall_ms : 0);
    return catcher_give_control_take(
        catcher, event_new_control(EVENT_WARNING, sl_slice(json, (size_t)size)));
}

/* For clients that began in the past, not for those that fell behind. */
static void catcher_count_read(struct catcher *catcher, size_t events)
{
    if (!catcher->has_fallen)
        catcher->client->replayed += events;
}

int catcher_offer(struct catcher *catcher, struct event *event, struct sl_slice tail)
{
    uint64_t bytes = catcher->outbox.bytes;
    int r;

    if (client_is_beyond(catcher->client->until, event->id))
        return 0;
    catcher->fed_wall_ms = catch_up_happened_ms(catcher->catch_up, event);
    catcher_count_read(catcher, 1);
    if (catcher->counter)
        return catcher_count(catcher, event, tail);
    if (leaves_out(catcher, event)) {
        const struct sl_cursor before = catcher_cursor(catcher);

        left_out_add(&catcher->left_out, event, &before);
        return 0;
    }
    r = catcher_tell_left_out(catcher);
    if (r == 0)
        r = warn_if_due(catcher, catcher->fed_wall_ms);
    if (r == 0)
        r = give(catcher, event, tail);
    catch_up_spend(catcher->catch_up, catcher->outbox.bytes - bytes);
    return r;
}

int catcher_next_wanted(struct catcher *catcher, struct segment *segment, size_t index,
                        size_t *ret_index, struct sl_slice *ret_tail)
{
    int r = lane_next_wanted(catcher->lane, segment, index, ret_index, ret_tail);

    if (r < 0)
        return r;
    catch_up_spend(catcher->catch_up, STEP_COST + (*ret_index - index) * LOOK_COST);
    catcher_count_read(catcher, *ret_index - index);
    return 0;
}

/* The last event of the shard that it has. When it has just come, that is its cursor, if a rewind
 * may have lost it; otherwise the cursor may as well be no event's id. 0: none. */
static uint64_t last_of_shard(const struct catcher *catcher, uint32_t shard)
{
    const struct ring_rewind *rewind = &catcher->catch_up->ring->rewinds[shard];
    uint64_t last = catcher->last[shard], had = sl_cursor_of_shard(&catcher->had, shard);
    bool may_be_lost = rewind->sequence && had > rewind->from && had <= rewind->to;

    return last || catcher->counter || !may_be_lost ? last : had;
}

int catcher_tell_rewound(struct catcher *catcher, uint32_t shard, uint64_t previous)
{
    uint64_t last = last_of_shard(catcher, shard);
    const struct gap *told = &catcher->rewound;

    if (sl_id_shard(last) != shard || previous >= last)
        return 0;
    if (told->shard == shard && previous >= told->from && last <= told->to)
        return 0;
    catcher->last[shard] = previous;
    return catcher_tell_gap(catcher, shard, previous, last, GAP_REWOUND);
}

bool catcher_completes(const struct catcher *catcher, uint64_t id)
{
    uint64_t until = catcher->client->until;

    return id > catcher->at.id && client_is_beyond(until, id) &&
           (catcher->counter || !ring_has_late(catcher->catch_up->ring, until));
}
