/* catch_up_back.c - live clients that catch up again: because they are owed too much, must be told
 * what arrived late, or have been sent counts that are no longer valid.
 *
 * They leave the lane's outbox with what they are owed there. Events are also in the ring. If the
 * lane counts or picks, only these are kept: gaps, late events for picks, and the rest of a window
 * that was sent partly. Everything else is read again. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/delivery/catcher.h"

/* Posts of any shard may have been left out. For the shards of which it was not owed anything
 * before (`owed`), it has what had passed then. `message` NULL: it was not told of them. */
static void take_firsts(struct catcher *catcher, const struct lane *from,
                        const struct event *message, uint64_t owed)
{
    for (uint32_t shard = 0; shard < catcher->catch_up->ring->shards; shard++) {
        if (!(owed >> shard & 1))
            catcher->last[shard] = message ? left_out_passed(message, shard) : from->passed[shard];
    }
}

/* More waits for the home feed: it is not owed yet, but in the ring. The client has what passed
 * before the first of each shard. If some have left the ring, it has what its position says. */
static void take_waiting(struct catcher *catcher, uint64_t owed)
{
    const struct ring *ring = catcher->catch_up->ring;

    for (uint64_t next = catcher->sequence; next >= ring->oldest && next < ring->next; next++) {
        size_t index;
        const struct segment *segment = ring_find(ring, next, &index);
        const struct event *event = segment->entries[index].event;

        if (owed == UINT64_MAX >> (SL_SHARDS_MAX - ring->shards))
            break;
        if ((!event->id && !event->gap_to) || owed >> event->shard & 1)
            continue;
        owed |= UINT64_C(1) << event->shard;
        catcher->last[event->shard] = catch_up_had_before(event);
    }
    for (uint32_t shard = 0; catcher->sequence < ring->oldest && shard < ring->shards; shard++) {
        if (!(owed >> shard & 1))
            catcher->last[shard] = 0;
    }
}

struct catcher *catcher_take_over(struct catch_up *catch_up, struct lane *lane,
                                  struct client *client, uint64_t sequence)
{
    struct catcher *catcher = catcher_new(catch_up, lane, client);
    const struct event *event = outbox_owed(client, client->at);
    const struct lane *from = LIST_OWNER(client->outbox, struct lane, outbox);
    const struct sl_cursor passed = from->left_out.posts > 0
                                        ? from->left_out.before
                                        : position_cursor(catch_up->settings.passed);
    uint64_t owed = 0; /* shards (bits) of which something is owed */
    struct sl_cursor cursor;

    if (!catcher)
        return NULL;
    cursor = outbox_client_cursor(client, &passed);
    position_set(&catcher->at, &cursor);
    catcher_begin_in_ring(catcher, event ? event->sequence : sequence);
    catch_up_sample_clocks(catch_up);
    if (event)
        catcher->fed_wall_ms = catch_up_happened_ms(catch_up, event);
    for (uint64_t at = client->at; (event = outbox_owed(client, at)); at++) {
        if (event->kind == EVENT_SKIPPED) {
            take_firsts(catcher, from, event, owed);
            return catcher;
        }
        if ((!event->id && !event->gap_to) || owed >> event->shard & 1)
            continue;
        owed |= UINT64_C(1) << event->shard;
        catcher->last[event->shard] = catch_up_had_before(event);
    }
    if (from->left_out.posts > 0)
        take_firsts(catcher, from, NULL, owed);
    if (from->outbox.is_incomplete)
        take_waiting(catcher, owed);
    return catcher;
}

/* Where a client that leaves a counting lane continues on its own, and what it is owed there and
 * will not find again. When picking, that is the rest of a window that was sent partly: when its
 * posts are sent, the log may contain others, which came late. And strays, with all that is owed
 * before them. */
struct hand_over {
    struct sl_cursor had; /* it counts from here on */
    uint64_t to_come;     /* sequence; the ring is read from here on */
    uint64_t last_stray;  /* position in the outbox; 0: none */
    uint64_t end;         /* when picking: what is up to here is handed over */
    bool is_within;       /* a window was sent partly */
    bool lacks_unlogged;  /* some that the lane holds have left the ring */
    struct told_list owed;
};

/* The sequence from which the ring is read: a gap because of which the client falls behind has not
 * passed, and what the lane holds was not counted. */
static uint64_t to_come(const struct catch_up *catch_up, const struct lane *lane)
{
    const struct told *held = told_list_first(&lane->held);

    return held && held->event->sequence < catch_up->passed_to ? held->event->sequence
                                                               : catch_up->passed_to;
}

/* It is in no window, and says the lane's position. */
static bool is_stray(const struct event *event)
{
    return !event->id && !event->gap_to && (event_is_for_clients(event) || event->is_late);
}

/* The client may resume with the position that a stray says. So it must have been sent everything
 * before. */
static void begin_after_strays(struct hand_over *hand_over, const struct client *client)
{
    struct sl_cursor position = hand_over->had;
    const struct event *event;

    for (uint64_t at = client->at; (event = outbox_owed(client, at)); at++) {
        if (event->cursor)
            position = *event->cursor;
        else if (event->id)
            position = (struct sl_cursor){.id = event->id};
        if (!is_stray(event) || event->sequence >= hand_over->to_come)
            continue;
        hand_over->had = position;
        hand_over->last_stray = at;
    }
}

static bool is_owed_once(const struct hand_over *hand_over, const struct lane *lane,
                         const struct event *event)
{
    if (event->gap_to)
        return true;
    if (lane_counts(lane))
        return event->is_late;
    if (!event->id)
        return is_stray(event) && event->late_to <= hand_over->end;
    return hand_over->is_within && event->id <= hand_over->end;
}

/* Each element owns a reference. 0; -ENOMEM. */
static int take_owed(struct hand_over *hand_over, const struct lane *lane,
                     const struct client *client)
{
    const struct event *event;
    int r = 0;

    for (uint64_t at = client->at; r == 0 && (event = outbox_owed(client, at)); at++) {
        struct told told = {0};
        struct sl_cursor head;
        struct sl_slice tail;

        if ((at >= hand_over->last_stray && !is_owed_once(hand_over, lane, event)) ||
            event->sequence >= hand_over->to_come)
            continue;
        outbox_owed_with(client, at, &head, &tail);
        r = told_set_tail(&told, tail);
        told.event = event_ref((struct event *)event);
        told.id = head.id;
        if (r < 0)
            told_done(&told);
        else
            r = told_list_append(&hand_over->owed, &told);
    }
    return r;
}

/* 0; -ENOMEM. */
static int hand_over(const struct catch_up *catch_up, const struct lane *lane,
                     const struct client *client, struct hand_over *ret)
{
    const struct count_question *question = &lane->question;
    const struct sl_cursor told = counter_cursor(lane->counter);

    *ret = (struct hand_over){.had = outbox_client_cursor(client, &told),
                              .to_come = to_come(catch_up, lane)};
    if (!lane_counts(lane) && !question->pick.behind) {
        uint64_t window;

        begin_after_strays(ret, client);
        window = count_bucket_id(question, ret->had.id + 1);
        ret->end = ret->had.id;
        ret->is_within = count_bucket_before(question, window) < ret->had.id;
        if (ret->is_within)
            ret->end = window;
        if (ret->is_within && window <= counter_before(lane->counter))
            ret->had.id = window;
        else if (ret->is_within)
            ret->had.id = told.id;
    }
    return take_owed(ret, lane, client);
}

/* By shard, the last event that the lane has counted. */
static void passed_by(const struct catch_up *catch_up, const struct lane *lane,
                      uint64_t *ret_passed)
{
    memcpy(ret_passed, catch_up->ring->passed, SL_SHARDS_MAX * sizeof(*ret_passed));
    for (size_t i = lane->held.first; i < lane->held.count; i++) {
        const struct event *event = lane->held.list[i].event;

        if (event->id && event->id <= ret_passed[event->shard])
            ret_passed[event->shard] = event->id - 1;
    }
}

/* A catcher for a client that is sent counts, or was sent some that are no longer valid: it counts
 * on its own. NULL: out of memory. */
static struct catcher *take_over_counts(struct catch_up *catch_up, struct lane *lane,
                                        struct client *client, struct hand_over *ret)
{
    int r = hand_over(catch_up, lane, client, ret);
    struct catcher *catcher = r == 0 ? catcher_new(catch_up, lane, client) : NULL;
    uint64_t passed[SL_SHARDS_MAX];

    passed_by(catch_up, lane, passed);
    if (catcher)
        catcher->counter = counter_new_again(lane->counter, &ret->had, passed);
    if (catcher && catcher->counter) {
        catcher_begin_counting(catcher);
        ret->lacks_unlogged = catcher_begin_before(catcher, &lane->held);
        return catcher;
    }
    mem_free(catcher);
    told_list_done(&ret->owed);
    return NULL;
}

/* Moves the client from the lane to its catcher. */
static void begin_counts(struct catcher *catcher, struct hand_over *hand_over)
{
    struct told told;
    int r = 0;

    catcher_start(catcher);
    while (told_list_take(&hand_over->owed, &told)) {
        const struct sl_cursor head = {.id = told.id};

        if (r == 0)
            r = outbox_append(&catcher->outbox, told.event, &head, told_tail(&told), 0);
        told_done(&told);
    }
    told_list_done(&hand_over->owed);
    if (r == 0 && hand_over->lacks_unlogged)
        r = catcher_tell_unlogged(catcher);
    if (r < 0)
        catcher_evict(catcher, DISCONNECT_INTERNAL);
}

int catch_up_begin_behind(struct catch_up *catch_up, struct lane *lane, struct client *client)
{
    struct hand_over hand_over;
    struct catcher *catcher;

    assert(outbox_owed(client, client->at)); /* otherwise it would not be behind */
    catcher = lane->counter ? take_over_counts(catch_up, lane, client, &hand_over)
                            : catcher_take_over(catch_up, lane, client, 0);
    if (!catcher)
        return -ENOMEM;
    catcher->has_fallen = true;
    if (catcher->counter)
        begin_counts(catcher, &hand_over);
    else
        catcher_start(catcher);
    if (catcher->state != CATCHER_LEAVES)
        catcher_enter(catcher, CATCHER_WAITS_FOR_SOCKET);
    metric_add(catch_up->settings.metrics, METRIC_FALLEN_BEHIND, 1);
    return 0;
}

void catch_up_recount(struct lane *lane)
{
    LIST_EACH(&lane->catchers, node)
    {
        struct catcher *catcher = LIST_OWNER(node, struct catcher, in_lane);

        if (catcher->state == CATCHER_LEAVES)
            continue;
        if (catcher_count_again(catcher) < 0)
            catcher_evict(catcher, DISCONNECT_INTERNAL);
        else if (catcher->state == CATCHER_WAITS_FOR_LOG)
            catcher_enter(catcher, CATCHER_RUNS);
    }
}

void catch_up_count_again(struct catch_up *catch_up, struct lane *lane, struct client *client)
{
    bool is_behind = client->state == CLIENT_BEHIND;
    struct hand_over hand_over;
    struct catcher *catcher = take_over_counts(catch_up, lane, client, &hand_over);

    if (!catcher) {
        outbox_set_aside(client);
        client->transport->evict(client, DISCONNECT_INTERNAL);
        return;
    }
    begin_counts(catcher, &hand_over);
    if (catcher->state != CATCHER_LEAVES)
        catcher_enter(catcher, is_behind ? CATCHER_WAITS_FOR_SOCKET : CATCHER_RUNS);
}

struct mark_visit {
    struct catch_up *catch_up;
    struct lane *lane;
    const struct event *mark;
};

static void go_back_to_mark(void *owner, struct client *client)
{
    const struct mark_visit *visit = owner;
    const struct event *mark = visit->mark;
    bool is_behind = client->state == CLIENT_BEHIND;
    struct hand_over hand_over;
    struct catcher *catcher;
    uint64_t to;

    if (client->told_late >> mark->shard & 1 ||
        !catch_up_claims(visit->lane, client->came_with, mark->late_from, mark->late_to, &to))
        return;
    catcher = visit->lane->counter
                  ? take_over_counts(visit->catch_up, visit->lane, client, &hand_over)
                  : catcher_take_over(visit->catch_up, visit->lane, client, mark->sequence);
    if (!catcher) {
        outbox_set_aside(client);
        client->transport->evict(client, DISCONNECT_INTERNAL);
        return;
    }
    catcher->has_come = true;
    catcher->had = (struct sl_cursor){.id = client->came_with};
    if (catcher->counter)
        begin_counts(catcher, &hand_over);
    else
        catcher_start(catcher);
    if (catcher->state == CATCHER_LEAVES)
        return;
    if (catcher->counter && /* the mark comes after its position in the ring */
        catcher_tell_late(catcher, mark->shard, mark->late_from, mark->late_to) < 0) {
        catcher_evict(catcher, DISCONNECT_INTERNAL);
        return;
    }
    catcher_enter(catcher, is_behind ? CATCHER_WAITS_FOR_SOCKET : CATCHER_RUNS);
}

void catch_up_tell_mark(struct catch_up *catch_up, struct lane *lane, const struct event *mark)
{
    struct mark_visit visit = {catch_up, lane, mark};

    if (lane->source) /* late events are counted again there */
        return;
    lane_tell_left_out(lane);
    catch_up_wake_lane(lane);
    outbox_visit_all(&lane->outbox, go_back_to_mark, &visit);
}
