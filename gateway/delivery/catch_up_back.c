/* catch_up_back.c - clients that are live catch up again: they were owed too much, or have to be
 * told of what came late, or have been told counts that do not hold any more.
 *
 * They leave the outbox of their lane with what they are owed there. Events the ring has, too; of a
 * lane that counts, or picks, only gaps are kept and what came late for a pick, for the rest comes
 * again. */
#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "gateway/delivery/catcher.h"

enum { OWED_ONCE = 64 };

/* Posts of any shard may have been left out: of those that it was not owed anything of before,
 * `owed`, it has what had passed then. `message` NULL: it has not been told of them. */
static void take_firsts(struct catcher *catcher, const struct lane *from,
                        const struct event *message, uint64_t owed)
{
    for (uint32_t shard = 0; shard < catcher->catch_up->ring->shards; shard++) {
        if (!(owed >> shard & 1))
            catcher->last[shard] = message ? left_out_passed(message, shard) : from->passed[shard];
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
    uint64_t owed = 0; /* a bit for each shard of which something is */
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
    return catcher;
}

/* The same for one that is told counts, or that has been told some that do not hold any more: it
 * counts from there on. */
static struct catcher *take_over_counts(struct catch_up *catch_up, struct lane *lane,
                                        struct client *client)
{
    const struct sl_cursor told = counter_cursor(lane->counter);
    const struct sl_cursor had = outbox_client_cursor(client, &told);
    struct catcher *catcher = catcher_new(catch_up, lane, client);

    if (!catcher)
        return NULL;
    catcher->counter = counter_new_again(lane->counter, &had);
    if (!catcher->counter) {
        mem_free(catcher);
        return NULL;
    }
    catcher_begin_counting(catcher);
    return catcher;
}

/* What the client is owed and is not read again: one reference of the caller's to each. How many;
 * -ENOMEM: too many. */
static int take_owed_once(const struct catcher *catcher, struct event *taken[static OWED_ONCE])
{
    const struct client *client = catcher->client;
    const struct event *event;
    int count = 0;

    for (uint64_t at = client->at; (event = outbox_owed(client, at)); at++) {
        if (!(event->gap_to || event->is_late) || event->sequence >= catcher->catch_up->passed_to)
            continue;
        if (count == OWED_ONCE)
            return -ENOMEM;
        taken[count++] = event_ref((struct event *)event);
    }
    return count;
}

/* From the lane to a catcher of its own. */
static void begin_counts(struct catcher *catcher)
{
    const struct sl_cursor before = catcher_cursor(catcher);
    struct event *taken[OWED_ONCE] = {NULL};
    int r = take_owed_once(catcher, taken);

    catcher_start(catcher);
    for (size_t i = 0; i < OWED_ONCE && taken[i]; i++) {
        r = r < 0 ? r : outbox_append(&catcher->outbox, taken[i], &before, SL_SLICE_NONE, 0);
        event_unref(taken[i]);
    }
    if (r < 0)
        catcher_evict(catcher, DISCONNECT_INTERNAL);
}

int catch_up_fall(struct catch_up *catch_up, struct lane *lane, struct client *client)
{
    struct catcher *catcher;

    assert(outbox_owed(client, client->at)); /* else it would not be behind */
    catcher = lane->counter ? take_over_counts(catch_up, lane, client)
                            : catcher_take_over(catch_up, lane, client, 0);
    if (!catcher)
        return -ENOMEM;
    catcher->has_fallen = true;
    if (catcher->counter)
        begin_counts(catcher);
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
    struct catcher *catcher = take_over_counts(catch_up, lane, client);

    if (!catcher) {
        outbox_set_aside(client);
        client->transport->evict(client, DISCONNECT_INTERNAL);
        return;
    }
    begin_counts(catcher);
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
    struct catcher *catcher;

    if (client->came_with <= mark->late_from || client->came_with > mark->late_to ||
        client->told_late >> mark->shard & 1)
        return;
    catcher = visit->lane->counter
                  ? take_over_counts(visit->catch_up, visit->lane, client)
                  : catcher_take_over(visit->catch_up, visit->lane, client, mark->sequence);
    if (!catcher) {
        outbox_set_aside(client);
        client->transport->evict(client, DISCONNECT_INTERNAL);
        return;
    }
    catcher->has_come = true;
    catcher->had = (struct sl_cursor){.id = client->came_with};
    if (catcher->counter)
        begin_counts(catcher);
    else
        catcher_start(catcher);
    if (catcher->state == CATCHER_LEAVES)
        return;
    if (catcher->counter && /* the mark is behind where it begins in the ring */
        catcher_tell_late(catcher, mark->shard, mark->late_from, mark->late_to) < 0) {
        catcher_evict(catcher, DISCONNECT_INTERNAL);
        return;
    }
    catcher_enter(catcher, is_behind ? CATCHER_WAITS_FOR_SOCKET : CATCHER_RUNS);
}

void catch_up_tell_mark(struct catch_up *catch_up, struct lane *lane, const struct event *mark)
{
    struct mark_visit visit = {catch_up, lane, mark};

    if (lane->source) /* what comes late is counted again there */
        return;
    lane_tell_left_out(lane);
    catch_up_wake_lane(lane);
    outbox_visit_all(&lane->outbox, go_back_to_mark, &visit);
}
