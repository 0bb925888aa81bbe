/* deliver.c - the spine: one event in, system calls out.
 *
 * An event is matched once; each subscription number leads to a lane, each lane is owed the event
 * once. At the end of the turn every lane that is owed something new is either written to at once
 * (its clients were quiet) or put into a queue by the time at which it is due. Nothing here grows
 * with the number of clients but the writing itself. */
#include "gateway/delivery/deliver.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/hash_map.h"
#include "filters/filter_index.h"
#include "gateway/delivery/catch_up.h"
#include "gateway/delivery/home.h"
#include "gateway/delivery/lane.h"
#include "gateway/delivery/ring.h"
#include "gateway/delivery/rule_set.h"

/* Where a subscription leads. */
struct binding {
    struct lane *lane;
    bool *rule_hit; /* NULL: the lane has this one filter only */
};

struct deliver {
    struct deliver_settings settings;
    struct outbox_counts counts, counted; /* `counted`: what the metrics have been told */
    struct sl_words *words;
    struct sl_filter_index *index;
    struct sl_match_set *matches;
    struct binding *bindings; /* by subscription number */
    size_t binding_capacity;
    struct hash_map *lanes; /* key -> struct lane, the shared ones */
    struct home *home;
    struct ring ring;
    struct catch_up *catch_up;
    struct list dirty;   /* outboxes with something new in this turn */
    struct list due;     /* outboxes that gather, soonest first */
    struct list touched; /* lanes with rules that were hit by the event at hand */
    uv_timer_t *timer;
    struct list all_lanes;
    struct list judging; /* lanes with one filter, and clients that catch up */
    uint64_t lanes_made;
    size_t event_bytes; /* of all events that are kept or that somebody is owed */
    uint64_t cursor;
};

enum {
    MAX_WAITING_BYTES = 4 << 20,   /* of one home feed whose set is being read */
    MAX_GATHERED_BYTES = 64 << 10, /* then a lane is written to at once: more saves nothing */
    JUDGED_AT_ONCE = 32            /* events of a page */
};

static void flush_due(uv_timer_t *timer);

static void free_timer(uv_handle_t *timer)
{
    mem_free(timer);
}

struct deliver *deliver_new(const struct deliver_settings *settings)
{
    struct deliver *deliver = mem_zalloc(sizeof(*deliver));
    uint64_t seed = hash_key_random().k0;
    struct catch_up_settings catch_up;

    if (!deliver)
        return NULL;
    deliver->settings = *settings;
    ring_init(&deliver->ring, settings->ring_bytes);
    list_init(&deliver->judging);
    catch_up = (struct catch_up_settings){.loop = settings->loop,
                                          .metrics = settings->metrics,
                                          .ring = &deliver->ring,
                                          .counts = &deliver->counts,
                                          .max_lag_ms = settings->max_lag_ms};
    list_init(&deliver->dirty);
    list_init(&deliver->due);
    list_init(&deliver->touched);
    list_init(&deliver->all_lanes);
    deliver->words = sl_words_new(seed);
    deliver->index = sl_filter_index_new(seed);
    deliver->matches = sl_match_set_new();
    deliver->lanes = hash_map_new();
    deliver->home = home_new(MAX_WAITING_BYTES);
    deliver->catch_up = catch_up_new(&catch_up);
    deliver->timer = mem_zalloc(sizeof(*deliver->timer));
    if (!deliver->words || !deliver->index || !deliver->matches || !deliver->lanes ||
        !deliver->home || !deliver->catch_up || !deliver->timer) {
        mem_free(deliver->timer);
        deliver->timer = NULL;
        deliver_free(deliver);
        return NULL;
    }
    uv_timer_init(settings->loop, deliver->timer);
    deliver->timer->data = deliver;
    return deliver;
}

void deliver_free(struct deliver *deliver)
{
    if (!deliver)
        return;
    if (deliver->timer)
        uv_close((uv_handle_t *)deliver->timer, free_timer);
    catch_up_free(deliver->catch_up);
    ring_done(&deliver->ring);
    home_free(deliver->home);
    hash_map_free(deliver->lanes);
    sl_match_set_free(deliver->matches);
    sl_filter_index_free(deliver->index);
    sl_words_free(deliver->words);
    mem_free(deliver->bindings);
    mem_free(deliver);
}

struct home *deliver_home(struct deliver *deliver)
{
    return deliver->home;
}

bool deliver_client_is_served(const struct client *client)
{
    return client->catcher ? catch_up_is_unblocked(client->catcher)
                           : outbox_client_is_served(client);
}

void deliver_set_log(struct deliver *deliver, struct log_pages *log)
{
    catch_up_set_log(deliver->catch_up, log);
}

void deliver_set_limits(struct deliver *deliver, size_t max_owed_bytes, size_t max_event_bytes,
                        uint64_t max_lag_ms)
{
    deliver->settings.max_owed_bytes = max_owed_bytes;
    deliver->settings.max_event_bytes = max_event_bytes;
    catch_up_set_max_lag(deliver->catch_up, max_lag_ms);
}

uint64_t deliver_cursor(const struct deliver *deliver)
{
    return deliver->cursor;
}

uint64_t deliver_client_cursor(const struct deliver *deliver, const struct client *client)
{
    return client->catcher ? catch_up_cursor(client->catcher)
                           : outbox_client_cursor(client, deliver->cursor);
}

/* --- what subscriptions lead to --- */

int deliver_bind(struct deliver *deliver, struct sl_filter *filter, struct lane *lane,
                 bool *rule_hit, uint32_t *ret_subscription)
{
    uint32_t subscription;

    if (sl_filter_index_add(deliver->index, filter, &subscription) < 0)
        return -ENOMEM;
    if (subscription >= deliver->binding_capacity) {
        size_t capacity = deliver->binding_capacity ? deliver->binding_capacity : 64;
        struct binding *bindings;

        while (capacity <= subscription)
            capacity *= 2;
        bindings = mem_realloc(deliver->bindings, mem_array_size(capacity, sizeof(*bindings)));
        if (!bindings) {
            sl_filter_index_remove(deliver->index, subscription);
            return -ENOMEM;
        }
        deliver->bindings = bindings;
        deliver->binding_capacity = capacity;
    }
    deliver->bindings[subscription] = (struct binding){lane, rule_hit};
    *ret_subscription = subscription;
    return 0;
}

void deliver_unbind(struct deliver *deliver, uint32_t subscription)
{
    sl_filter_index_remove(deliver->index, subscription);
}

/* --- lanes --- */

static void overrun(struct client *client);

static struct lane *lane_new(struct deliver *deliver, const struct client *client, int gather_ms)
{
    struct outbox_settings settings = {
        .wire = client->wire,
        .unchunked = client->unchunked,
        .gather_ms = gather_ms < 0 ? deliver->settings.gather_ms : (uint32_t)gather_ms,
        .max_owed_bytes = deliver->settings.max_owed_bytes,
        .overrun = overrun,
        .metrics = deliver->settings.metrics,
    };
    struct lane *lane = mem_zalloc(sizeof(*lane));

    if (!lane)
        return NULL;
    lane->deliver = deliver;
    lane->number = ++deliver->lanes_made;
    list_init(&lane->catchers);
    outbox_init(&lane->outbox, &settings, &deliver->counts);
    list_append(&deliver->all_lanes, &lane->node);
    return lane;
}

/* No further client finds the lane. */
static void lane_unshare(struct lane *lane)
{
    if (!lane->key)
        return;
    hash_map_remove(lane->deliver->lanes, sl_slice(lane->key, lane->key_size));
    mem_free(lane->key);
    lane->key = NULL;
}

static void unqueue(struct deliver *deliver, struct outbox *outbox)
{
    if (list_contains(&outbox->node))
        list_remove(outbox->due_ms ? &deliver->due : &deliver->dirty, &outbox->node);
    outbox->due_ms = 0;
}

static void lane_free(struct lane *lane)
{
    struct deliver *deliver;

    if (!lane)
        return;
    deliver = lane->deliver;
    lane_unshare(lane);
    if (lane->is_subscribed)
        deliver_unbind(deliver, lane->subscription);
    rule_set_free(lane->rules);
    home_unwatch(deliver->home, &lane->watch);
    unqueue(deliver, &lane->outbox);
    outbox_done(&lane->outbox);
    list_remove(&deliver->all_lanes, &lane->node);
    mem_free(lane);
}

/* Clients with equal keys can share a lane: same way of framing, same gathering, same filter. */
static void lane_key(const struct client *client, int gather_ms, char kind, struct sl_slice what,
                     struct buffer *ret_key)
{
    buffer_append_format(ret_key, "%c%d%d,%d,", kind, (int)client->wire, (int)client->unchunked,
                         gather_ms);
    buffer_append_slice(ret_key, what);
}

static int lane_share(struct lane *lane, struct sl_slice key)
{
    lane->key = mem_strndup(key.data, key.size);
    if (!lane->key)
        return -ENOMEM;
    lane->key_size = key.size;
    if (hash_map_add(lane->deliver->lanes, key, lane) < 0) {
        mem_free(lane->key);
        lane->key = NULL;
        return -ENOMEM;
    }
    return 0;
}

/* What is gathered counts as owed, so it must stay well below what a client may be owed: who keeps
 * step is offered it before that. */
static bool has_gathered_enough(const struct outbox *outbox)
{
    size_t gathered = outbox_gathered_bytes(outbox);

    return gathered >= MAX_GATHERED_BYTES || gathered >= outbox->settings.max_owed_bytes / 2;
}

void lane_append(struct lane *lane, struct event *event, struct sl_slice tail)
{
    struct deliver *deliver = lane->deliver;
    struct outbox *outbox = &lane->outbox;
    uint64_t now_ms = uv_now(deliver->settings.loop);

    if (outbox_append(outbox, event, deliver->cursor, tail, now_ms) < 0) {
        outbox_evict_all(outbox, FAREWELL_INTERNAL);
        return;
    }
    if (has_gathered_enough(outbox)) {
        unqueue(deliver, outbox);
        outbox_flush(outbox, now_ms);
    } else if (!list_contains(&outbox->node)) {
        list_append(&deliver->dirty, &outbox->node);
    }
}

static struct lane *lane_of(const struct client *client)
{
    if (!client->outbox)
        return NULL;
    return client->catcher ? catch_up_lane(client->catcher)
                           : LIST_OWNER(client->outbox, struct lane, outbox);
}

/* --- clients come and go --- */

static struct lane *shared_lane_new(struct deliver *deliver, const struct client *client,
                                    struct sl_filter *filter, int gather_ms, struct sl_slice key)
{
    struct lane *lane = lane_new(deliver, client, gather_ms);

    if (!lane)
        return NULL;
    if (lane_share(lane, key) < 0 ||
        deliver_bind(deliver, filter, lane, NULL, &lane->subscription) < 0) {
        lane_free(lane);
        return NULL;
    }
    lane->is_subscribed = true;
    return lane;
}

int deliver_subscribe(struct deliver *deliver, struct client *client, struct sl_filter *filter,
                      int gather_ms)
{
    struct buffer key = BUFFER_INIT;
    struct lane *lane = NULL;

    lane_key(client, gather_ms, 'f', sl_filter_key(filter), &key);
    if (!key.failed) {
        lane = hash_map_get(deliver->lanes, buffer_slice(&key));
        if (!lane)
            lane = shared_lane_new(deliver, client, filter, gather_ms, buffer_slice(&key));
    }
    buffer_done(&key);
    if (!lane)
        return -ENOMEM;
    outbox_join(&lane->outbox, client);
    return 0;
}

static void lane_evict_all(struct lane *lane, enum farewell farewell)
{
    outbox_evict_all(&lane->outbox, farewell);
    catch_up_evict_lane(lane, farewell);
}

static void on_home_match(void *watcher, struct event *event)
{
    lane_append(watcher, event, SL_SLICE_NONE);
}

static void on_home_loading(void *watcher)
{
    struct lane *lane = watcher;

    outbox_set_incomplete(&lane->outbox, lane->deliver->cursor);
}

static void on_home_loaded(void *watcher)
{
    struct lane *lane = watcher;

    outbox_set_complete(&lane->outbox);
    catch_up_lane_ready(lane);
}

/* Nothing comes on this lane any more: whoever connects from now on gets another. */
static void on_home_failed(void *watcher)
{
    struct lane *lane = watcher;

    lane_unshare(lane);
    lane_evict_all(lane, FAREWELL_INTERNAL);
}

static struct lane *home_lane_new(struct deliver *deliver, const struct client *client,
                                  struct sl_slice user, unsigned types, int gather_ms,
                                  struct sl_slice key)
{
    struct lane *lane = lane_new(deliver, client, gather_ms);

    if (!lane)
        return NULL;
    lane->watch = (struct home_watch){.types = types,
                                      .on_match = on_home_match,
                                      .on_loading = on_home_loading,
                                      .on_loaded = on_home_loaded,
                                      .on_failed = on_home_failed,
                                      .watcher = lane};
    if (lane_share(lane, key) < 0 || home_watch(deliver->home, user, &lane->watch) < 0) {
        lane_free(lane);
        return NULL;
    }
    if (!home_is_loaded(&lane->watch))
        outbox_set_incomplete(&lane->outbox, deliver->cursor);
    return lane;
}

int deliver_subscribe_home(struct deliver *deliver, struct client *client, struct sl_slice user,
                           unsigned types, int gather_ms)
{
    struct buffer key = BUFFER_INIT;
    struct lane *lane = NULL;

    lane_key(client, gather_ms, 'h', user, &key);
    buffer_append_format(&key, " %x", types);
    if (!key.failed) {
        lane = hash_map_get(deliver->lanes, buffer_slice(&key));
        if (!lane)
            lane = home_lane_new(deliver, client, user, types, gather_ms, buffer_slice(&key));
    }
    buffer_done(&key);
    if (!lane)
        return -ENOMEM;
    outbox_join(&lane->outbox, client);
    return 0;
}

int deliver_subscribe_rules(struct deliver *deliver, struct client *client, int gather_ms,
                            struct rule_set **ret_rules)
{
    struct lane *lane = lane_new(deliver, client, gather_ms);

    if (!lane)
        return -ENOMEM;
    lane->rules = rule_set_new(lane);
    if (!lane->rules) {
        lane_free(lane);
        return -ENOMEM;
    }
    outbox_join(&lane->outbox, client);
    *ret_rules = lane->rules;
    return 0;
}

/* It is owed too much, and behind in its lane's outbox. */
static void overrun(struct client *client)
{
    struct lane *lane = lane_of(client);

    if (catch_up_fall(lane->deliver->catch_up, lane, client) < 0)
        client->transport->evict(client, FAREWELL_INTERNAL);
}

int deliver_resume(struct deliver *deliver, struct client *client, uint64_t cursor)
{
    struct lane *lane = lane_of(client);

    lane->awaits_rules = lane->rules != NULL;
    return catch_up_begin(deliver->catch_up, lane, client, cursor);
}

void deliver_rules_ready(struct client *client)
{
    struct lane *lane = lane_of(client);

    if (!lane || !lane->awaits_rules)
        return;
    lane->awaits_rules = false;
    catch_up_lane_ready(lane);
}

void deliver_suspend(struct client *client)
{
    if (client->catcher)
        catch_up_suspend(client->catcher);
    else
        outbox_set_aside(client);
}

void deliver_leave(struct client *client)
{
    struct lane *lane = lane_of(client);

    if (!lane)
        return;
    if (client->catcher)
        catch_up_leave(client->catcher);
    else
        outbox_leave(client);
    if (outbox_is_deserted(&lane->outbox) && list_is_empty(&lane->catchers))
        lane_free(lane);
}

/* --- what those who catch up want --- */

void lane_add_catcher(struct lane *lane, struct list_node *node)
{
    list_append(&lane->catchers, node);
    if (lane->is_subscribed && !list_contains(&lane->judging))
        list_append(&lane->deliver->judging, &lane->judging);
}

void lane_remove_catcher(struct lane *lane, struct list_node *node)
{
    list_remove(&lane->catchers, node);
    if (list_is_empty(&lane->catchers) && list_contains(&lane->judging))
        list_remove(&lane->deliver->judging, &lane->judging);
}

bool lane_is_ready(const struct lane *lane)
{
    if (lane->rules)
        return !lane->awaits_rules;
    return lane->is_subscribed || home_is_loaded(&lane->watch);
}

/* A message of ours. */
static bool is_for_all(const struct event *event)
{
    return event->kind >= EVENT_KIND_COUNT;
}

static void note_all(struct deliver *deliver, struct page *page, size_t place)
{
    LIST_EACH(&deliver->judging, node)
    verdict_want(page_verdict(page, LIST_OWNER(node, struct lane, judging)->number), place);
}

static void note_matches(struct deliver *deliver, struct page *page, size_t place)
{
    size_t count = sl_match_set_count(deliver->matches);
    const uint32_t *subscriptions = sl_match_set_subscriptions(deliver->matches);

    for (size_t i = 0; i < count; i++) {
        struct binding *binding = &deliver->bindings[subscriptions[i]];
        struct verdict *verdict;

        if (!list_contains(&binding->lane->judging))
            continue;
        verdict = page_verdict(page, binding->lane->number);
        if (verdict)
            verdict_want(verdict, place);
    }
}

/* Judges from where `lane` has been judged. Other lanes that are catching up are nearly always
 * there, too; those that are not will have it done again. 0; -ENOMEM. */
static int judge(struct deliver *deliver, struct lane *lane, struct page *page)
{
    struct verdict *verdict = page_add_verdict(page, lane->number);
    size_t from, to;

    if (!verdict)
        return -ENOMEM;
    from = verdict->count;
    to = page->count - from < JUDGED_AT_ONCE ? page->count : from + JUDGED_AT_ONCE;
    LIST_EACH(&deliver->judging, node)
    {
        if (!page_add_verdict(page, LIST_OWNER(node, struct lane, judging)->number))
            return -ENOMEM;
    }
    for (size_t place = from; place < to; place++) {
        const struct event *event = page->entries[place].event;

        if (!event)
            continue;
        if (is_for_all(event)) {
            note_all(deliver, page, place);
            continue;
        }
        if (sl_words_read(deliver->words, &event->subject) < 0 ||
            sl_filter_index_match(deliver->index, &event->subject, deliver->words,
                                  deliver->matches) < 0)
            return -ENOMEM;
        note_matches(deliver, page, place);
    }
    LIST_EACH(&deliver->judging, node)
    {
        verdict = page_verdict(page, LIST_OWNER(node, struct lane, judging)->number);
        if (verdict->count >= from && verdict->count < to)
            verdict->count = (uint32_t)to;
    }
    return 0;
}

static int filter_next(struct lane *lane, struct page *page, size_t place, size_t *ret_place)
{
    for (;;) {
        const struct verdict *verdict = page_verdict(page, lane->number);
        size_t next = verdict ? verdict_next(verdict, place) : 0;
        int r;

        if (verdict && (next < verdict->count || verdict->count == page->count)) {
            *ret_place = next;
            return 0;
        }
        r = judge(lane->deliver, lane, page);
        if (r < 0)
            return r;
    }
}

/* 1: yes; 0: no; -ENOMEM. */
static int wants_now(struct lane *lane, const struct event *event, struct sl_slice *ret_tail)
{
    *ret_tail = SL_SLICE_NONE;
    if (!event)
        return 0;
    if (is_for_all(event))
        return 1;
    if (!lane->rules)
        return home_wants(&lane->watch, event);
    if (sl_words_read(lane->deliver->words, &event->subject) < 0)
        return -ENOMEM;
    return rule_set_wants(lane->rules, event, lane->deliver->words, ret_tail);
}

int lane_next_wanted(struct lane *lane, struct page *page, size_t place, size_t *ret_place,
                     struct sl_slice *ret_tail)
{
    int r = 0;

    *ret_tail = SL_SLICE_NONE;
    if (lane->is_subscribed)
        return filter_next(lane, page, place, ret_place);
    while (place < page->count && (r = wants_now(lane, page->entries[place].event, ret_tail)) == 0)
        place++;
    *ret_place = place;
    return r < 0 ? r : 0;
}

/* --- events --- */

/* Nobody knows who wanted the event, so everyone who might have is told where to go on. */
static void evict_for_unmatched(struct deliver *deliver)
{
    metric_add(deliver->settings.metrics, METRIC_EVENTS_UNMATCHED_NO_MEMORY, 1);
    LIST_EACH(&deliver->all_lanes, node)
    {
        struct lane *lane = LIST_OWNER(node, struct lane, node);

        if (lane->is_subscribed || lane->rules)
            outbox_evict_all(&lane->outbox, FAREWELL_INTERNAL);
    }
}

static void match_filters(struct deliver *deliver, struct event *event)
{
    uint64_t began_us = clock_monotonic_us();
    const uint32_t *subscriptions;
    size_t count;

    if (sl_words_read(deliver->words, &event->subject) < 0 ||
        sl_filter_index_match(deliver->index, &event->subject, deliver->words, deliver->matches) <
            0) {
        evict_for_unmatched(deliver);
        return;
    }
    metric_observe(deliver->settings.metrics, METRIC_HISTOGRAM_MATCH_TIME,
                   clock_monotonic_us() - began_us, 1);
    count = sl_match_set_count(deliver->matches);
    subscriptions = sl_match_set_subscriptions(deliver->matches);
    metric_add(deliver->settings.metrics, METRIC_MATCHES, count);
    for (size_t i = 0; i < count; i++) {
        struct binding *binding = &deliver->bindings[subscriptions[i]];

        if (!binding->rule_hit) {
            lane_append(binding->lane, event, SL_SLICE_NONE);
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
        rule_set_settle(lane->rules, event);
    }
}

/* Not before the event is owed: who is evicted over it has not got it. */
static void pass(struct deliver *deliver, uint32_t shard, uint64_t id)
{
    if (id > deliver->cursor)
        deliver->cursor = id;
    ring_pass(&deliver->ring, shard, id);
    metric_set(deliver->settings.metrics, METRIC_RING_BYTES, deliver->ring.bytes);
    catch_up_head_moved(deliver->catch_up);
}

void deliver_begin_shard(struct deliver *deliver, uint32_t shard, uint64_t id)
{
    ring_begin_shard(&deliver->ring, shard, id);
    pass(deliver, shard, id);
}

void deliver_pass(struct deliver *deliver, uint32_t shard, uint64_t id)
{
    pass(deliver, shard, id);
}

void deliver_event(struct deliver *deliver, struct event *event)
{
    event_charge(event, &deliver->event_bytes);
    if (event_is_for_clients(event))
        ring_append(&deliver->ring, event);
    home_event(deliver->home, event);
    if (event_is_for_clients(event))
        match_filters(deliver, event);
    pass(deliver, event->shard, event->id);
}

/* Who cannot be told has to go, with the cursor before the gap. What changed whose posts belong on
 * whose home stream may be among what was lost. */
void deliver_gap(struct deliver *deliver, const struct gap *gap)
{
    struct event *event = gap_event(gap);

    metric_add(deliver->settings.metrics, metric_at(METRIC_GAPS_TOLD, gap->reason), 1);
    if (event) {
        event_charge(event, &deliver->event_bytes);
        ring_append(&deliver->ring, event);
    } else {
        ring_lose_gap(&deliver->ring, gap->shard, gap->to);
    }
    LIST_EACH(&deliver->all_lanes, node)
    {
        struct lane *lane = LIST_OWNER(node, struct lane, node);

        if (event)
            lane_append(lane, event, SL_SLICE_NONE);
        else
            lane_evict_all(lane, FAREWELL_INTERNAL);
    }
    pass(deliver, gap->shard, 0);
    event_unref(event);
    home_reload(deliver->home, deliver->cursor);
}

/* --- when to write --- */

static void queue_due(struct deliver *deliver, struct outbox *outbox)
{
    struct list_node *after = deliver->due.head.previous;

    /* Nearly always the last: windows have the same length but for clients that asked. */
    while (after != &deliver->due.head &&
           LIST_OWNER(after, struct outbox, node)->due_ms > outbox->due_ms)
        after = after->previous;
    list_insert_after(&deliver->due, after, &outbox->node);
}

static void arm_timer(struct deliver *deliver, uint64_t now_ms)
{
    struct list_node *first = list_first(&deliver->due);
    uint64_t due_ms;

    if (!first) {
        uv_timer_stop(deliver->timer);
        return;
    }
    due_ms = LIST_OWNER(first, struct outbox, node)->due_ms;
    uv_timer_start(deliver->timer, flush_due, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

static void tell_metrics(struct deliver *deliver)
{
    struct outbox_counts *now = &deliver->counts, *told = &deliver->counted;
    struct metrics *metrics = deliver->settings.metrics;

    metric_add(metrics, METRIC_DELIVERIES, now->events - told->events);
    metric_add(metrics, METRIC_DELIVERED_BYTES, now->bytes - told->bytes);
    metric_add(metrics, METRIC_SENDS, now->sends - told->sends);
    metric_set(metrics, METRIC_EVENT_BYTES, deliver->event_bytes);
    *told = *now;
}

static void flush_until(struct deliver *deliver, uint64_t until_ms, uint64_t now_ms)
{
    LIST_EACH(&deliver->due, node)
    {
        struct outbox *outbox = LIST_OWNER(node, struct outbox, node);

        if (outbox->due_ms > until_ms)
            break;
        unqueue(deliver, outbox);
        outbox_flush(outbox, now_ms);
    }
    arm_timer(deliver, now_ms);
    tell_metrics(deliver);
}

static void flush_due(uv_timer_t *timer)
{
    struct deliver *deliver = timer->data;
    uint64_t now_ms = uv_now(deliver->settings.loop);

    flush_until(deliver, now_ms, now_ms);
}

/* Beside the ring, only clients that are behind keep events alive for longer than a gather window.
 * When all of them together keep too much, all their queues go: no one of them is more to blame. */
static void enforce_event_bytes(struct deliver *deliver)
{
    if (deliver->event_bytes <= deliver->settings.max_event_bytes + deliver->ring.bytes)
        return;
    metric_add(deliver->settings.metrics, METRIC_EVENT_BYTES_EXCEEDED, 1);
    LIST_EACH(&deliver->all_lanes, node)
    outbox_overrun_behind(&LIST_OWNER(node, struct lane, node)->outbox);
}

void deliver_turn_end(struct deliver *deliver)
{
    uint64_t now_ms = uv_now(deliver->settings.loop);
    struct list_node *first_due = list_first(&deliver->due);

    LIST_EACH(&deliver->dirty, node)
    {
        struct outbox *outbox = LIST_OWNER(node, struct outbox, node);
        uint32_t gather_ms = outbox->settings.gather_ms;

        list_remove(&deliver->dirty, node);
        if (now_ms - outbox->last_flush_ms >= gather_ms) {
            outbox_flush(outbox, now_ms);
        } else {
            outbox->due_ms = outbox->first_unflushed_ms + gather_ms;
            queue_due(deliver, outbox);
        }
    }
    if (list_first(&deliver->due) != first_due)
        arm_timer(deliver, now_ms);
    enforce_event_bytes(deliver);
    tell_metrics(deliver);
}

void deliver_flush_all(struct deliver *deliver)
{
    deliver_turn_end(deliver);
    flush_until(deliver, UINT64_MAX, uv_now(deliver->settings.loop));
}

void deliver_client_writable(struct client *client)
{
    struct lane *lane = lane_of(client);

    if (!lane)
        return;
    outbox_client_writable(client, uv_now(lane->deliver->settings.loop));
    if (client->catcher)
        catch_up_writable(client->catcher);
    tell_metrics(lane->deliver);
}
