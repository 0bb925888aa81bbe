#include "tests/support/history.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/stable_hash.h"
#include "gateway/intake/event_decode.h"
#include "gateway/intake/id_order.h"
#include "src/model/moment.h"
#include "tests/support/reader.h"

enum { PAGE_BYTES = 48 << 10, CALL_US = 100 };

struct redis redises[HISTORY_SHARDS];
struct fact unlogged[HISTORY_UNLOGGED];
size_t unlogged_count;
uint32_t shards;
uint64_t last_id, now;
struct deliver *deliver;
uv_loop_t loop;

const char *const history_words[HISTORY_WORDS] = {"tea", "milk", "rum"};
const char *const history_langs[2] = {"en", "ja"};
static uint64_t random_state, now_us, clock_us, hash_keys;
static bool has_relations;
static struct metrics_board *board;
static struct metrics *metrics;
static struct id_order *order;
static struct log_cache *cache;
static struct event_decoder *decoder;

/* Otherwise a run would depend on how busy the machine is. With each call some time has passed. */
uint64_t __wrap_clock_monotonic_us(void);

uint64_t __wrap_clock_monotonic_us(void)
{
    return clock_us += stable_hash(clock_us) % CALL_US;
}

/* Nor on the order in which filters match. */
struct hash_key __wrap_hash_key_random(void);

struct hash_key __wrap_hash_key_random(void)
{
    return (struct hash_key){stable_hash(hash_keys), stable_hash(++hash_keys)};
}

size_t below(size_t n)
{
    return stable_hash(random_state++) % n;
}

bool one_in(size_t n)
{
    return below(n) == 0;
}

struct sl_cursor history_head(void)
{
    return deliver_cursor(deliver);
}

struct sl_cursor history_cursor(const struct client *client)
{
    struct sl_cursor cursor = deliver_client_cursor(deliver, client);

    if (cursor.id == 0)
        cursor.id = SL_MOMENT_ID_MIN;
    return cursor;
}

const char *history_author(unsigned author)
{
    static const char *const names[HISTORY_AUTHORS] = {"10", "11", "12", "13", "14"};

    return names[author];
}

/* --- Redis ------------------------------------------------------------------------------------ */

static struct fact *last_logged(struct redis *redis)
{
    for (size_t i = redis->count; i > 0; i--) {
        if (!redis->facts[i - 1].is_lost)
            return &redis->facts[i - 1];
    }
    return NULL;
}

static void publish_post(struct fact *fact)
{
    static const char *const places[HISTORY_CELLS] = {"1,1", "1,2", "2,1", NULL};
    char place[64] = "";

    fact->author = (unsigned)below(HISTORY_AUTHORS);
    fact->word = (unsigned)below(HISTORY_WORDS);
    fact->lang = (unsigned)below(2);
    fact->cell = (unsigned)below(HISTORY_CELLS);
    if (places[fact->cell])
        snprintf(place, sizeof(place), ",\"geo\":{\"lon\":%c.%zu,\"lat\":%c.%zu}",
                 places[fact->cell][0], below(10), places[fact->cell][2], below(10));
    snprintf(fact->json, sizeof(fact->json),
             "{\"id\":\"%" PRIu64 "\",\"type\":\"post\",\"post\":{\"id\":\"%" PRIu64
             "\",\"user\":{\"id\":\"%s\"},\"text\":\"%s\",\"lang\":\"%s\"%s}}",
             fact->id, fact->id, history_author(fact->author), history_words[fact->word],
             history_langs[fact->lang], place);
}

static void publish_unlogged(struct redis *redis)
{
    struct fact *fact = &unlogged[unlogged_count];

    if (unlogged_count == HISTORY_UNLOGGED)
        return;
    *fact = (struct fact){.id = HISTORY_UNLOGGED_FIRST + unlogged_count++, .is_unlogged = true};
    publish_post(fact);
    redis->said[redis->said_end++] = fact;
}

void publish(struct redis *redis)
{
    struct fact *fact = &redis->facts[redis->count], *before = last_logged(redis);

    if (redis->count == HISTORY_FACTS)
        return;
    if (one_in(10))
        publish_unlogged(redis);
    last_id = (last_id / SL_ID_PER_MS + 1) * SL_ID_PER_MS + redis->shard * SL_ID_PER_SHARD;
    *fact = (struct fact){.id = last_id, .previous = before ? before->id : 0, .published_at = now};
    if (has_relations && redis->shard == 0 && one_in(20))
        reader_publish(fact);
    else
        publish_post(fact);
    redis->said[redis->said_end++] = fact;
    redis->count++;
}

/* The end of the log, as reported to the subscriber; 0: empty. */
static uint64_t log_end(const struct redis *redis)
{
    for (size_t i = redis->count; i > 0; i--) {
        const struct fact *fact = &redis->facts[i - 1];

        if (!fact->is_lost && !fact->is_gone)
            return fact->id;
    }
    return 0;
}

/* false: unreadable. */
static bool read_batch(const struct redis *redis, struct log_batch *batch,
                       struct sl_event_log_entry *entries)
{
    batch->entries = entries;
    batch->count = 0;
    for (size_t i = redis->trimmed; i < redis->count && batch->count < LOG_BATCH_EVENTS; i++) {
        const struct fact *fact = &redis->facts[i];

        if (fact->is_lost || fact->is_gone || fact->id <= batch->after || fact->id > batch->to)
            continue;
        if (fact->is_unreadable)
            return false;
        entries[batch->count++] =
            (struct sl_event_log_entry){fact->id, fact->previous, sl_slice_str(fact->json)};
    }
    batch->is_full = batch->count == LOG_BATCH_EVENTS;
    return true;
}

/* Called like repair.c does. */
static void ask_for_order(struct redis *redis, bool is_look_up)
{
    uint64_t after, to;

    if (redis->requests[0].is_asked)
        return;
    if (!shard_order_wants(redis->order, &after, &to)) {
        if (!is_look_up)
            return;
        after = shard_order_last(redis->order);
        to = SL_ID_MAX;
    }
    redis->requests[0].is_asked = true;
    redis->requests[0].after = after;
    redis->requests[0].to = to;
}

bool answer_order(struct redis *redis)
{
    static struct sl_event_log_entry entries[LOG_BATCH_EVENTS];
    struct log_batch batch = {.after = redis->requests[0].after, .to = redis->requests[0].to};

    if (!redis->requests[0].is_asked)
        return false;
    redis->requests[0].is_asked = false;
    if (read_batch(redis, &batch, entries))
        shard_order_batch(redis->order, &batch, clock_monotonic_us());
    else
        shard_order_give_up(redis->order);
    end_turn();
    ask_for_order(redis, false);
    return true;
}

static int ask_for_batches(struct log_reader *log, uint32_t shard, uint64_t after, uint64_t to,
                           log_batch_fn done, void *owner)
{
    struct redis *redis = &redises[shard];

    assert_null(log);
    assert_false(redis->requests[1].is_asked);
    redis->requests[1].is_asked = true;
    redis->requests[1].after = after;
    redis->requests[1].to = to;
    redis->requests[1].done = done;
    redis->requests[1].owner = owner;
    return 0;
}

bool answer_batches(struct redis *redis)
{
    static struct sl_event_log_entry entries[LOG_BATCH_EVENTS];
    struct log_batch batch = {.after = redis->requests[1].after, .to = redis->requests[1].to};

    if (!redis->requests[1].is_asked)
        return false;
    redis->requests[1].is_asked = false;
    if (read_batch(redis, &batch, entries))
        redis->requests[1].done(redis->requests[1].owner, &batch, 0, NULL);
    else
        redis->requests[1].done(redis->requests[1].owner, NULL, -EBADMSG, "no event of ours");
    return true;
}

bool hear_next(struct redis *redis)
{
    const struct fact *fact;
    struct live_message message;

    if (redis->said_first == redis->said_end)
        return false;
    fact = redis->said[redis->said_first++];
    message = (struct live_message){
        .shard = redis->shard,
        .id = fact->is_unlogged ? 0 : fact->id,
        .previous = fact->previous,
        .received_us = clock_monotonic_us(),
        .body = sl_slice_str(fact->json),
    };
    if (shard_order_take(redis->order, &message))
        ask_for_order(redis, false);
    end_turn();
    return true;
}

/* The connection breaks; messages in flight are lost. */
void connect_again(struct redis *redis)
{
    redis->said_first = redis->said_end;
    shard_order_resume(redis->order, log_end(redis));
    end_turn();
    ask_for_order(redis, true);
}

static bool stays(const struct redis *redis, const struct fact *fact)
{
    return fact->is_claimed && fact->id > redis->heard_of;
}

/* A failover, which loses the end of the log. */
void rewind_log(struct redis *redis)
{
    for (size_t i = below(6), at = redis->count; i > 0 && at > redis->trimmed + 1; at--) {
        struct fact *fact = &redis->facts[at - 1];

        if (fact->is_lost)
            continue;
        if (fact->is_gone || stays(redis, fact) || fact->kind == FACT_RELATION)
            break;
        fact->is_lost = true;
        i--;
    }
    redis->requests[0].is_asked = false;
    connect_again(redis);
}

void trim(struct redis *redis)
{
    size_t to = redis->trimmed + below(redis->count - redis->trimmed + 1);

    if (!one_in(4) && redis->count > 300 && to > redis->count - 300)
        to = redis->count - 300;
    while (redis->trimmed < to && !stays(redis, &redis->facts[redis->trimmed]))
        redis->facts[redis->trimmed++].is_gone = true;
}

void take_out(struct redis *redis)
{
    size_t from = redis->trimmed + below(redis->count - redis->trimmed + 1), count = 1 + below(5);

    for (size_t i = from; i < redis->count && i < from + count; i++)
        redis->facts[i].is_gone = !stays(redis, &redis->facts[i]);
}

void spoil(struct redis *redis)
{
    size_t at = redis->trimmed + below(redis->count - redis->trimmed + 1);

    if (at < redis->count && !stays(redis, &redis->facts[at]))
        redis->facts[at].is_unreadable = true;
}

/* The unreadable events of the log are repaired. */
void mend(struct redis *redis)
{
    for (size_t i = redis->trimmed; i < redis->count; i++) {
        if (redis->facts[i].is_unreadable) {
            redis->facts[i].is_gone = redis->facts[i].is_mended = true;
            redis->facts[i].is_unreadable = false;
        }
    }
}

/* --- callbacks of the shard order ------------------------------------------------------------- */

static void on_event(void *context, const struct live_message *message)
{
    struct event_origin origin = {message->id, message->previous, message->shard,
                                  message->received_us};
    struct order_item item = {.kind = ORDER_EVENT,
                              .shard = message->shard,
                              .id = message->id,
                              .previous = message->previous};
    struct failure failure;
    int r;

    (void)context;
    r = event_decode(decoder, message->body, &origin, &item.event, &failure);
    assert_true(r == 0 || r == -ENOMEM);
    if (r < 0)
        item.kind = ORDER_MISS;
    id_order_take(order, &item, now_us);
    event_unref(item.event);
}

static void on_gap(void *context, const struct gap *gap)
{
    const struct order_item item = {.kind = ORDER_GAP,
                                    .shard = gap->shard,
                                    .id = gap->to,
                                    .previous = gap->from,
                                    .reason = gap->reason};

    (void)context;
    id_order_take(order, &item, now_us);
}

/* --- callbacks of the order over all shards --------------------------------------------------- */

static void pass(const struct order_item *item)
{
    const char *said = item->event->json.data + strlen("{\"id\":\"");
    struct fact *fact = fact_of(strtoull(said, NULL, 10));

    fact->passed_at = ++now;
    for (uint32_t shard = 0; shard < shards; shard++)
        fact->is_late = fact->is_late || redises[shard].heard_of > fact->id;
    reader_note_passed(item->id);
    deliver_event(deliver, item->event);
}

static void on_ordered(void *context, const struct order_item *item)
{
    (void)context;
    if (item->id > redises[item->shard].heard_of)
        redises[item->shard].heard_of = item->id;
    if (item->kind == ORDER_EVENT)
        pass(item);
    else if (item->kind == ORDER_MISS)
        deliver_miss(deliver, item->shard, item->id);
    else
        deliver_gap(deliver, &(struct gap){item->shard, item->previous, item->id, item->reason});
}

static void on_watermark(void *context, uint64_t id)
{
    (void)context;
    deliver_set_watermark(deliver, id);
}

static void on_behind(void *context, uint32_t shard, uint64_t low, enum order_behind why)
{
    (void)context;
    (void)why;
    deliver_shard_behind(deliver, shard, low);
}

static void on_low(void *context, uint32_t shard, uint64_t low)
{
    (void)context;
    deliver_shard_behind(deliver, shard, low);
}

static void on_whole(void *context, uint32_t shard)
{
    (void)context;
    deliver_shard_whole(deliver, shard);
}

/* A shard is complete up to its last event. */
static void end_round(void)
{
    uint64_t complete = 0;

    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct fact *last = last_logged(&redises[shard]);

        if (!last || shard_order_last(redises[shard].order) >= last->id)
            complete |= UINT64_C(1) << shard;
    }
    id_order_end_round(order, last_id, complete, now_us);
    end_turn();
}

void turn(void)
{
    uv_run(&loop, UV_RUN_NOWAIT);
    end_round();
}

bool answer_all(void)
{
    bool has_answered = false;

    for (uint32_t shard = 0; shard < shards; shard++) {
        has_answered = answer_batches(&redises[shard]) || has_answered;
        has_answered = answer_order(&redises[shard]) || has_answered;
        while (hear_next(&redises[shard]))
            has_answered = true;
    }
    return has_answered;
}

void end_faults(void)
{
    for (uint32_t shard = 0; shard < shards; shard++) {
        mend(&redises[shard]);
        connect_again(&redises[shard]);
        publish(&redises[shard]); /* so that the rewind is noticed */
    }
}

struct fact *fact_of(uint64_t id)
{
    struct redis *redis = &redises[sl_id_shard(id)];
    size_t low = 0, high = redis->count;

    if (id >= HISTORY_UNLOGGED_FIRST)
        return &unlogged[id - HISTORY_UNLOGGED_FIRST];
    while (high - low > 1) {
        size_t middle = (low + high) / 2;

        if (redis->facts[middle].id <= id)
            low = middle;
        else
            high = middle;
    }
    assert_true(redis->count > 0 && redis->facts[low].id == id);
    return &redis->facts[low];
}

uint64_t newest_told(void)
{
    uint64_t newest = 0;

    for (uint32_t shard = 0; shard < shards; shard++) {
        uint64_t last = shard_order_last(redises[shard].order);

        newest = last > newest ? last : newest;
    }
    return newest > history_head().id ? newest : history_head().id;
}

bool all_has_passed(void)
{
    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct fact *last = last_logged(&redises[shard]);

        if (last && redises[shard].heard_of < last->id)
            return false;
    }
    return true;
}

void swallow(struct redis *redis)
{
    bool is_spoilt = one_in(2);

    for (size_t i = 1 + below(4); i > 0 && redis->said_first < redis->said_end; i--) {
        struct fact *fact = redis->said[redis->said_first++];

        if (fact->is_unlogged || fact->is_gone || stays(redis, fact))
            continue;
        fact->is_gone = !is_spoilt;
        fact->is_unreadable = is_spoilt;
    }
}

void lose_message(struct redis *redis)
{
    redis->said_first += redis->said_first < redis->said_end;
}

void look_up(struct redis *redis)
{
    ask_for_order(redis, true);
}

void end_turn(void)
{
    deliver_turn_end(deliver);
}

void step_begins(void)
{
    now++;
    now_us += 1000;
}

/* --- beginning and end ------------------------------------------------------------------------ */

void history_begin(const struct history_settings *settings)
{
    static const struct shard_order_callbacks callbacks = {on_event, on_gap};
    static const struct id_order_callbacks order_callbacks = {on_ordered, on_watermark, on_behind,
                                                              on_low, on_whole};
    const struct log_cache_settings cache_settings = {.loop = &loop,
                                                      .metrics = metrics,
                                                      .read = ask_for_batches,
                                                      .decoder = decoder,
                                                      .max_bytes = PAGE_BYTES,
                                                      .retry_ms = 2};
    const struct id_order_settings order_settings = {settings->order_wait_ms, settings->order_bytes,
                                                     metrics};
    const struct deliver_settings deliver_settings = {.loop = &loop,
                                                      .metrics = metrics,
                                                      .max_owed_bytes = settings->max_owed_bytes,
                                                      .max_event_bytes = 1 << 30,
                                                      .max_home_bytes = 1 << 30,
                                                      .ring_bytes = settings->ring_bytes,
                                                      .max_lag_ms = UINT64_MAX / 4};

    shards = settings->shards;
    random_state = (uint64_t)settings->seed << 32;
    last_id = sl_id_first_at(HISTORY_BEGINS_MS);
    has_relations = settings->has_relations;
    memset(redises, 0, sizeof(redises));
    unlogged_count = 0;
    now = clock_us = 1;
    hash_keys = settings->seed;
    cache = log_cache_new(&cache_settings);
    deliver = deliver_new(&deliver_settings);
    order = id_order_new(&order_settings, &order_callbacks, NULL);
    assert_true(cache && deliver && order);
    deliver_set_log(deliver, cache);
    reader_begin();
    for (uint32_t shard = 0; shard < shards; shard++) {
        struct shard_order_settings shard_settings = {shard, 0, 4096, metrics};

        redises[shard].shard = shard;
        redises[shard].order = shard_order_new(&shard_settings, &callbacks, NULL);
        assert_non_null(redises[shard].order);
        deliver_begin_shard(deliver, shard, 0);
        id_order_begin_shard(order, shard, 0);
    }
}

void history_end(void)
{
    for (uint32_t shard = 0; shard < shards; shard++)
        shard_order_free(redises[shard].order);
    id_order_free(order);
    deliver_set_log(deliver, NULL);
    deliver_free(deliver);
    log_cache_free(cache);
    uv_run(&loop, UV_RUN_DEFAULT);
}

int history_setup(void **state)
{
    (void)state;
    log_set_level(LOG_LEVEL_ERROR);
    uv_loop_init(&loop);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    decoder = event_decoder_new(1 << 20);
    return 0;
}

int history_teardown(void **state)
{
    (void)state;
    event_decoder_free(decoder);
    assert_int_equal(uv_loop_close(&loop), 0);
    metrics_board_free(board);
    return 0;
}
