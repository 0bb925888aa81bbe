/* catch_up.c - one step of one catcher at a time, as far as a turn's budget goes.
 *
 * A catcher stands in at most one list: of those that can go on, of those that wait for a batch of
 * a log, or of those that have read everything and wait for what they have read to pass. One that
 * waits for its socket or its lane is in none. The idle handle runs while anybody can go on. */
#include "gateway/delivery/catch_up.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/delivery/catcher.h"

enum {
    TURN_BYTES = 256 << 10,  /* all catchers together are given so much in a turn of the loop */
    SEND_COST = 2 << 10,     /* a send costs as much as so many bytes */
    LOOK_BACK_COST = 128,    /* and so does looking at an event, whether it is wanted or not */
    COUNT_US = 1000,         /* and what counts has so long */
    GUEST_US = 500,          /* of which a guest takes this much, if there is one */
    GATHER_BYTES = 16 << 10, /* less than this waits for the next batch of the log, or a second */
    TICK_MS = 1000
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
    case CATCHER_KEEPS_UP:
        return &catch_up->keeping_up;
    case CATCHER_LOOKS_BACK:
        return &catch_up->looking_back;
    default:
        return NULL;
    }
}

/* Behind all others in the list of that state. */
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

/* What is in the ring already, and has not passed yet, is `owed`; NULL: nothing is. */
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

/* --- where a catcher stands --- */

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

    catcher_let_go_of_batches(catcher);
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

/* All that happened up to `until` has passed. */
static bool is_past_until(const struct catcher *catcher)
{
    uint64_t until = catcher->client->until;

    return until && clock_wall_ms() >= sl_id_time_ms(until) + CLIENT_UNTIL_GRACE_MS;
}

static void go_live(struct catcher *catcher)
{
    struct client *client = catcher->client;

    if (lane_tell_left_out(catcher->lane) < 0) { /* this one has told it itself */
        catcher_evict(catcher, DISCONNECT_INTERNAL);
        return;
    }
    if (catcher->lane->finds) /* for whoever waits for that */
        catch_up_head_moved(catcher->catch_up);
    if (catcher->counter)
        lane_take_counter(catcher->lane, &catcher->counter);
    else
        assert(catcher_is_in_step(catcher)); /* what it has read would pass, and come again */
    outbox_leave(client);
    outbox_join(&catcher->lane->outbox, client);
    catcher_free(catcher);
}

/* Few bytes, and more may come soon: a send costs the same however little it carries. */
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

/* It is owed what it has found, and goes on from where it began to look. */
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
        catcher_enter(catcher, CATCHER_WAITS_FOR_HEAD); /* until its bucket is over */
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
        return; /* else it has waited already */
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
    catch_up_work_for_guests(catch_up, now_us + GUEST_US);
    while (catch_up->budget > 0 && (first = list_first(&catch_up->running)))
        step(LIST_OWNER(first, struct catcher, node));
    if (list_is_empty(&catch_up->running) && list_is_empty(&catch_up->guests))
        uv_idle_stop(idle);
}

void catch_up_guest_start(struct catch_up *catch_up, struct catch_up_guest *guest)
{
    catch_up_enqueue_guest(catch_up, guest);
    uv_idle_start(&catch_up->idle, on_idle);
}

static bool serves(const struct cached_batch *batch, const struct catcher *catcher)
{
    uint64_t after = catcher_after(catcher, batch->shard);

    return after >= batch->after && after < batch->end;
}

/* A batch has come: those it serves go on; the next of the others has his turn to ask. */
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

/* A batch has come, or will not: whoever looks back in this log goes on, and asks for his own if it
 * was another. */
static void on_back_batch(void *owner, uint32_t shard, uint64_t to,
                          const struct cached_batch *batch)
{
    struct catch_up *catch_up = owner;

    catch_up_wake_guests(catch_up, shard, to, batch);
    if (!list_is_empty(&catch_up->guests))
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

/* --- who is too slow --- */

/* Only a socket that takes nothing makes a client slow: what we or Redis are late with is not its
 * fault. */
static bool is_too_slow(const struct catcher *catcher, uint64_t now_ms)
{
    return catcher->state == CATCHER_WAITS_FOR_SOCKET &&
           now_ms > catcher->fed_wall_ms + catcher->max_lag_ms;
}

/* It is sent what has gathered, in its turn. */
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
            wake(catcher, NULL); /* the shard may have come as far as it has */
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
    settings.metrics = NULL; /* what it is given has waited for it, not for the server */
    outbox_init(&catcher->outbox, &settings, catch_up->settings.counts);
    catcher->catch_up = catch_up;
    catcher->client = client;
    catcher->lane = lane;
    catcher->max_lag_ms = catch_up->settings.max_lag_ms;
    catcher->fed_wall_ms = clock_wall_ms();
    return catcher;
}

/* From one outbox to the other. */
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

    if (!catcher)
        return -ENOMEM;
    catcher->has_come = true;
    catcher->had = *cursor;
    catcher->claims = UINT64_MAX;
    client->came_with = sl_cursor_is_plain(cursor) ? cursor->id : 0;
    client->told_late = 0;
    position_set(&catcher->at, cursor);
    catcher->is_unsure = !catch_up_has_heard_of(catch_up, cursor->id);
    catcher->came_newest = ring->newest;
    catcher->came_after = catch_up->log ? log_cache_asked(catch_up->log) : 0;
    catcher->came_at = catcher->unlogged_from = ring->next;
    catcher->sequence = ring->next;
    if (catcher->fed_wall_ms > came_ms)
        catcher->max_lag_ms += catcher->fed_wall_ms - came_ms;
    if (lane->question.bucket_ms && catcher_count_from(catcher, cursor) < 0) {
        mem_free(catcher);
        return -ENOMEM;
    }
    catcher_start(catcher);
    catcher_enter(catcher, CATCHER_RUNS);
    metric_add(catch_up->settings.metrics, METRIC_RESUMED, !lane->finds);
    return catcher_tell_what_is_late(catcher);
}

/* It goes on in the ring, where it has had everything before this sequence, and what its position
 * says. */
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
    if (lane->question.bucket_ms && catcher_count_from(catcher, &catcher->had) < 0) {
        look_back_free(catcher->look_back);
        mem_free(catcher);
        return -ENOMEM;
    }
    catcher_start(catcher);
    catcher_enter(catcher, CATCHER_RUNS);
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
    catch_up->passed_to = catch_up->ring->next;
    list_init(&catch_up->all);
    list_init(&catch_up->running);
    list_init(&catch_up->at_head);
    list_init(&catch_up->keeping_up);
    list_init(&catch_up->looking_back);
    list_init(&catch_up->guests);
    list_init(&catch_up->waiting_guests);
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
    assert(list_is_empty(&catch_up->all) && list_is_empty(&catch_up->guests) &&
           list_is_empty(&catch_up->waiting_guests));
    uv_close((uv_handle_t *)&catch_up->idle, on_handle_closed);
    uv_close((uv_handle_t *)&catch_up->tick_timer, on_handle_closed);
}
