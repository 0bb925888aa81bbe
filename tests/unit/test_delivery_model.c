/* test_delivery_model.c - a random history, including faults, from the log and the live channel to
 * what each client was sent.
 *
 * shard_order, id_order, deliver, catch_up and log_cache are real; Redis is an array of facts
 * (events), and a round completes at once; another gateway is modelled, too, which is up to date in
 * all shards. Live messages are lost, connections to Redis break, the log is trimmed, events are
 * deleted within it, are unreadable, or are rewound by failovers. Clients stall, leave and come
 * back with what they have. In the end each fact that a client's filter matches has reached it
 * once, in order, or is in a gap that it was told about; each rewound fact is in a gap that it was
 * told about before it was sent the replacement.
 *
 * For clients with a pace, the posts of each window are picked a second time, in a simple way, and
 * compared with what was sent and what was reported as skipped. Nothing is lost from their logs.
 * Where events are late, the numbers of sent and skipped posts add up, except in gaps.
 *
 *     SEED=7 test_delivery_model         only that run
 *     RUNS=5000 test_delivery_model      more runs */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stable_hash.h"
#include "filters/filter.h"
#include "filters/sample.h"
#include "gateway/delivery/deliver_parts.h"
#include "gateway/delivery/log_cache.h"
#include "gateway/front/event_fields.h"
#include "gateway/intake/id_order.h"
#include "gateway/intake/shard_order.h"
#include "src/model/moment.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/events.h"
#include "tests/support/fake_client.h"
#include "tests/support/rounds.h"

enum {
    FACTS_MAX = 4000,
    CLIENTS = 8,
    SHARDS = 3,
    STEPS = 1500,
    HEARD_MAX = 8000,
    RUNS = TEST_ROUNDS(40),
    RING_BYTES = 24 << 10,
    PAGE_BYTES = 48 << 10,
    WAIT_MS = 60,         /* a step is a millisecond */
    PATIENT_MS = 1000000, /* nothing is late */
    ORDER_BYTES = 64 << 10,
    WINDOW_MS = 20,
    WINDOWS_MAX = SHARDS * FACTS_MAX
};

struct fact {
    uint64_t id, previous;
    bool is_tea;
    bool is_lost;       /* rewound */
    bool is_gone;       /* no longer in the log */
    bool is_unreadable; /* in the log */
    bool is_mended;     /* gone, and it was unreadable */
    bool is_claimed;    /* a client came with its id: it stays until it has passed */
    char json[160];
};

struct redis {
    struct fact facts[FACTS_MAX];
    size_t count, trimmed;
    size_t said[FACTS_MAX]; /* live messages in flight: facts */
    size_t said_first, said_end;
    struct {
        bool is_asked;
        uint64_t after, to;
        log_batch_fn done; /* NULL: for the order */
        void *owner;
    } requests[2]; /* of the order, of the batches */
    struct shard_order *order;
    uint64_t heard_of; /* the newest that has passed through both orders */
    uint32_t shard;
};

struct heard {
    uint64_t id;       /* 0: a gap */
    uint64_t from, to; /* of the gap */
    bool is_redis;     /* its reason: the log may still have some of what it covers */
    bool is_first;     /* the first one of its connection */
    bool is_late;
};

struct client_model {
    struct fake_client fake;
    bool is_there, is_tea;
    uint64_t start;          /* it wants what is after this id */
    struct sl_cursor begun;  /* it may be sent what is after this cursor */
    struct sl_cursor cursor; /* to resume from */
    struct heard heard[HEARD_MAX];
    size_t count;
    bool is_connecting;
    bool is_vague; /* a shard was behind while it was connected: ids are not cursors */
    bool has_gap;  /* it was told about a gap on this connection: later posts are not thinned out */
    uint32_t percent; /* share of its posts that it is sent, as it was told */
    bool has_had[SHARDS]
                [FACTS_MAX]; /* it was sent it, or told that it was skipped, or about a gap */
    bool is_left_out[SHARDS][FACTS_MAX];
    struct count_question question; /* its pace */
    struct {
        uint64_t id, events;
    } skipped[WINDOWS_MAX]; /* windows, as it was told */
    size_t skipped_count;
    uint64_t strays; /* late posts of closed windows, as it was told */
    uint64_t unsure; /* it came back with this cursor: it may lack what was late before, about which
                        markers would tell it; these logs have none */
};

static struct redis redises[SHARDS];
static struct client_model clients[CLIENTS];
static uint32_t shards;
static bool is_short_of_memory; /* at times */
static bool are_sampled;        /* all clients, at times */
static bool are_paced;          /* all clients, from beginning to end */
static bool are_late;           /* for clients with a pace: events are late at times */
static uint64_t last_id, random_state;
static uv_loop_t loop;
static struct metrics_board *board;
static struct metrics *metrics;
static struct deliver *deliver;
static struct id_order *order;
static uint64_t now_us;
static struct log_cache *cache;
static struct event_decoder *decoder;

static size_t below(size_t n)
{
    return stable_hash(random_state++) % n;
}

static bool one_in(size_t n)
{
    return below(n) == 0;
}

static struct sl_cursor head(void)
{
    return deliver_cursor(deliver);
}

/* In the form of a channel. */
static struct sl_cursor cursor_of(const struct client *client)
{
    struct sl_cursor cursor = deliver_client_cursor(deliver, client);

    if (cursor.id == 0)
        cursor.id = SL_MOMENT_ID_MIN;
    return cursor;
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

static void publish(struct redis *redis)
{
    struct fact *fact = &redis->facts[redis->count], *before = last_logged(redis);

    if (redis->count == FACTS_MAX)
        return;
    last_id = (last_id / SL_ID_PER_MS + 1) * SL_ID_PER_MS + redis->shard * SL_ID_PER_SHARD;
    *fact = (struct fact){.id = last_id, .previous = before ? before->id : 0, .is_tea = one_in(3)};
    snprintf(fact->json, sizeof(fact->json),
             "{\"id\":\"%" PRIu64 "\",\"type\":\"post\",\"post\":{\"id\":\"%" PRIu64
             "\",\"user\":{\"id\":\"1\"},\"text\":\"%s\"}}",
             last_id, last_id, fact->is_tea ? "tea" : "milk");
    redis->said[redis->said_end++] = redis->count++;
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

static bool answer_order(struct redis *redis)
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
    deliver_turn_end(deliver);
    ask_for_order(redis, false);
    return true;
}

static int ask_for_batches(struct log_reader *reader, uint32_t shard, uint64_t after, uint64_t to,
                           log_batch_fn done, void *owner)
{
    struct redis *redis = &redises[shard];

    assert_null(reader);
    assert_false(redis->requests[1].is_asked);
    redis->requests[1].is_asked = true;
    redis->requests[1].after = after;
    redis->requests[1].to = to;
    redis->requests[1].done = done;
    redis->requests[1].owner = owner;
    return 0;
}

static bool answer_batches(struct redis *redis)
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

static bool hear_next(struct redis *redis)
{
    const struct fact *fact;
    struct live_message message;

    if (redis->said_first == redis->said_end)
        return false;
    fact = &redis->facts[redis->said[redis->said_first++]];
    message = (struct live_message){
        .shard = redis->shard,
        .id = fact->id,
        .previous = fact->previous,
        .received_us = clock_monotonic_us(),
        .body = sl_slice_str(fact->json),
    };
    if (shard_order_take(redis->order, &message))
        ask_for_order(redis, false);
    deliver_turn_end(deliver);
    return true;
}

/* The connection breaks; messages in flight are lost. */
static void connect_again(struct redis *redis)
{
    redis->said_first = redis->said_end;
    shard_order_resume(redis->order, log_end(redis));
    deliver_turn_end(deliver);
    ask_for_order(redis, true);
}

static bool stays(const struct redis *redis, const struct fact *fact)
{
    return fact->is_claimed && fact->id > redis->heard_of;
}

/* A failover, which loses the end of the log. */
static void rewind_log(struct redis *redis)
{
    for (size_t i = below(6), at = redis->count; i > 0 && at > redis->trimmed + 1; at--) {
        struct fact *fact = &redis->facts[at - 1];

        if (fact->is_lost)
            continue;
        if (fact->is_gone || stays(redis, fact))
            break;
        fact->is_lost = true;
        i--;
    }
    redis->requests[0].is_asked = false;
    connect_again(redis);
}

static void trim(struct redis *redis)
{
    size_t to = redis->trimmed + below(redis->count - redis->trimmed + 1);

    if (!one_in(4) && redis->count > 300 && to > redis->count - 300)
        to = redis->count - 300;
    while (redis->trimmed < to && !stays(redis, &redis->facts[redis->trimmed]))
        redis->facts[redis->trimmed++].is_gone = true;
}

static void take_out(struct redis *redis)
{
    size_t from = redis->trimmed + below(redis->count - redis->trimmed + 1), count = 1 + below(5);

    for (size_t i = from; i < redis->count && i < from + count; i++)
        redis->facts[i].is_gone = !stays(redis, &redis->facts[i]);
}

static void spoil(struct redis *redis)
{
    size_t at = redis->trimmed + below(redis->count - redis->trimmed + 1);

    if (at < redis->count && !stays(redis, &redis->facts[at]))
        redis->facts[at].is_unreadable = true;
}

/* The unreadable events of the log are repaired. */
static void mend(struct redis *redis)
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

static void on_ordered(void *context, const struct order_item *item)
{
    (void)context;
    if (item->id > redises[item->shard].heard_of)
        redises[item->shard].heard_of = item->id;
    if (item->kind == ORDER_EVENT)
        deliver_event(deliver, item->event);
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
    deliver_turn_end(deliver);
}

/* --- clients ---------------------------------------------------------------------------------- */

static uint64_t number_behind(const char *line, const char *name)
{
    const char *at = strstr(line, name);

    assert_non_null(at);
    return strtoull(at + strlen(name), NULL, 10);
}

/* A late event says what its client's cursor is; for any other it is the id. While a shard is
 * behind, the id alone would claim too much: then the client asks for its cursor when it leaves. */
static void take_cursor(struct client_model *client, const char *json, size_t size, uint64_t id)
{
    static const char name[] = "\"cursor\":\"";
    const char *text = memmem(json, size, name, sizeof(name) - 1);
    const char *end;

    client->cursor = (struct sl_cursor){.id = id};
    if (!text)
        return;
    text += sizeof(name) - 1;
    end = strchr(text, '"');
    assert_int_equal(sl_cursor_parse(sl_slice(text, (size_t)(end - text)), &client->cursor, NULL),
                     0);
}

static struct fact *fact_of(uint64_t id);
static bool was_told(const struct client_model *client, const struct fact *fact);

static bool is_in_part(const struct client_model *client, uint64_t id)
{
    return client->percent == 100 || sl_sample_has(client->percent * 10000, id);
}

static void fail_for(const struct client_model *client, const char *what, uint64_t id)
{
    fail_msg("client %zu (tea %d, start %" PRIu64 "): %s: %" PRIu64, (size_t)(client - clients),
             client->is_tea, client->start, what, id);
}

static void take_sent(struct client_model *client, const struct heard *heard)
{
    uint32_t shard = sl_id_shard(heard->id);
    size_t i = (size_t)(fact_of(heard->id) - redises[shard].facts);

    if (!heard->is_late && !client->has_gap && !is_in_part(client, heard->id))
        fail_for(client, "none of what it should be sent", heard->id);
    if (client->is_left_out[shard][i])
        fail_for(client, "sent, and told to be left out", heard->id);
    client->has_had[shard][i] = true;
}

/* Skipped posts: those of which it had nothing, up to this cursor, outside of its share. Lost or
 * deleted ones may be among them, or not. */
static void take_skipped(struct client_model *client, const char *json)
{
    const char *text = strstr(json, "\"id\":\"") + 6;
    uint64_t said = number_behind(json, "\"events\":"), least = 0, most = 0;

    assert_int_equal(sl_cursor_parse(sl_slice(text, strcspn(text, "\"")), &client->cursor, NULL),
                     0);
    for (uint32_t shard = 0; shard < shards; shard++) {
        uint64_t to = sl_cursor_of_shard(&client->cursor, shard);
        const struct redis *redis = &redises[shard];

        for (size_t i = 0; i < redis->count && redis->facts[i].id <= to; i++) {
            const struct fact *fact = &redis->facts[i];

            if (client->has_had[shard][i] || (client->is_tea && !fact->is_tea) ||
                fact->id <= sl_cursor_of_shard(&client->begun, shard) ||
                is_in_part(client, fact->id))
                continue;
            client->has_had[shard][i] = client->is_left_out[shard][i] = true;
            most++;
            least += fact->id > client->start && !fact->is_lost && !fact->is_gone &&
                     !fact->is_unreadable && !was_told(client, fact);
        }
    }
    if (said < least || said > most)
        fail_msg("client %zu: %" PRIu64 " left out, and not %" PRIu64 " to %" PRIu64 ": %.80s",
                 (size_t)(client - clients), said, least, most, json);
}

static void take_skipped_of_window(struct client_model *client, const char *json, const char *end)
{
    uint64_t id = number_behind(json, "\"id\":\"");

    if (memmem(json, (size_t)(end - json), "reason", 6)) {
        assert_true(are_late);
        client->strays += number_behind(json, "\"events\":");
        return;
    }
    assert_true(client->skipped_count < WINDOWS_MAX);
    client->skipped[client->skipped_count].id = id;
    client->skipped[client->skipped_count++].events = number_behind(json, "\"events\":");
    client->cursor = (struct sl_cursor){.id = id};
}

/* Records complete lines; an incomplete one stays in the buffer. */
static void listen_to(struct client_model *client)
{
    struct buffer *received = &client->fake.received;
    const char *text = buffer_str(received), *at = text, *end;

    assert_non_null(text);
    for (; (end = strstr(at, "}\r\n\r\n")); at = end + 5) {
        const char *json = strchr(at, '{');
        struct heard *heard = &client->heard[client->count];

        assert_true(client->count < HEARD_MAX);
        if (strncmp(json, "{\"type\":\"warning\"", 17) == 0)
            continue;
        if (strncmp(json, "{\"type\":\"sampling\"", 18) == 0) {
            client->percent = (uint32_t)number_behind(json, "\"percent\":");
            continue;
        }
        if (strncmp(json, "{\"type\":\"skipped\"", 17) == 0) {
            if (are_paced)
                take_skipped_of_window(client, json, end);
            else
                take_skipped(client, json);
            continue;
        }
        *heard = (struct heard){.is_first = client->is_connecting};
        client->is_connecting = false;
        if (strncmp(json, "{\"type\":\"gap\"", 13) == 0) {
            client->has_gap = true;
            heard->from = number_behind(json, "\"from\":\"");
            heard->to = number_behind(json, "\"to\":\"");
            heard->is_redis = memmem(json, (size_t)(end - json), "redis", 5);
            assert_true(heard->from < heard->to);
        } else {
            heard->id = number_behind(json, "{\"id\":\"");
            heard->is_late = memmem(json, (size_t)(end - json), "late", 4);
            take_cursor(client, json, (size_t)(end - json), heard->id);
            take_sent(client, heard);
        }
        client->count++;
    }
    buffer_consume(received, (size_t)(at - text));
}

static void make_room(struct client_model *client, size_t bytes)
{
    if (fake_client_make_room(&client->fake, bytes))
        deliver_client_writable(&client->fake.client);
}

static void join(struct client_model *client)
{
    struct sl_filter_text text = {.firehose = !client->is_tea,
                                  .track = client->is_tea ? SL_SLICE("tea") : SL_SLICE_NONE};
    struct sl_filter_error error;
    struct sl_filter *filter;

    fake_client_init(&client->fake, FORMAT_NDJSON, head);
    client->fake.cursor_of = cursor_of;
    assert_non_null(buffer_reserve(&client->fake.received,
                                   1 << 20)); /* otherwise the test's own allocation could fail */
    assert_non_null(buffer_reserve(&client->fake.held, 1 << 12));
    client->is_there = client->is_connecting = true;
    client->is_vague = client->has_gap = false;
    client->percent = 100;
    client->fake.client.sampling.is_wanted = are_sampled;
    client->fake.client.question = client->question;
    if (one_in(3)) /* then it gets its other events in the same order */
        client->fake.client.fields = one_in(2)
                                         ? EVENT_FIELDS_SHORT
                                         : event_field_bit(FIELD_ID) | event_field_bit(FIELD_TEXT);
    client->fake.room = one_in(2) ? FAKE_UNLIMITED : below(3000);
    assert_int_equal(sl_filter_new(&text, &SL_FILTER_LIMITS_DEFAULT, &filter, &error), 0);
    assert_int_equal(deliver_subscribe(deliver, &client->fake.client, filter, -1), 0);
    sl_filter_unref(filter);
}

/* Over all shards: everything up to there has passed, or was reported as a gap. */
static uint64_t newest_told(void)
{
    uint64_t newest = 0;

    for (uint32_t shard = 0; shard < shards; shard++) {
        uint64_t last = shard_order_last(redises[shard].order);

        newest = last > newest ? last : newest;
    }
    return newest > head().id ? newest : head().id;
}

static struct count_question draw_pace(void)
{
    static const enum pick picks[] = {PICK_EVEN, PICK_NEWEST, PICK_FIRST};

    return (struct count_question){
        .bucket_ms = WINDOW_MS, .pick = {.posts = 1 + (uint32_t)below(5), .pick = picks[below(3)]}};
}

/* A new client, which starts now or some way back. */
static void begin_client(struct client_model *client)
{
    size_t back = one_in(3) ? 0 : 1 + below(one_in(4) ? 1000 : 100);
    struct redis *redis = &redises[0];

    client->count = 0;
    memset(client->has_had, 0, sizeof(client->has_had));
    memset(client->is_left_out, 0, sizeof(client->is_left_out));
    client->is_tea = one_in(2);
    client->start = newest_told();
    client->begun = head();
    client->skipped_count = client->strays = client->unsure = 0;
    client->question = are_paced ? draw_pace() : (struct count_question){0};
    join(client);
    client->cursor = (struct sl_cursor){.id = client->start};
    if (are_paced && (back == 0 || back >= redis->count || shards > 1)) {
        assert_int_equal(deliver_resume(deliver, &client->fake.client, &client->cursor), 0);
        return;
    }
    if (back == 0 || back >= redis->count || shards > 1 ||
        redis->facts[redis->count - back].is_lost)
        return;
    client->start = redis->facts[redis->count - back].id;
    client->begun = client->cursor = (struct sl_cursor){.id = client->start};
    assert_int_equal(deliver_resume(deliver, &client->fake.client, &client->cursor), 0);
}

static int by_id(const void *a, const void *b)
{
    uint64_t left = (*(const struct fact *const *)a)->id,
             right = (*(const struct fact *const *)b)->id;

    return left < right ? -1 : left > right;
}

/* At a gateway that is up to date in all shards: what is new to the client. false: this includes a
 * gap, about which the client would have to be told. */
static bool find_news(const struct client_model *client, const struct fact **news,
                      size_t *ret_count)
{
    size_t count = 0;

    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct redis *redis = &redises[shard];
        uint64_t had = sl_cursor_of_shard(&client->cursor, shard);

        for (size_t i = 0; i < redis->count; i++) {
            const struct fact *fact = &redis->facts[i];

            if (fact->is_lost && i > 0 && had > redis->facts[i - 1].id)
                return false;
            if (fact->id <= had)
                continue;
            if (fact->is_lost || fact->is_gone || fact->is_unreadable)
                return false;
            if (fact->is_tea || !client->is_tea)
                news[count++] = fact;
        }
    }
    qsort(news, count, sizeof(*news), by_id);
    *ret_count = count;
    return true;
}

/* It comes back with a plain id that claims all shards, from a gateway where that is true. */
static void visit_another(struct client_model *client)
{
    static const struct fact *news[SHARDS * FACTS_MAX];
    size_t count;

    if (last_id <= client->cursor.id || !find_news(client, news, &count))
        return;
    for (size_t i = 0; i < count; i++) {
        assert_true(client->count < HEARD_MAX);
        client->heard[client->count++] = (struct heard){
            .id = news[i]->id, .is_first = i == 0, .is_late = news[i]->id < client->cursor.id};
        client->percent = 100;
        take_sent(client, &client->heard[client->count - 1]);
    }
    client->cursor = (struct sl_cursor){.id = last_id};
    redises[sl_id_shard(last_id)].facts[redises[sl_id_shard(last_id)].count - 1].is_claimed = true;
}

static void come_back(struct client_model *client)
{
    client->unsure = client->cursor.id;
    join(client);
    assert_int_equal(deliver_resume(deliver, &client->fake.client, &client->cursor), 0);
}

/* With a cursor, or without. */
static void leave(struct client_model *client, bool is_polite)
{
    struct sl_cursor cursor = fake_client_lives(&client->fake) || client->fake.client.catcher
                                  ? cursor_of(&client->fake.client)
                                  : client->fake.disconnect_cursor;

    if (is_polite) {
        deliver_suspend(&client->fake.client);
        buffer_append_slice(&client->fake.received, buffer_slice(&client->fake.held));
        listen_to(client);
        client->cursor = cursor;
    }
    deliver_leave(&client->fake.client);
    fake_client_done(&client->fake);
    client->is_there = false;
}

static void attend(struct client_model *client)
{
    struct sl_cursor cursor;

    if (!client->is_there)
        return;
    cursor = deliver_cursor(deliver);
    client->is_vague = client->is_vague || !sl_cursor_is_plain(&cursor);
    if (fake_client_lives(&client->fake))
        cursor = deliver_client_cursor(deliver, &client->fake.client);
    client->is_vague = client->is_vague || !sl_cursor_is_plain(&cursor);
    if (fake_client_lives(&client->fake)) {
        listen_to(client);
        return;
    }
    if (!is_short_of_memory)
        assert_int_equal(client->fake.disconnect_reason, DISCONNECT_TOO_SLOW);
    leave(client, true);
    come_back(client);
}

/* --- checks ----------------------------------------------------------------------------------- */

static struct fact *fact_of(uint64_t id)
{
    struct redis *redis = &redises[sl_id_shard(id)];
    size_t low = 0, high = redis->count;

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

static bool is_in_gap(const struct heard *heard, uint64_t id)
{
    return heard->id == 0 && id > heard->from && id <= heard->to;
}

static bool was_told(const struct client_model *client, const struct fact *fact)
{
    for (size_t i = 0; i < client->count; i++) {
        const struct heard *heard = &client->heard[i];

        if (is_in_gap(heard, fact->id) && (fact->is_gone || heard->is_redis))
            return true;
    }
    return false;
}

/* The first event that replaced it; NULL: there is none. */
static const struct fact *survivor_behind(const struct fact *fact)
{
    const struct redis *redis = &redises[sl_id_shard(fact->id)];

    while (fact < redis->facts + redis->count && fact->is_lost)
        fact++;
    return fact < redis->facts + redis->count ? fact : NULL;
}

/* There must be a gap before the next event of the shard on the same connection that was not
 * rewound. This is only checked for the first lost event: once told about a gap, a client cannot
 * know that more is missing. */
static void check_lost(const struct client_model *client, size_t at)
{
    uint64_t id = client->heard[at].id;
    const struct fact *survivor = survivor_behind(fact_of(id));

    for (size_t i = at + 1; survivor && i < client->count && !client->heard[i].is_first; i++) {
        const struct heard *heard = &client->heard[i];

        if (is_in_gap(heard, id) || is_in_gap(heard, survivor->id))
            return;
        if (heard->id && sl_id_shard(heard->id) == sl_id_shard(id) && !fact_of(heard->id)->is_lost)
            fail_for(client, "was not told that it is lost", id);
    }
}

static void judge(const struct client_model *client)
{
    uint64_t newest[SHARDS] = {0}, newest_of_all = 0;

    for (size_t i = 0; i < client->count; i++) {
        uint64_t id = client->heard[i].id;
        const struct fact *fact;

        if (id == 0)
            continue;
        fact = fact_of(id);
        if (client->is_tea && !fact->is_tea)
            fail_for(client, "foreign", id);
        if (fact->is_lost) {
            check_lost(client, i);
            continue;
        }
        if (id <= newest[sl_id_shard(id)])
            fail_for(client, "twice, or out of order", id);
        newest[sl_id_shard(id)] = id;
        if (id < newest_of_all && !client->heard[i].is_late)
            fail_for(client, "in no order over the shards, and not late", id);
        newest_of_all = id > newest_of_all ? id : newest_of_all;
    }
    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct redis *redis = &redises[shard];
        size_t at = 0;

        for (size_t i = 0; i < redis->count; i++) {
            const struct fact *fact = &redis->facts[i];

            if (fact->is_lost || (client->is_tea && !fact->is_tea) || fact->id <= client->start)
                continue;
            while (at < client->count && client->heard[at].id != fact->id)
                at++;
            if (at < client->count)
                continue;
            if (!client->is_left_out[shard][i] && !was_told(client, fact))
                fail_for(client, "missing", fact->id);
            at = 0;
        }
    }
}

/* --- checks of a pace --- */

static uint64_t window_of(const struct client_model *client, uint64_t id)
{
    return count_bucket_id(&client->question, id);
}

static bool goes_before(enum pick pick, uint64_t a, uint64_t b)
{
    if (pick == PICK_EVEN)
        return stable_hash(a) < stable_hash(b);
    return pick == PICK_FIRST ? a < b : a > b;
}

static bool has_heard(const struct client_model *client, uint64_t id)
{
    for (size_t i = 0; i < client->count; i++) {
        if (client->heard[i].id == id)
            return true;
    }
    return false;
}

/* How many posts that it wants are in the window; and how many of these rank before this one. */
static size_t count_window(const struct client_model *client, uint64_t window, uint64_t id,
                           size_t *ret_better)
{
    size_t matched = 0;

    *ret_better = 0;
    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct redis *redis = &redises[shard];

        for (size_t i = 0; i < redis->count; i++) {
            const struct fact *fact = &redis->facts[i];

            if (window_of(client, fact->id) != window || (client->is_tea && !fact->is_tea))
                continue;
            matched++;
            *ret_better += goes_before(client->question.pick.pick, fact->id, id);
        }
    }
    return matched;
}

static uint64_t skipped_of(const struct client_model *client, uint64_t window)
{
    uint64_t events = 0;
    size_t times = 0;

    for (size_t i = 0; i < client->skipped_count; i++) {
        if (client->skipped[i].id != window)
            continue;
        events = client->skipped[i].events;
        times++;
    }
    if (times > 1)
        fail_for(client, "told twice what is skipped", window);
    return events;
}

/* Each post that it should have got, and no other; and for each window the number of the others. */
static void judge_picks(const struct client_model *client, const struct redis *redis)
{
    uint32_t most = client->question.pick.posts;

    for (size_t i = 0; i < redis->count; i++) {
        uint64_t id = redis->facts[i].id, window = window_of(client, id);
        size_t better, matched;

        if (window > deliver_closed(deliver) || id <= client->start ||
            (client->is_tea && !redis->facts[i].is_tea))
            continue;
        matched = count_window(client, window, id, &better);
        if (has_heard(client, id) != (better < most))
            fail_for(client, better < most ? "not sent" : "sent, and not picked", id);
        if (skipped_of(client, window) != (matched > most ? matched - most : 0))
            fail_for(client, "another number was skipped in the window", window);
    }
}

static bool has_gap_in(const struct client_model *client, uint64_t window)
{
    for (size_t i = 0; i < client->count; i++) {
        const struct heard *heard = &client->heard[i];

        if (heard->id == 0 && heard->from < window && window_of(client, heard->to) >= window)
            return true;
    }
    return false;
}

static size_t count_heard(const struct client_model *client, uint64_t window)
{
    size_t count = 0;

    for (size_t i = 0; i < client->count; i++) {
        const struct heard *heard = &client->heard[i];

        if (heard->id == 0 || window_of(client, heard->id) != window)
            continue;
        if (client->is_tea && !fact_of(heard->id)->is_tea)
            fail_for(client, "foreign", heard->id);
        for (size_t j = 0; j < i; j++) {
            if (client->heard[j].id == heard->id)
                fail_for(client, "twice", heard->id);
        }
        count++;
    }
    return count;
}

/* For each window that it received from the beginning, and without a gap. */
static void judge_sums(const struct client_model *client)
{
    const uint64_t length = WINDOW_MS * SL_ID_PER_MS;
    uint64_t strays = client->strays, first = redises[0].facts[0].id;
    size_t better;

    for (uint64_t window =
             window_of(client, client->start > first ? client->start : first) + length;
         window <= deliver_closed(deliver); window += length) {
        size_t matched = count_window(client, window, 0, &better);
        uint64_t told = count_heard(client, window) + skipped_of(client, window);

        if (has_gap_in(client, window))
            continue;
        if (count_bucket_before(&client->question, window) < client->unsure &&
            client->unsure < window)
            continue;
        if (told > matched)
            fail_for(client, "more was sent and skipped than there is in the window", window);
        if (count_bucket_before(&client->question, window) < client->unsure)
            continue;
        if (matched - told > strays)
            fail_for(client, "something was neither sent nor skipped in the window", window);
        strays -= matched - told;
    }
}

static void judge_pace(const struct client_model *client)
{
    if (are_late) {
        judge_sums(client);
        return;
    }
    for (uint32_t shard = 0; shard < shards; shard++)
        judge_picks(client, &redises[shard]);
}

/* --- one run ---------------------------------------------------------------------------------- */

static void turn(void)
{
    uv_run(&loop, UV_RUN_NOWAIT);
    end_round();
}

static bool all_are_live(void)
{
    for (size_t i = 0; i < CLIENTS; i++) {
        if (clients[i].is_there && clients[i].fake.client.catcher)
            return false;
    }
    return true;
}

static bool all_has_passed(void)
{
    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct fact *last = last_logged(&redises[shard]);

        if (last && redises[shard].heard_of < last->id)
            return false;
    }
    return true;
}

/* Every client reads, until all are live. */
static void settle(void)
{
    bool moves = true;

    while (moves || !all_are_live()) {
        if (!moves && are_paced && all_has_passed())
            deliver_set_watermark(deliver, last_id);
        if (!moves)
            uv_run(&loop, UV_RUN_ONCE); /* the log will be asked again soon */
        for (int i = 0; i < 20; i++)
            turn();
        moves = false;
        for (uint32_t shard = 0; shard < shards; shard++) {
            moves = answer_batches(&redises[shard]) || moves;
            moves = answer_order(&redises[shard]) || moves;
            while (hear_next(&redises[shard]))
                moves = true;
        }
        for (size_t i = 0; i < CLIENTS; i++) {
            attend(&clients[i]);
            if (clients[i].is_there)
                make_room(&clients[i], FAKE_UNLIMITED);
        }
    }
}

/* The next events are not received, and are deleted from the log meanwhile, or unreadable. */
static void swallow(struct redis *redis)
{
    bool is_spoilt = one_in(2);

    for (size_t i = 1 + below(4); i > 0 && redis->said_first < redis->said_end; i--) {
        struct fact *fact = &redis->facts[redis->said[redis->said_first++]];

        if (fact->is_gone || stays(redis, fact))
            continue;
        fact->is_gone = !is_spoilt;
        fact->is_unreadable = is_spoilt;
    }
}

static void disturb(struct redis *redis)
{
    switch (are_paced ? 5 + 3 * below(2) : below(10)) {
    case 0:
        trim(redis);
        break;
    case 1:
        take_out(redis);
        break;
    case 2:
        if (one_in(4))
            spoil(redis);
        break;
    case 3:
        mend(redis);
        break;
    case 4:
        rewind_log(redis);
        break;
    case 5:
        connect_again(redis);
        break;
    case 6:
    case 7:
        swallow(redis);
        break;
    default:
        if (redis->said_first < redis->said_end)
            redis->said_first++; /* a message is lost */
    }
}

static void step(void)
{
    struct client_model *client = &clients[below(CLIENTS)];
    struct redis *redis = &redises[below(shards)];

    now_us += 1000;
    if (are_paced && one_in(2))
        deliver->close_work = below(100); /* other lanes have had the rest of the turn's */
    if (are_sampled && client->is_there && one_in(20))
        sampling_move(deliver, &client->fake.client, one_in(2) ? 1 : -1);
    if (are_sampled && one_in(20))
        sampling_tell(deliver);
    switch (below(12)) {
    case 0:
        if (client->is_there && one_in(4))
            leave(client, client->is_vague || one_in(2));
        else if (!client->is_there && client->count > 0) {
            if (shards > 1 && !are_paced && one_in(2))
                visit_another(client);
            come_back(client);
        } else if (!client->is_there)
            begin_client(client);
        break;
    case 1:
    case 2:
        for (size_t i = below(8); i > 0; i--)
            publish(redis);
        break;
    case 3:
    case 4:
    case 5:
        for (size_t i = below(10); i > 0; i--)
            hear_next(redis);
        break;
    case 6:
        answer_batches(redis);
        break;
    case 7:
        answer_order(redis);
        break;
    case 8:
        if (client->is_there)
            make_room(client, one_in(4) ? 100000 : below(6000));
        break;
    case 9:
        if (one_in(8))
            disturb(redis);
        if (one_in(8))
            ask_for_order(redis, true);
        break;
    default:
        turn();
    }
    for (size_t i = 0; i < CLIENTS; i++)
        attend(&clients[i]);
}

static void step_short_of_memory(void)
{
    struct redis *redis = &redises[below(shards)];

    mem_fail_after(below(20));
    switch (below(4)) {
    case 0:
        hear_next(redis);
        break;
    case 1:
        answer_order(redis);
        break;
    case 2:
        answer_batches(redis);
        break;
    default:
        turn();
    }
    mem_fail_never();
    for (size_t i = 0; i < CLIENTS; i++)
        attend(&clients[i]);
}

static void run(unsigned seed)
{
    static const struct shard_order_callbacks callbacks = {on_event, on_gap};
    const struct log_cache_settings cache_settings = {.loop = &loop,
                                                      .metrics = metrics,
                                                      .read = ask_for_batches,
                                                      .decoder = decoder,
                                                      .max_bytes = PAGE_BYTES,
                                                      .retry_ms = 2};
    static const struct id_order_callbacks order_callbacks = {on_ordered, on_watermark, on_behind,
                                                              on_low, on_whole};
    const bool is_patient = are_paced && !are_late;
    const struct id_order_settings order_settings = {is_patient ? PATIENT_MS : WAIT_MS,
                                                     is_patient ? 1 << 30 : ORDER_BYTES, metrics};
    const struct deliver_settings settings = {.loop = &loop,
                                              .metrics = metrics,
                                              .max_owed_bytes = are_paced ? 512 : 4096,
                                              .max_event_bytes = 1 << 30,
                                              .max_home_bytes = 1 << 30,
                                              .ring_bytes = seed % 3 ? RING_BYTES : 0,
                                              .max_lag_ms = UINT32_MAX};

    random_state = (uint64_t)seed << 32;
    last_id = sl_id_first_at(clock_wall_ms() - 10000000);
    memset(redises, 0, sizeof(redises));
    memset(clients, 0, sizeof(clients));
    cache = log_cache_new(&cache_settings);
    deliver = deliver_new(&settings);
    order = id_order_new(&order_settings, &order_callbacks, NULL);
    assert_true(cache && deliver && order);
    deliver_set_log(deliver, cache);
    for (uint32_t shard = 0; shard < shards; shard++) {
        struct shard_order_settings shard_settings = {shard, 0, 4096, metrics};

        redises[shard].shard = shard;
        redises[shard].order = shard_order_new(&shard_settings, &callbacks, NULL);
        assert_non_null(redises[shard].order);
        deliver_begin_shard(deliver, shard, 0);
        id_order_begin_shard(order, shard, 0);
    }
    for (int i = 0; i < STEPS; i++) {
        step();
        if (is_short_of_memory && one_in(20))
            step_short_of_memory();
    }
    for (uint32_t shard = 0; shard < shards; shard++) {
        mend(&redises[shard]);
        connect_again(&redises[shard]);
        publish(&redises[shard]); /* so that the rewind is noticed */
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        if (!clients[i].is_there && clients[i].count > 0)
            come_back(&clients[i]);
    }
    if (are_paced)
        last_id += 2 * WINDOW_MS * SL_ID_PER_MS; /* the last windows are over */
    settle();
    sampling_tell(deliver); /* what is still pending */
    deliver_flush_all(deliver);
    for (size_t i = 0; i < CLIENTS; i++) {
        attend(&clients[i]);
        if (!clients[i].is_there)
            continue;
        if (are_paced)
            judge_pace(&clients[i]);
        else
            judge(&clients[i]);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        if (clients[i].is_there)
            leave(&clients[i], false);
    }
    for (uint32_t shard = 0; shard < shards; shard++)
        shard_order_free(redises[shard].order);
    id_order_free(order);
    deliver_set_log(deliver, NULL);
    deliver_free(deliver);
    log_cache_free(cache);
    uv_run(&loop, UV_RUN_DEFAULT);
}

static void run_all(uint32_t shard_count)
{
    const char *seed = getenv("SEED"), *runs = getenv("RUNS");

    shards = shard_count;
    if (seed) {
        run((unsigned)atoi(seed));
        return;
    }
    for (unsigned i = 1; i <= (runs ? (unsigned)atoi(runs) : RUNS); i++)
        run(i);
}

static int begin(void **state)
{
    (void)state;
    log_set_level(LOG_LEVEL_ERROR);
    uv_loop_init(&loop);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    decoder = event_decoder_new(1 << 20);
    return 0;
}

static int end(void **state)
{
    (void)state;
    event_decoder_free(decoder);
    assert_int_equal(uv_loop_close(&loop), 0);
    metrics_board_free(board);
    return 0;
}

static void test_whatever_happens_to_redis_nobody_misses_anything_untold(void **state)
{
    (void)state;
    run_all(1);
}

static void test_neither_when_memory_is_short(void **state)
{
    (void)state;
    is_short_of_memory = true;
    run_all(1);
    is_short_of_memory = false;
}

static void test_who_is_sent_a_part_is_told_of_all_the_rest(void **state)
{
    (void)state;
    are_sampled = true;
    run_all(1);
    run_all(SHARDS);
    is_short_of_memory = true;
    run_all(1);
    are_sampled = is_short_of_memory = false;
}

static void test_with_more_shards_it_is_the_same(void **state)
{
    (void)state;
    run_all(SHARDS);
}

static void test_who_has_a_pace_is_sent_what_is_picked_and_told_of_the_rest(void **state)
{
    (void)state;
    are_paced = true;
    run_all(1);
    run_all(SHARDS);
    are_paced = false;
}

static void test_what_comes_late_is_sent_or_skipped_too(void **state)
{
    (void)state;
    are_paced = are_late = true;
    run_all(SHARDS);
    are_paced = are_late = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_whatever_happens_to_redis_nobody_misses_anything_untold, begin, end),
        cmocka_unit_test_setup_teardown(test_neither_when_memory_is_short, begin, end),
        cmocka_unit_test_setup_teardown(test_with_more_shards_it_is_the_same, begin, end),
        cmocka_unit_test_setup_teardown(test_who_is_sent_a_part_is_told_of_all_the_rest, begin,
                                        end),
        cmocka_unit_test_setup_teardown(
            test_who_has_a_pace_is_sent_what_is_picked_and_told_of_the_rest, begin, end),
        cmocka_unit_test_setup_teardown(test_what_comes_late_is_sent_or_skipped_too, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
