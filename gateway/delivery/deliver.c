/* deliver.c - the path of an event through delivery.
 *
 * An event is matched once. Each subscription number leads to a lane, and each lane is owed the
 * event once. At the end of the turn, a lane with new entries is either written to at once, if its
 * clients had no recent events, or put into a queue sorted by due time. Only the writing itself
 * depends on the number of clients. */
#include "gateway/delivery/deliver.h"

#include <assert.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "gateway/delivery/deliver_parts.h"
#include "src/model/id.h"

enum {
    MAX_WAITING_BYTES = 4 << 20, /* of a home feed whose sets are being read */
    CLOSE_TURN_WORK = 4096       /* for closing buckets, in units of trends.h */
};

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

/* The client is owed too much, and is behind in its lane's outbox. */
static void on_overrun(struct client *client)
{
    struct lane *lane = catch_up_lane_of(client);

    if (lane->source) { /* one counter per slow client would be too much */
        outbox_set_aside(client);
        client->transport->evict(client, DISCONNECT_TOO_SLOW);
        return;
    }
    if (catch_up_begin_behind(lane->deliver->catch_up, lane, client) < 0)
        client->transport->evict(client, DISCONNECT_INTERNAL);
}

struct deliver *deliver_new(const struct deliver_settings *settings)
{
    struct deliver *deliver = mem_zalloc(sizeof(*deliver));
    uint64_t seed = hash_key_random().k0;
    struct catch_up_settings catch_up;

    if (!deliver)
        return NULL;
    deliver->settings = *settings;
    deliver->overrun = on_overrun;
    deliver->reducer.dialects = settings->dialects;
    ring_init(&deliver->ring, settings->ring_bytes);
    list_init(&deliver->judging);
    catch_up = (struct catch_up_settings){.loop = settings->loop,
                                          .metrics = settings->metrics,
                                          .ring = &deliver->ring,
                                          .passed = &deliver->passed,
                                          .late = deliver->late,
                                          .closed = &deliver->closed,
                                          .counts = &deliver->counts,
                                          .max_lag_ms = settings->max_lag_ms};
    list_init(&deliver->dirty);
    list_init(&deliver->due);
    list_init(&deliver->touched);
    list_init(&deliver->all_lanes);
    list_init(&deliver->owing);
    list_init(&deliver->counting);
    list_init(&deliver->closing);
    deliver->close_work = CLOSE_TURN_WORK;
    list_init(&deliver->miscounted);
    list_init(&deliver->trend_sources);
    list_init(&deliver->sampling);
    list_init(&deliver->sampled_lanes);
    deliver->next_close = UINT64_MAX;
    deliver->words = sl_words_new(seed);
    deliver->index = sl_filter_index_new(seed);
    deliver->matches = sl_match_set_new();
    deliver->lanes = hash_map_new();
    deliver->home = home_new(MAX_WAITING_BYTES, settings->max_home_bytes);
    deliver->catch_up = catch_up_new(&catch_up);
    if (settings->compression.level > 0)
        deliver->compressor = compressor_new(&settings->compression);
    deliver->first_removal = NO_SUBSCRIPTION;
    deliver->timer = mem_zalloc(sizeof(*deliver->timer));
    deliver->remover = mem_zalloc(sizeof(*deliver->remover));
    deliver->closer = mem_zalloc(sizeof(*deliver->closer));
    deliver->refresher = mem_zalloc(sizeof(*deliver->refresher));
    deliver->sampler = mem_zalloc(sizeof(*deliver->sampler));
    if (!deliver->words || !deliver->index || !deliver->matches || !deliver->lanes ||
        !deliver->home || !deliver->catch_up || !deliver->timer || !deliver->remover ||
        !deliver->closer || !deliver->refresher || !deliver->sampler ||
        (settings->compression.level > 0 && !deliver->compressor)) {
        mem_free(deliver->timer);
        mem_free(deliver->remover);
        mem_free(deliver->closer);
        mem_free(deliver->refresher);
        mem_free(deliver->sampler);
        deliver->sampler = NULL;
        deliver->closer = NULL;
        deliver->refresher = NULL;
        deliver->timer = NULL;
        deliver->remover = NULL;
        deliver_free(deliver);
        return NULL;
    }
    uv_timer_init(settings->loop, deliver->timer);
    uv_idle_init(settings->loop, deliver->remover);
    uv_idle_init(settings->loop, deliver->closer);
    uv_timer_init(settings->loop, deliver->refresher);
    uv_timer_init(settings->loop, deliver->sampler);
    deliver->timer->data = deliver->remover->data = deliver;
    deliver->refresher->data = deliver->sampler->data = deliver->closer->data = deliver;
    return deliver;
}

void deliver_end(struct deliver *deliver)
{
    deliver->is_ending = true;
    trend_sources_end(deliver);
}

void deliver_free(struct deliver *deliver)
{
    if (!deliver)
        return;
    deliver_end(deliver);
    if (deliver->timer)
        uv_close((uv_handle_t *)deliver->timer, free_handle);
    if (deliver->remover)
        uv_close((uv_handle_t *)deliver->remover, free_handle);
    if (deliver->closer)
        uv_close((uv_handle_t *)deliver->closer, free_handle);
    if (deliver->refresher)
        uv_close((uv_handle_t *)deliver->refresher, free_handle);
    if (deliver->sampler)
        uv_close((uv_handle_t *)deliver->sampler, free_handle);
    catch_up_free(deliver->catch_up);
    ring_done(&deliver->ring);
    home_free(deliver->home);
    hash_map_free(deliver->lanes);
    sl_match_set_free(deliver->matches);
    sl_filter_index_free(deliver->index);
    sl_words_free(deliver->words);
    compressor_free(deliver->compressor);
    reducer_done(&deliver->reducer);
    mem_free(deliver->bindings);
    mem_free(deliver);
}

struct compressor *deliver_compressor(struct deliver *deliver)
{
    return deliver->compressor;
}

struct home *deliver_home(struct deliver *deliver)
{
    return deliver->home;
}

uint64_t deliver_client_reached(const struct client *client)
{
    return client->catcher ? catch_up_reached(client->catcher) : client->sent_bytes;
}

bool deliver_client_is_served(const struct client *client)
{
    const struct lane *lane = catch_up_lane_of(client);

    if (client->catcher)
        return catch_up_is_unblocked(client->catcher);
    return outbox_client_is_served(client) && (!lane || lane->left_out.posts == 0);
}

void deliver_set_log(struct deliver *deliver, struct log_cache *log)
{
    catch_up_set_log(deliver->catch_up, log);
}

void deliver_set_limits(struct deliver *deliver, size_t max_owed_bytes, size_t max_event_bytes,
                        size_t max_home_bytes, uint64_t max_lag_ms)
{
    deliver->settings.max_owed_bytes = max_owed_bytes;
    deliver->settings.max_event_bytes = max_event_bytes;
    home_set_max_bytes(deliver->home, max_home_bytes);
    catch_up_set_max_lag(deliver->catch_up, max_lag_ms);
}

struct sl_cursor deliver_cursor(const struct deliver *deliver)
{
    return deliver->head;
}

uint32_t deliver_shards(const struct deliver *deliver)
{
    return deliver->ring.shards;
}

struct sl_cursor deliver_client_cursor(const struct deliver *deliver, const struct client *client)
{
    const struct lane *lane = client->catcher ? NULL : catch_up_lane_of(client);
    const struct sl_cursor head = lane ? lane_head(lane) : deliver->head;

    return client->catcher ? catch_up_cursor(client->catcher) : outbox_client_cursor(client, &head);
}

struct sl_filter *deliver_shared_filter(const struct client *client)
{
    const struct lane *lane = catch_up_lane_of(client);

    return sl_filter_index_filter(lane->deliver->index, lane->subscription);
}

void deliver_client_flush(struct client *client)
{
    struct lane *lane = catch_up_lane_of(client);

    if (!lane || client->catcher || outbox_gathered_bytes(&lane->outbox) == 0)
        return;
    pace_unqueue(lane->deliver, &lane->outbox);
    outbox_flush(&lane->outbox, uv_now(lane->deliver->settings.loop));
    pace_tell_metrics(lane->deliver);
}

void deliver_client_writable(struct client *client)
{
    struct lane *lane = catch_up_lane_of(client);

    if (!lane)
        return;
    outbox_client_writable(client, uv_now(lane->deliver->settings.loop));
    if (client->catcher)
        catch_up_writable(client->catcher);
    pace_tell_metrics(lane->deliver);
}

bool deliver_keep_alive(struct client *client, const struct sl_cursor *cursor)
{
    struct lane *lane = catch_up_lane_of(client);

    if (!lane || client->catcher || !outbox_shares_gzip(&lane->outbox))
        return false;
    lane_keep_alive(lane, client->says_cursors, cursor);
    pace_tell_metrics(lane->deliver);
    return true;
}

/* A lane leaves the list here, and not when its last client has been sent everything, so that this
 * costs nothing for events. */
void deliver_visit_owed(struct deliver *deliver, client_visit_fn visit, void *owner)
{
    LIST_EACH(&deliver->owing, node)
    {
        if (!outbox_visit_owed(&LIST_OWNER(node, struct lane, owing)->outbox, visit, owner))
            list_remove(&deliver->owing, node);
    }
    catch_up_visit(deliver->catch_up, visit, owner);
}

/* --- events --- */

/* It is unknown who wanted the event, so all clients that might are evicted with a cursor before
 * it. */
static void evict_for_unmatched(struct deliver *deliver)
{
    metric_add(deliver->settings.metrics, METRIC_EVENTS_UNMATCHED_NO_MEMORY, 1);
    LIST_EACH(&deliver->all_lanes, node)
    {
        struct lane *lane = LIST_OWNER(node, struct lane, node);

        if (lane->is_subscribed || lane->rules)
            outbox_evict_all(&lane->outbox, DISCONNECT_INTERNAL);
    }
}

static void owe_with_names(struct lane *lane, struct event *event)
{
    struct sl_slice names;

    if (lane_counts(lane)) {
        if (rule_set_take_hits(lane->rules) == 0)
            lane_count(lane, event, SL_SLICE_NONE);
        else
            outbox_evict_all(&lane->outbox, DISCONNECT_INTERNAL);
        return;
    }
    names = rule_set_name_hits(lane->rules);

    if (names.data)
        catch_up_owe(lane, event, names);
    else
        outbox_evict_all(&lane->outbox, DISCONNECT_INTERNAL);
}

static void match_filters(struct deliver *deliver, struct event *event)
{
    uint64_t began_us = clock_monotonic_us();
    const uint32_t *subscriptions;
    size_t count;

    if ((!sl_filter_index_is_empty(deliver->index) &&
         sl_words_read(deliver->words, &event->view) < 0) ||
        sl_filter_index_match(deliver->index, &event->view, deliver->words, deliver->matches) < 0) {
        evict_for_unmatched(deliver);
        return;
    }
    metric_observe(deliver->settings.metrics, METRIC_HISTOGRAM_MATCH_TIME,
                   clock_monotonic_us() - began_us, 1);
    count = sl_match_set_count(deliver->matches);
    subscriptions = sl_match_set_subscriptions(deliver->matches);
    for (size_t i = 0; i < count; i++) {
        struct binding *binding = &deliver->bindings[subscriptions[i]];

        assert(subscriptions[i] < deliver->binding_capacity);
        if (!binding->lane)
            continue;
        metric_add(deliver->settings.metrics, METRIC_MATCHES, 1);
        if (!binding->rule_hit) {
            catch_up_owe(binding->lane, event, SL_SLICE_NONE);
            continue;
        }
        *binding->rule_hit = true;
        if (!list_contains(&binding->lane->touched))
            list_append(&deliver->touched, &binding->lane->touched);
    }
    LIST_EACH(&deliver->touched, node)
    {
        struct lane *lane = LIST_OWNER(node, struct lane, touched);

        list_remove(&deliver->touched, node);
        owe_with_names(lane, event);
    }
}

/* --- what has passed --- */

static void update_head(struct deliver *deliver)
{
    deliver->head = position_cursor(&deliver->passed);
}

/* After the event is owed: a client that is evicted because of it does not have it. */
static void pass(struct deliver *deliver, uint32_t shard, uint64_t id)
{
    position_pass(&deliver->passed, shard, id, deliver->behind_shards, deliver->lows);
    update_head(deliver);
    ring_pass(&deliver->ring, shard, id);
    metric_set(deliver->settings.metrics, METRIC_RING_BYTES, deliver->ring.bytes);
    catch_up_head_moved(deliver->catch_up);
    if (deliver->ring.shards == 1)
        counts_close(deliver, id);
}

void deliver_begin_shard(struct deliver *deliver, uint32_t shard, uint64_t id)
{
    ring_begin_shard(&deliver->ring, shard, id);
    if (shard == 0)
        pass(deliver, shard, id);
}

void deliver_begin(struct deliver *deliver)
{
    if (!deliver->has_begun)
        ring_clear(&deliver->ring);
    deliver->has_begun = true;
}

void deliver_pass(struct deliver *deliver, uint32_t shard, uint64_t id)
{
    pass(deliver, shard, id);
}

/* The newest id of all shards, at or below `id`, that has passed and was not rewound since, or at
 * which a gap or the log ended at the beginning. */
static uint64_t newest_up_to(const struct ring *ring, uint64_t id)
{
    uint64_t newest = 0;

    for (uint32_t shard = 0; shard < ring->shards; shard++) {
        if (ring->passed[shard] > newest && ring->passed[shard] <= id)
            newest = ring->passed[shard];
    }
    return newest;
}

/* --- closing buckets --- */

static void on_closing(uv_idle_t *closer);

/* Within the turn's limit; the rest follows in the next turns. */
static void close_some(struct deliver *deliver)
{
    if (list_is_empty(&deliver->closing))
        return;
    if (counts_go_on(deliver, &deliver->close_work))
        uv_idle_start(deliver->closer, on_closing);
}

static void on_closing(uv_idle_t *closer)
{
    struct deliver *deliver = closer->data;

    deliver->close_work = CLOSE_TURN_WORK;
    close_some(deliver);
    if (list_is_empty(&deliver->closing))
        uv_idle_stop(closer);
    catch_up_wake_counting(deliver->catch_up);
    deliver_turn_end(deliver);
}

/* --- the order of shards --- */

void deliver_set_watermark(struct deliver *deliver, uint64_t id)
{
    const uint64_t newest = newest_up_to(&deliver->ring, id);

    counts_close(deliver, id);
    close_some(deliver);
    catch_up_wake_counting(deliver->catch_up);
    if (id < deliver->passed.id)
        return;
    deliver->passed.behind &= deliver->behind_shards;
    if (newest > deliver->passed.id)
        pass(deliver, sl_id_shard(newest), newest);
    else
        update_head(deliver);
}

void deliver_shard_behind(struct deliver *deliver, uint32_t shard, uint64_t low)
{
    assert(shard < SL_SHARDS_MAX);
    deliver->behind_shards |= UINT64_C(1) << shard;
    deliver->lows[shard] = low;
    position_raise_shard(&deliver->passed, shard, low);
    update_head(deliver);
}

void deliver_shard_whole(struct deliver *deliver, uint32_t shard)
{
    assert(shard < SL_SHARDS_MAX);
    deliver->behind_shards &= ~(UINT64_C(1) << shard);
    deliver->passed.behind &= ~(UINT64_C(1) << shard);
    update_head(deliver);
}

/* The range continues until the shard has caught up, and then until its log has a mark. */
static void note_late(struct deliver *deliver, const struct event *event)
{
    struct late_range *late = &deliver->late[event->shard];
    uint64_t low = position_of_shard(&deliver->passed, event->shard);

    if (low >= late->to)
        late->from = low;
    late->to = deliver->passed.id;
}

/* The event as clients get it at its position. An event that is older than what has passed of other
 * shards is late: until it passes, its shard was not further than the event before it. 0: the
 * caller owns a reference; -ENOMEM. */
static int place(struct deliver *deliver, struct event *event, struct event **ret_placed)
{
    bool is_late = deliver->ring.shards > 1 && event->id && event->id < deliver->passed.id;
    struct position after;
    struct sl_cursor cursor;

    event->is_late = is_late;
    event->is_unforeseen =
        is_late && position_of_shard(&deliver->passed, event->shard) >= event->id;
    if (is_late) {
        if (event->is_unforeseen) {
            catch_up_wake(deliver->catch_up);
            position_lower_shard(&deliver->passed, event->shard, event->previous);
        }
        note_late(deliver, event);
        update_head(deliver);
    }
    if (event_is_unlogged(event)) {
        *ret_placed = event_at_cursor(event, &deliver->head);
        return *ret_placed ? 0 : -ENOMEM;
    }
    if (!event->id || (!deliver->behind_shards && position_is_plain(&deliver->passed))) {
        *ret_placed = event_ref(event);
        return 0;
    }
    after = deliver->passed;
    position_pass(&after, event->shard, event->id, deliver->behind_shards, deliver->lows);
    cursor = position_cursor(&after);
    if (!is_late && !sl_cursor_is_plain(&cursor) && event_set_cursor(event, &cursor) < 0)
        return -ENOMEM;
    *ret_placed = is_late ? event_copy_with_cursor(event, &cursor, true) : event_ref(event);
    return *ret_placed ? 0 : -ENOMEM;
}

static void tell_mark(struct deliver *deliver, const struct event *mark)
{
    LIST_EACH(&deliver->all_lanes, node)
    catch_up_tell_mark(deliver->catch_up, LIST_OWNER(node, struct lane, node), mark);
}

void deliver_event(struct deliver *deliver, struct event *event)
{
    struct event *placed;

    if (event->kind == EVENT_LATE) {
        if (!event->id)
            return; /* not from a log */
        deliver->late[event->shard] = (struct late_range){0};
    }
    event_charge(event, &deliver->event_bytes);
    if (place(deliver, event, &placed) < 0) {
        deliver_miss(deliver, event->shard, event->id);
        return;
    }
    if (placed != event)
        event_charge(placed, &deliver->event_bytes);
    if (event_is_for_clients(placed) || placed->kind == EVENT_LATE)
        ring_append(&deliver->ring, placed);
    if (placed->kind == EVENT_LATE)
        tell_mark(deliver, placed);
    else if (!event_is_about_access(placed))
        home_event(deliver->home, placed);
    if (event_is_for_clients(placed))
        match_filters(deliver, placed);
    pass(deliver, placed->shard, placed->id);
    event_unref(placed);
    close_some(deliver);
}

static void count_again(void *owner, struct client *client)
{
    struct lane *lane = owner;

    catch_up_count_again(lane->deliver->catch_up, lane, client);
}

/* The counts that these lanes have sent are no longer valid. */
static void count_miscounted(struct deliver *deliver)
{
    if (list_is_empty(&deliver->miscounted))
        return;
    catch_up_wake_counting(deliver->catch_up); /* for those that wait until they are settled */
    LIST_EACH(&deliver->miscounted, node)
    {
        struct lane *lane = LIST_OWNER(node, struct lane, miscounted);

        list_remove(&deliver->miscounted, node);
        if (counter_retell_from(lane->counter)) /* sent again from there on */
            lane->told = counter_retell_from(lane->counter) - 1;
        outbox_visit_all(&lane->outbox, count_again, lane);
        lane_drop_counter(lane);
    }
}

void deliver_turn_end(struct deliver *deliver)
{
    close_some(deliver); /* what was held elsewhere */
    if (list_is_empty(&deliver->closing))
        deliver->close_work = CLOSE_TURN_WORK;
    count_miscounted(deliver);
    metric_set(deliver->settings.metrics, METRIC_TREND_SKETCHES, deliver_trend_sketches(deliver));
    pace_turn_end(deliver);
}

void deliver_flush_all(struct deliver *deliver)
{
    size_t work;

    do
        work = SIZE_MAX;
    while (counts_go_on(deliver, &work));
    count_miscounted(deliver);
    pace_flush_all(deliver);
}

uint64_t deliver_closed(const struct deliver *deliver)
{
    return deliver->closed;
}

static void evict_everybody(struct deliver *deliver)
{
    LIST_EACH(&deliver->all_lanes, node)
    catch_up_evict_lane(LIST_OWNER(node, struct lane, node), DISCONNECT_INTERNAL);
}

/* The event may have changed which posts belong to which home streams. */
void deliver_miss(struct deliver *deliver, uint32_t shard, uint64_t id)
{
    metric_add(deliver->settings.metrics, METRIC_EVENTS_UNMATCHED_NO_MEMORY, 1);
    ring_lose(&deliver->ring, shard, id);
    evict_everybody(deliver);
    pass(deliver, shard, id);
    home_reload(deliver->home, deliver->passed.id);
}

static void owe_everybody(struct deliver *deliver, struct event *event)
{
    event_charge(event, &deliver->event_bytes);
    ring_append(&deliver->ring, event);
    LIST_EACH(&deliver->all_lanes, node)
    catch_up_owe(LIST_OWNER(node, struct lane, node), event, SL_SLICE_NONE);
}

/* A client that has everything no longer has the lost events. */
static void rewind_shard(struct deliver *deliver, const struct gap *gap)
{
    struct position *passed = &deliver->passed;

    if (deliver->ring.shards > 1)
        position_lower_shard(passed, gap->shard, gap->from);
    else if (passed->id > deliver->ring.newest)
        passed->id = deliver->ring.newest;
}

/* Clients that cannot be told are evicted with the cursor before the gap. The lost events may have
 * changed which posts belong to which home streams. */
void deliver_gap(struct deliver *deliver, const struct gap *gap)
{
    struct event *event = gap_event(gap, deliver->ring.shards > 1);

    metric_add(deliver->settings.metrics, metric_at(METRIC_GAPS_TOLD, gap->reason), 1);
    if (gap->reason == GAP_REWOUND)
        catch_up_rewind(deliver->catch_up, gap->shard, gap->from);
    if (event) {
        event->is_late = deliver->ring.shards > 1 && gap->reason != GAP_REWOUND &&
                         gap->from < deliver->passed.id;
        owe_everybody(deliver, event);
    } else {
        ring_lose(&deliver->ring, gap->shard, gap->to);
        evict_everybody(deliver);
    }
    if (gap->reason == GAP_REWOUND) {
        rewind_shard(deliver, gap);
        home_rewind(deliver->home, gap->shard, gap->from);
    }
    pass(deliver, gap->shard, 0);
    event_unref(event);
    home_reload(deliver->home, deliver->passed.id);
}
