/* catch_up.c - runs the catchers step by step, within the budget of a turn.
 *
 * A catcher is in at most one list: of those that can continue, of those that wait for a batch of a
 * log, or of those that have read everything and wait until it has passed. A catcher that waits for
 * its socket or its lane is in none. The idle handle runs while any can continue. */
#include "gateway/delivery/catch_up.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/delivery/catcher.h"

enum {
    TURN_BYTES = 256 << 10,  /* given to all catchers together in a turn of the loop */
    SEND_COST = 2 << 10,     /* the cost of a send, in the same unit */
    LOOK_BACK_COST = 128,    /* the cost of looking at an event, wanted or not */
    COUNT_US = 1000,         /* time limit of a turn for catchers that count */
    JOB_US = 500,            /* the part of it for a job, if there is one */
    GATHER_BYTES = 16 << 10, /* less waits for the next batch of the log, or a second */
    TICK_MS = 1000
};

/* --- states --- */

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
    case CATCHER_KEEPS_UP:
        return &catch_up->keeping_up;
    case CATCHER_LOOKS_BACK:
        return &catch_up->looking_back;
    default:
        return NULL;
    }
}

/* Appends it to the list of that state. */
void catcher_enter(struct catcher *catcher, enum catcher_state state)
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
    catcher_enter(catcher, CATCHER_WAITS_FOR_LOG);
}

void catcher_evict(struct catcher *catcher, enum disconnect_reason reason)
{
    catcher_enter(catcher, CATCHER_LEAVES);
    outbox_set_aside(catcher->client);
    catcher->client->transport->evict(catcher->client, reason);
}

void catch_up_suspend(struct catcher *catcher)
{
    catcher_enter(catcher, CATCHER_LEAVES);
    outbox_set_aside(catcher->client);
}

void catch_up_evict_lane(struct lane *lane, enum disconnect_reason reason)
{
    outbox_evict_all(&lane->outbox, reason);
    LIST_EACH(&lane->catchers, node)
    {
        struct catcher *catcher = LIST_OWNER(node, struct catcher, in_lane);

        if (catcher->state != CATCHER_LEAVES)
            catcher_evict(catcher, reason);
    }
}

void catch_up_lane_ready(struct lane *lane)
{
    LIST_EACH(&lane->catchers, node)
    {
        struct catcher *catcher = LIST_OWNER(node, struct catcher, in_lane);

        if (catcher->state == CATCHER_WAITS_FOR_LANE)
            catcher_enter(catcher, CATCHER_RUNS);
    }
}

void catch_up_head_moved(struct catch_up *catch_up)
{
    catch_up->passed_to = catch_up->ring->next;
    LIST_EACH(&catch_up->at_head, node)
    catcher_enter(LIST_OWNER(node, struct catcher, node), CATCHER_RUNS);
}

void catch_up_wake_counting(struct catch_up *catch_up)
{
    LIST_EACH(&catch_up->at_head, node)
    {
        struct catcher *catcher = LIST_OWNER(node, struct catcher, node);

        if (catcher->counter)
            catcher_enter(catcher, CATCHER_RUNS);
    }
}

/* `owed` is in the ring but has not passed yet; NULL: there is no such event. */
static void wake(struct catcher *catcher, const struct event *owed)
{
    if (catcher->state != CATCHER_KEEPS_UP)
        return;
    catcher_skip_to_head(catcher);
    if (owed && owed->gap_to)
        catcher->last[owed->shard] = catch_up_had_before(owed);
    catcher_enter(catcher, CATCHER_RUNS);
}

static void wake_lane(struct lane *lane, const struct event *owed)
{
    struct list_node *first = list_first(&lane->catchers);

    if (!first || list_is_empty(&LIST_OWNER(first, struct catcher, in_lane)->catch_up->keeping_up))
        return;
    LIST_EACH(&lane->catchers, node)
    wake(LIST_OWNER(node, struct catcher, in_lane), owed);
}

void catch_up_wake_lane(struct lane *lane)
{
    wake_lane(lane, NULL);
}

void catch_up_wake(struct catch_up *catch_up)
{
    LIST_EACH(&catch_up->keeping_up, node)
    wake(LIST_OWNER(node, struct catcher, node), NULL);
}

void catch_up_owe(struct lane *lane, struct event *event, struct sl_slice tail)
{
    if (lane->question.bucket_ms) {
        lane_count(lane, event, tail);
        return;
    }
    lane_append(lane, event, tail);
    wake_lane(lane, event);
}

void catch_up_writable(struct catcher *catcher)
{
    if (catcher->state == CATCHER_WAITS_FOR_SOCKET && catcher->client->state == CLIENT_IN_STEP)
        catcher_enter(catcher, CATCHER_RUNS);
}

/* --- positions --- */

struct sl_cursor catch_up_cursor(const struct catcher *catcher)
{
    struct position position = catcher->at;
    struct sl_cursor at = position_cursor(catcher->catch_up->settings.passed);

    if (catcher->left_out.posts > 0)
        return outbox_client_cursor(catcher->client, &catcher->left_out.before);
    if (catcher->counter) {
        at = catcher_cursor(catcher);
        return outbox_client_cursor(catcher->client, &at);
    }
    if (catcher->state == CATCHER_KEEPS_UP)
        position_reach(&position, &at);
    at = position_cursor(&position);
    return outbox_client_cursor(catcher->client, &at);
}

bool catch_up_is_unblocked(const struct catcher *catcher)
{
    return catcher->client->state == CLIENT_IN_STEP;
}

struct lane *catch_up_lane_of(const struct client *client)
{
    if (!client->outbox)
        return NULL;
    return client->catcher ? client->catcher->lane
                           : LIST_OWNER(client->outbox, struct lane, outbox);
}

uint64_t catch_up_reached(const struct catcher *catcher)
{
    return catcher->at.id;
}

void catch_up_distance(const struct catcher *catcher, uint64_t wall_ms, uint64_t *ret_events,
                       uint64_t *ret_ms)
{
    *ret_events = catcher_events_behind(catcher);
    *ret_ms = wall_ms > catcher->fed_wall_ms ? wall_ms - catcher->fed_wall_ms : 0;
}

void catch_up_visit(const struct catch_up *catch_up, client_visit_fn visit, void *owner)
{
    LIST_EACH(&catch_up->all, node)
    {
        const struct catcher *catcher = LIST_OWNER(node, struct catcher, in_all);

        if (!catcher->lane->finds)
            visit(owner, catcher->client);
    }
}

/* --- steps --- */

static void catcher_free(struct catcher *catcher)
{
    struct catch_up *catch_up = catcher->catch_up;

    catcher_release_batches(catcher);
    if (list_contains(&catcher->node))
        list_remove(list_of(catcher), &catcher->node);
    lane_remove_catcher(catcher->lane, &catcher->in_lane);
    list_remove(&catch_up->all, &catcher->in_all);
    metric_sub(catch_up->settings.metrics, METRIC_CATCHING_UP, !catcher->lane->finds);
    if (list_is_empty(&catch_up->all))
        uv_timer_stop(&catch_up->tick_timer);
    catcher->client->catcher = NULL;
    outbox_done(&catcher->outbox);
    look_back_free(catcher->look_back);
    counter_free(catcher->counter);
    mem_free(catcher);
}

void catch_up_leave(struct catcher *catcher)
{
    outbox_leave(catcher->client);
    catcher_free(catcher);
}

/* Everything up to `until` has passed. */
static bool is_past_until(const struct catcher *catcher)
{
    uint64_t until = catcher->client->until;

    return until && clock_wall_ms() >= sl_id_time_ms(until) + CLIENT_UNTIL_GRACE_MS;
}

static void go_live(struct catcher *catcher)
{
    struct client *client = catcher->client;

    if (lane_tell_left_out(catcher->lane) < 0) { /* here the client reports its own */
        catcher_evict(catcher, DISCONNECT_INTERNAL);
        return;
    }
    if (catcher->lane->finds) /* for those that wait for it */
        catch_up_head_moved(catcher->catch_up);
    if (catcher->counter)
        lane_take_counter(catcher->lane, &catcher->counter);
    else
        assert(catcher_is_in_step(catcher)); /* otherwise events would come again */
    outbox_leave(client);
    outbox_join(&catcher->lane->outbox, client);
    catcher_free(catcher);
}

/* There are few bytes, and more may follow soon. A send costs the same, however few bytes it
 * has. */
static bool gathers(const struct catcher *catcher)
{
    return outbox_gathered_bytes(&catcher->outbox) < GATHER_BYTES;
}

/* false: the catcher waits for its socket now, or leaves. */
static bool flush(struct catcher *catcher)
{
    if (outbox_gathered_bytes(&catcher->outbox) > 0)
        catch_up_spend(catcher->catch_up, SEND_COST);
    catcher->is_due = false;
    outbox_flush(&catcher->outbox, uv_now(catcher->catch_up->settings.loop));
    if (catcher->client->state == CLIENT_IN_STEP)
        return true;
    catcher_enter(catcher, catcher->client->state == CLIENT_BEHIND ? CATCHER_WAITS_FOR_SOCKET
                                                                   : CATCHER_LEAVES); /* broken */
    return false;
}

/* It is owed what was found, and continues where the search began. */
static void end_look_back(struct catcher *catcher)
{
    int r = look_back_give(catcher->look_back, &catcher->outbox);

    look_back_free(catcher->look_back);
    catcher->look_back = NULL;
    if (r < 0) {
        catcher_evict(catcher, DISCONNECT_INTERNAL);
        return;
    }
    catch_up_spend(catcher->catch_up, outbox_gathered_bytes(&catcher->outbox));
    catcher_enter(catcher, CATCHER_RUNS);
}

static void look_back(struct catcher *catcher)
{
    struct catch_up *catch_up = catcher->catch_up;
    size_t events;

    if (!lane_is_ready(catcher->lane)) {
        catcher_enter(catcher, CATCHER_WAITS_FOR_LANE);
        return;
    }
    switch (look_back_step(catcher->look_back, catcher->lane, catch_up->log, &events,
                           &catcher->waits_for_shard)) {
    case LOOKING:
        catch_up_spend(catch_up, events * LOOK_BACK_COST);
        catcher_enter(catcher, CATCHER_RUNS);
        break;
    case LOOKING_WAITS:
        catcher_enter(catcher, CATCHER_LOOKS_BACK);
        break;
    case LOOKING_HAS_ENDED:
        end_look_back(catcher);
        break;
    case LOOKING_FAILED:
        catcher_evict(catcher, DISCONNECT_INTERNAL);
        break;
    }
}

/* It has read everything. */
static void arrive(struct catcher *catcher)
{
    const struct lane *lane = catcher->lane;
    bool waits =
        lane->source ? !lane_is_settled(lane->source) : lane->counter && !lane_is_settled(lane);
    uint64_t closed = *catcher->catch_up->settings.closed;

    if (catcher->counter && counter_is_in_step(catcher->counter, closed) && !waits)
        go_live(catcher);
    else if (catcher->counter)
        catcher_enter(catcher, CATCHER_WAITS_FOR_HEAD); /* until its bucket ends */
    else if (!catcher_is_not_ahead(catcher))
        catcher_enter(catcher, CATCHER_WAITS_FOR_HEAD);
    else if (is_past_until(catcher))
        catcher_evict(catcher, DISCONNECT_COMPLETE);
    else if (catcher_is_in_step(catcher))
        go_live(catcher);
    else
        catcher_enter(catcher, CATCHER_KEEPS_UP);
}

static enum progress read_on(struct catcher *catcher)
{
    const struct sl_cursor passed = position_cursor(catcher->catch_up->settings.passed);
    enum progress progress = catcher_read(catcher);

    if (progress == PROGRESS_AT_HEAD && catcher_tell_behind(catcher, &passed) < 0)
        return PROGRESS_OUT_OF_MEMORY;
    return progress;
}

static void step(struct catcher *catcher)
{
    enum progress progress;

    if (catcher->look_back) {
        look_back(catcher);
        return;
    }
    progress = read_on(catcher);
    if (progress == PROGRESS_OUT_OF_MEMORY) {
        catcher_evict(catcher, DISCONNECT_INTERNAL);
        return;
    }
    if (progress == PROGRESS_NEEDS_LOG && !catcher->is_due && gathers(catcher)) {
        wait_for_log(catcher, catcher->waits_for_shard);
        return; /* otherwise it has waited already */
    }
    if (!flush(catcher))
        return;
    if (progress == PROGRESS_OVERTAKEN) {
        catcher_evict(catcher, DISCONNECT_TOO_SLOW);
    } else if (progress == PROGRESS_COMPLETE) {
        catcher_evict(catcher, DISCONNECT_COMPLETE);
    } else if (progress == PROGRESS) {
        catcher_enter(catcher, CATCHER_RUNS);
    } else if (progress == PROGRESS_NEEDS_LANE) {
        catcher_enter(catcher, CATCHER_WAITS_FOR_LANE);
    } else if (progress == PROGRESS_NEEDS_LOG) {
        wait_for_log(catcher, catcher->waits_for_shard);
    } else {
        arrive(catcher);
    }
}

static void on_idle(uv_idle_t *idle)
{
    struct catch_up *catch_up = idle->data;
    struct list_node *first;
    uint64_t now_us = clock_monotonic_us();

    catch_up_sample_clocks(catch_up);
    catch_up->budget = TURN_BYTES;
    catch_up->count_until_us = now_us + COUNT_US;
    catch_up_run_jobs(catch_up, now_us + JOB_US);
    while (catch_up->budget > 0 && (first = list_first(&catch_up->running)))
        step(LIST_OWNER(first, struct catcher, node));
    if (list_is_empty(&catch_up->running) && list_is_empty(&catch_up->jobs))
        uv_idle_stop(idle);
}

void catch_up_job_start(struct catch_up *catch_up, struct catch_up_job *job)
{
    catch_up_enqueue_job(catch_up, job);
    uv_idle_start(&catch_up->idle, on_idle);
}

static bool serves(const struct cached_batch *batch, const struct catcher *catcher)
{
    uint64_t after = catcher_after(catcher, batch->shard);

    return after >= batch->after && after < batch->end;
}

/* A batch has arrived: those that need it continue; the next of the others may send its request. */
static void on_batch_cached(void *owner, uint32_t shard, struct cached_batch *batch)
{
    struct catch_up *catch_up = owner;
    struct list_node *first;

    if (batch && catch_up->pinner && serves(batch, catch_up->pinner))
        log_cache_pin(batch);
    LIST_EACH(&catch_up->waiting[shard], node)
    {
        struct catcher *catcher = LIST_OWNER(node, struct catcher, node);

        if (batch && serves(batch, catcher))
            catcher_enter(catcher, CATCHER_RUNS);
    }
    first = list_first(&catch_up->waiting[shard]);
    if (first)
        catcher_ask_log(LIST_OWNER(first, struct catcher, node), shard);
}

/* A batch has arrived, or will not: clients that look back in this log continue, and request theirs
 * if it was another one. */
static void on_back_batch(void *owner, uint32_t shard, uint64_t to,
                          const struct cached_batch *batch)
{
    struct catch_up *catch_up = owner;

    catch_up_wake_jobs(catch_up, shard, to, batch);
    if (!list_is_empty(&catch_up->jobs))
        uv_idle_start(&catch_up->idle, on_idle);
    LIST_EACH(&catch_up->looking_back, node)
    {
        struct catcher *catcher = LIST_OWNER(node, struct catcher, node);

        if (catcher->waits_for_shard != shard)
            continue;
        look_back_batch(catcher->look_back, shard, to, batch);
        catcher_enter(catcher, CATCHER_RUNS);
    }
}

void catch_up_set_max_lag(struct catch_up *catch_up, uint64_t max_lag_ms)
{
    catch_up->settings.max_lag_ms = max_lag_ms;
}

void catch_up_set_log(struct catch_up *catch_up, struct log_cache *log)
{
    catch_up->log = log;
    if (log)
        log_cache_on_change(log, on_batch_cached, on_back_batch, catch_up);
}

void catch_up_rewind(struct catch_up *catch_up, uint32_t shard, uint64_t from)
{
    if (catch_up->log)
        log_cache_rewind(catch_up->log, shard, from);
}

/* --- slow clients --- */

/* A client is slow only if its socket accepts nothing; delays of Redis or of this server are not
 * its fault. */
static bool is_too_slow(const struct catcher *catcher, uint64_t now_ms)
{
    return catcher->state == CATCHER_WAITS_FOR_SOCKET &&
           now_ms > catcher->fed_wall_ms + catcher->max_lag_ms;
}

/* What is gathered is sent in its turn. */
static void fall_due(struct catcher *catcher)
{
    if (outbox_gathered_bytes(&catcher->outbox) == 0)
        return;
    catcher->is_due = true;
    catcher_enter(catcher, CATCHER_RUNS);
}

static void on_tick(uv_timer_t *timer)
{
    struct catch_up *catch_up = timer->data;
    uint64_t now_ms = clock_wall_ms();

    LIST_EACH(&catch_up->all, node)
    {
        struct catcher *catcher = LIST_OWNER(node, struct catcher, in_all);

        if (is_too_slow(catcher, now_ms))
            catcher_evict(catcher, DISCONNECT_TOO_SLOW);
        else if (catcher->state == CATCHER_WAITS_FOR_LOG)
            fall_due(catcher);
        else
            wake(catcher, NULL); /* the shard may have reached its position */
    }
}

/* --- beginning --- */

struct catcher *catcher_new(struct catch_up *catch_up, struct lane *lane, struct client *client)
{
    struct outbox_settings settings = lane->outbox.settings;
    struct catcher *catcher = mem_zalloc(sizeof(*catcher));

    if (!catcher)
        return NULL;
    settings.max_owed_bytes = SIZE_MAX;
    settings.overrun = NULL;
    settings.has_history = false;
    settings.metrics = NULL; /* its delay is the client's, not the server's */
    outbox_init(&catcher->outbox, &settings, catch_up->settings.counts);
    catcher->catch_up = catch_up;
    catcher->client = client;
    catcher->lane = lane;
    catcher->max_lag_ms = catch_up->settings.max_lag_ms;
    catcher->fed_wall_ms = clock_wall_ms();
    return catcher;
}

/* Moves the client from the lane's outbox to the catcher's. */
void catcher_start(struct catcher *catcher)
{
    struct catch_up *catch_up = catcher->catch_up;
    struct client *client = catcher->client;

    assert(!client->catcher);
    outbox_leave(client);
    outbox_join(&catcher->outbox, client);
    client->catcher = catcher;
    lane_add_catcher(catcher->lane, &catcher->in_lane);
    if (list_is_empty(&catch_up->all))
        uv_timer_start(&catch_up->tick_timer, on_tick, TICK_MS, TICK_MS);
    list_append(&catch_up->all, &catcher->in_all);
    metric_add(catch_up->settings.metrics, METRIC_CATCHING_UP, !catcher->lane->finds);
}

int catch_up_begin(struct catch_up *catch_up, struct lane *lane, struct client *client,
                   const struct sl_cursor *cursor)
{
    const struct ring *ring = catch_up->ring;
    struct catcher *catcher = catcher_new(catch_up, lane, client);
    uint64_t came_ms = sl_id_time_ms(cursor->id);
    struct gap lost;

    if (!catcher)
        return -ENOMEM;
    catcher->has_come = true;
    catcher->had = *cursor;
    catcher->claims = UINT64_MAX;
    client->came_with = sl_cursor_is_plain(cursor) ? cursor->id : 0;
    client->told_late = 0;
    position_set(&catcher->at, cursor);
    catcher->left_ring_at = cursor->id;
    catcher->is_unsure = !catch_up_has_heard_of(catch_up, cursor->id);
    catcher->came_newest = ring->newest;
    catcher->came_after = catch_up->log ? log_cache_asked(catch_up->log) : 0;
    catcher->came_at = catcher->unlogged_from = ring->next;
    catcher->sequence = ring->next;
    if (catcher->fed_wall_ms > came_ms)
        catcher->max_lag_ms += catcher->fed_wall_ms - came_ms;
    lost = catcher_lost(catcher);
    if (lane->question.bucket_ms && catcher_count_from(catcher, &lost) < 0) {
        mem_free(catcher);
        return -ENOMEM;
    }
    catcher_start(catcher);
    catcher_enter(catcher, CATCHER_RUNS);
    metric_add(catch_up->settings.metrics, METRIC_RESUMED, !lane->finds);
    if (lost.to && catcher_tell_what_is_lost(catcher) < 0)
        return -ENOMEM;
    return catcher_tell_what_is_late(catcher);
}

/* It continues in the ring: it has everything before this sequence, and what its position says. */
void catcher_begin_in_ring(struct catcher *catcher, uint64_t sequence)
{
    catcher->in_ring = true;
    catcher->sequence = catcher->unlogged_from = catcher->came_at = sequence;
    catcher->had = position_cursor(&catcher->at);
    memcpy(catcher->last, catcher->catch_up->ring->passed, sizeof(catcher->last));
}

int catch_up_begin_last(struct catch_up *catch_up, struct lane *lane, struct client *client,
                        uint32_t last, bool keeps_deletions)
{
    const struct ring *ring = catch_up->ring;
    struct catcher *catcher = catcher_new(catch_up, lane, client);

    if (!catcher)
        return -ENOMEM;
    catcher->look_back = look_back_new(ring, last, keeps_deletions);
    if (!catcher->look_back) {
        mem_free(catcher);
        return -ENOMEM;
    }
    catcher->at = *catch_up->settings.passed;
    catcher_begin_in_ring(catcher, ring->next);
    if (lane->question.bucket_ms && catcher_count_from(catcher, &(struct gap){0}) < 0) {
        look_back_free(catcher->look_back);
        mem_free(catcher);
        return -ENOMEM;
    }
    catcher_start(catcher);
    catcher_enter(catcher, CATCHER_RUNS);
    return 0;
}

/* --- creating and freeing --- */

struct catch_up *catch_up_new(const struct catch_up_settings *settings)
{
    struct catch_up *catch_up = mem_zalloc(sizeof(*catch_up));

    if (!catch_up)
        return NULL;
    catch_up->settings = *settings;
    catch_up->ring = settings->ring;
    catch_up->passed_to = catch_up->ring->next;
    list_init(&catch_up->all);
    list_init(&catch_up->running);
    list_init(&catch_up->at_head);
    list_init(&catch_up->keeping_up);
    list_init(&catch_up->looking_back);
    list_init(&catch_up->jobs);
    list_init(&catch_up->waiting_jobs);
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
    assert(list_is_empty(&catch_up->all) && list_is_empty(&catch_up->jobs) &&
           list_is_empty(&catch_up->waiting_jobs));
    uv_close((uv_handle_t *)&catch_up->idle, on_handle_closed);
    uv_close((uv_handle_t *)&catch_up->tick_timer, on_handle_closed);
}
