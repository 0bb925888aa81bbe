/* Clients that catch up, on a log that is an array: read when the test says so. */
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
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/home.h"
#include "gateway/delivery/log_cache.h"
#include "gateway/delivery/outbox.h"
#include "gateway/delivery/rule_set.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/events.h"
#include "tests/support/fake_client.h"

enum { LOG_MAX = 4000, SHARDS = 4, JSON_SIZE = 256, ROOM = 32 << 10, LAG_MS = 3600000 };

struct logged {
    uint64_t id, previous;
    bool is_unreadable, is_deleted;
    char json[JSON_SIZE];
};

/* One shard. */
struct fake_log {
    struct logged entries[LOG_MAX];
    size_t count, first; /* those before `first` have been trimmed */
    size_t passed;       /* have been delivered live */
    struct {
        bool is_asked;
        uint64_t after, to;
        log_batch_fn done;
        void *owner;
    } request;
};

static struct fake_log logs[SHARDS];
static uint64_t last_id;   /* of all shards */
static uint64_t id_offset; /* of the next ids */
static unsigned reads;
static uv_loop_t loop;
static struct metrics_board *board;
static struct metrics *metrics;
static struct deliver *deliver;
static struct log_cache *cache;
static struct event_decoder *decoder;
static struct fake_client a, b, c;

static struct sl_cursor head(void)
{
    return deliver_cursor(deliver);
}

/* --- the log ---------------------------------------------------------------------------------- */

static int read_log(struct log_reader *reader, uint32_t shard, uint64_t after, uint64_t to,
                    log_batch_fn done, void *owner)
{
    struct fake_log *log = &logs[shard];

    assert_null(reader);
    assert_true(after < to);
    assert_false(log->request.is_asked); /* one at a time */
    log->request.is_asked = true;
    log->request.after = after;
    log->request.to = to;
    log->request.done = done;
    log->request.owner = owner;
    return 0;
}

/* Answers what is asked for; false: nothing is. */
static bool answer(uint32_t shard)
{
    static struct sl_event_log_entry entries[LOG_BATCH_EVENTS];
    struct fake_log *log = &logs[shard];
    struct log_batch batch = {log->request.after, log->request.to, entries, 0, false};
    bool is_unreadable = false;

    if (!log->request.is_asked)
        return false;
    log->request.is_asked = false;
    reads++;
    for (size_t i = log->first; i < log->count && batch.count < LOG_BATCH_EVENTS; i++) {
        struct logged *entry = &log->entries[i];

        if (entry->is_deleted || entry->id <= batch.after || entry->id > batch.to)
            continue;
        is_unreadable = is_unreadable || entry->is_unreadable;
        entries[batch.count++] =
            (struct sl_event_log_entry){entry->id, entry->previous, sl_slice_str(entry->json)};
    }
    batch.is_full = batch.count == LOG_BATCH_EVENTS;
    if (is_unreadable)
        log->request.done(log->request.owner, NULL, -EBADMSG, "no event of ours");
    else
        log->request.done(log->request.owner, &batch, 0, NULL);
    return true;
}

static void answer_with_trouble(uint32_t shard)
{
    struct fake_log *log = &logs[shard];

    assert_true(log->request.is_asked);
    log->request.is_asked = false;
    log->request.done(log->request.owner, NULL, -EPIPE, "Redis is away");
}

/* Logs a post, which has not passed yet. */
static uint64_t publish_in(uint32_t shard, const char *user, const char *text)
{
    struct fake_log *log = &logs[shard];
    struct logged *entry = &log->entries[log->count];

    assert_true(log->count < LOG_MAX);
    last_id = (last_id / SL_ID_PER_MS + 1) * SL_ID_PER_MS + shard * SL_ID_PER_SHARD + id_offset;
    *entry = (struct logged){.id = last_id,
                             .previous = log->count ? log->entries[log->count - 1].id : 0};
    snprintf(entry->json, JSON_SIZE,
             "{\"id\":\"%" PRIu64 "\",\"type\":\"post\",\"post\":{\"id\":\"%" PRIu64
             "\",\"user\":{\"id\":\"%s\"},\"text\":\"%s\"}}",
             last_id, last_id, user, text);
    log->count++;
    return last_id;
}

/* The next event passes live; false: all have. */
static bool pass_in(uint32_t shard)
{
    struct fake_log *log = &logs[shard];
    const struct logged *entry = &log->entries[log->passed];
    struct event_origin origin = {entry->id, entry->previous, shard, clock_monotonic_us()};
    struct failure failure;
    struct event *event;

    if (log->passed == log->count)
        return false;
    log->passed++;
    assert_int_equal(event_decode(decoder, sl_slice_str(entry->json), &origin, &event, &failure),
                     0);
    deliver_event(deliver, event);
    event_unref(event);
    return true;
}

static uint64_t publish(const char *text)
{
    return publish_in(0, "ada", text);
}

static uint64_t post(const char *text)
{
    uint64_t id = publish(text);

    pass_in(0);
    deliver_turn_end(deliver);
    return id;
}

static void posts(size_t count)
{
    for (size_t i = 0; i < count; i++)
        post(i % 2 ? "tea" : "coffee");
}

/* Published without the log. */
static void post_unlogged(const char *user)
{
    struct event *event = event_post(0, user, "coffee");

    deliver_event(deliver, event);
    event_unref(event);
    deliver_turn_end(deliver);
}

/* --- beginning and end ------------------------------------------------------------------------ */

static void begin_with(size_t ring_bytes, size_t max_owed_bytes, uint64_t max_lag_ms)
{
    const struct log_cache_settings cache_settings = {
        .loop = &loop,
        .metrics = metrics,
        .read = read_log,
        .decoder = decoder,
        .max_bytes = ROOM,
        .retry_ms = 2,
    };
    const struct deliver_settings settings = {
        .loop = &loop,
        .metrics = metrics,
        .max_owed_bytes = max_owed_bytes,
        .max_event_bytes = 1 << 30,
        .max_home_bytes = 1 << 30,
        .ring_bytes = ring_bytes,
        .max_lag_ms = max_lag_ms,
        .compression = {.level = 1, .zstd_level = 1, .reset_flushes = 30, .max_bytes = 1 << 20},
    };

    memset(logs, 0, sizeof(logs));
    last_id = sl_id_first_at(clock_wall_ms() - 1000000);
    id_offset = 0;
    reads = 0;
    cache = log_cache_new(&cache_settings);
    deliver = deliver_new(&settings);
    assert_true(cache && deliver);
    deliver_set_log(deliver, cache);
    fake_client_init(&a, FORMAT_NDJSON, head);
    fake_client_init(&b, FORMAT_NDJSON, head);
    fake_client_init(&c, FORMAT_NDJSON, head);
}

static int begin(void **state)
{
    (void)state;
    log_set_level(LOG_LEVEL_ERROR);
    uv_loop_init(&loop);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    decoder = event_decoder_new(1 << 20);
    begin_with(1 << 20, 1 << 20, LAG_MS);
    return 0;
}

static void leave(struct fake_client *client)
{
    deliver_leave(&client->client);
    fake_client_done(client);
}

static void end_deliver(void)
{
    leave(&a);
    leave(&b);
    leave(&c);
    assert_int_equal(metric_get(metrics, METRIC_CATCHING_UP), 0);
    deliver_set_log(deliver, NULL);
    deliver_free(deliver);
    log_cache_free(cache);
    uv_run(&loop, UV_RUN_DEFAULT);
}

static int end(void **state)
{
    (void)state;
    end_deliver();
    event_decoder_free(decoder);
    assert_int_equal(uv_loop_close(&loop), 0);
    metrics_board_free(board);
    return 0;
}

static void begin_again(size_t ring_bytes, size_t max_owed_bytes, uint64_t max_lag_ms)
{
    end_deliver();
    begin_with(ring_bytes, max_owed_bytes, max_lag_ms);
}

/* --- clients ---------------------------------------------------------------------------------- */

static struct sl_filter *filter_of(const char *track)
{
    struct sl_filter_text text = {.track = sl_slice_str(track), .firehose = !track};
    struct sl_filter_error error;
    struct sl_filter *filter;

    if (sl_filter_new(&text, &SL_FILTER_LIMITS_DEFAULT, &filter, &error) < 0)
        fail_msg("filter refused: %s", error.message);
    return filter;
}

static void subscribe(struct fake_client *client, const char *track)
{
    struct sl_filter *filter = filter_of(track);

    assert_int_equal(deliver_subscribe(deliver, &client->client, filter, -1), 0);
    sl_filter_unref(filter);
}

static void resume(struct fake_client *client, const char *track, uint64_t cursor)
{
    subscribe(client, track);
    assert_int_equal(deliver_resume(deliver, &client->client, CURSOR(cursor)), 0);
}

static void make_room(struct fake_client *client, size_t bytes)
{
    if (fake_client_make_room(client, bytes))
        deliver_client_writable(&client->client);
}

static bool is_live(const struct fake_client *client)
{
    return client->client.outbox && !client->client.catcher;
}

/* A turn of the loop that waits for nothing. */
static void turn(void)
{
    uv_run(&loop, UV_RUN_NOWAIT);
    deliver_turn_end(deliver);
}

/* Until nothing moves any more. */
static void settle(void)
{
    bool moves = true;

    while (moves) {
        for (int i = 0; i < 20; i++)
            turn();
        moves = false;
        for (uint32_t shard = 0; shard < SHARDS; shard++)
            moves = answer(shard) || moves;
    }
}

/* The ids of all events received since the last time, control messages as they are, a space
 * between two; takes them. */
static const char *received(struct fake_client *client)
{
    static char text[1 << 20];
    const char *at = buffer_str(&client->received);
    size_t size = 0;

    assert_non_null(at);
    while ((at = strchr(at, '{'))) {
        const char *end = strstr(at, "\r\n");

        assert_non_null(end);
        if (strncmp(at, "{\"id\":\"", 7) == 0) {
            at += 7;
            end = strchr(at, '"');
        }
        assert_true(size + (size_t)(end - at) + 2 < sizeof(text));
        memcpy(text + size, at, (size_t)(end - at));
        size += (size_t)(end - at);
        text[size++] = ' ';
        at = strstr(end, "\r\n");
    }
    text[size ? size - 1 : 0] = '\0';
    buffer_clear(&client->received);
    return text;
}

/* The ids in the log of shard 0, from this place to before that; those with an odd place have
 * "tea". */
static const char *ids(size_t from, size_t to, size_t step)
{
    static char text[1 << 20];
    size_t size = 0;

    text[0] = '\0';
    for (size_t i = from; i < to; i += step)
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%" PRIu64, size ? " " : "",
                                 logs[0].entries[i].id);
    return text;
}

static uint64_t id_at(size_t place)
{
    return logs[0].entries[place].id;
}

static const char *gap_text(uint64_t from, uint64_t to, enum gap_reason reason)
{
    static char text[128];

    snprintf(text, sizeof(text),
             "{\"type\":\"gap\",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64 "\",\"reason\":\"%s\"}",
             from, to, gap_reason_name(reason));
    return text;
}

/* A gap with this text, and then these ids. */
static void check_gap_then(struct fake_client *client, const char *gap, const char *then)
{
    const char *got = received(client);

    assert_memory_equal(got, gap, strlen(gap));
    got += strlen(gap);
    assert_string_equal(got + (*got == ' '), then);
}

/* What Redis has lost: nothing is logged there, nothing passes, and the next event names the last
 * of it as the one before. */
static void tell_lost(size_t count, enum gap_reason reason)
{
    struct fake_log *log = &logs[0];
    struct gap gap = {.from = id_at(log->count - 1), .reason = reason};

    assert_int_equal(log->passed, log->count);
    for (size_t i = 0; i < count; i++)
        gap.to = publish("lost");
    log->passed = log->count;
    for (size_t i = log->count - count; i < log->count; i++)
        log->entries[i].is_deleted = true;
    deliver_gap(deliver, &gap);
    deliver_turn_end(deliver);
}

/* A failover: the last events of the log have happened no more. What comes next names the one
 * before them. */
static void rewind_log(size_t count)
{
    struct fake_log *log = &logs[0];
    struct gap gap = {
        .from = id_at(log->count - count - 1), .to = id_at(log->count - 1), .reason = GAP_REWOUND};

    assert_int_equal(log->passed, log->count);
    log->count = log->passed = log->count - count;
    deliver_gap(deliver, &gap);
    deliver_turn_end(deliver);
}

/* Everything after the warning that it fell behind. */
static const char *behind_warning(const char *got)
{
    const char *warning = strstr(got, "{\"type\":\"warning\",\"code\":\"behind\",\"events\":");

    assert_non_null(warning);
    return warning;
}

static void check_all_but_warning(struct fake_client *client, const char *expected)
{
    char *got = (char *)received(client), *warning = strstr(got, "{\"type\":\"warning\"");

    if (warning) {
        char *end = strchr(warning, '}') + 1;

        end += *end == ' ';
        memmove(warning, end, strlen(end) + 1);
    }
    assert_string_equal(got, expected);
}

/* --- coming with a cursor --------------------------------------------------------------------- */

static void test_what_is_in_the_ring_needs_no_log(void **state)
{
    (void)state;
    posts(10);
    resume(&a, NULL, id_at(3));
    settle();
    assert_string_equal(received(&a), ids(4, 10, 1));
    assert_true(is_live(&a));
    assert_int_equal(reads, 0);
    post("x");
    assert_string_equal(received(&a), ids(10, 11, 1));
}

static void test_what_is_not_in_the_ring_comes_from_the_log(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(1000);
    resume(&a, NULL, id_at(99));
    settle();
    assert_string_equal(received(&a), ids(100, 1000, 1));
    assert_true(is_live(&a));
    assert_true(reads <= 900 / LOG_BATCH_EVENTS + 1);
    post("x");
    assert_string_equal(received(&a), ids(1000, 1001, 1));
}

static void test_only_what_the_filter_wants_comes(void **state)
{
    (void)state;
    begin_again(ROOM, 1 << 20, LAG_MS);
    posts(600);
    resume(&a, "tea", id_at(0));
    resume(&b, "coffee", id_at(0));
    resume(&c, "milk", id_at(0));
    settle();
    assert_string_equal(received(&a), ids(1, 600, 2));
    assert_string_equal(received(&b), ids(2, 600, 2));
    assert_string_equal(received(&c), "");
    assert_true(is_live(&a) && is_live(&b) && is_live(&c));
}

static void test_batches_are_read_once_for_all(void **state)
{
    unsigned alone;

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(1000);
    resume(&a, NULL, id_at(10));
    settle();
    alone = reads;
    begin_again(0, 1 << 20, LAG_MS);
    posts(1000);
    resume(&a, NULL, id_at(10));
    resume(&b, "tea", id_at(12));
    resume(&c, "coffee", id_at(30));
    settle();
    assert_true(reads <= alone + 2); /* b and c may not find theirs at once */
    assert_true(metric_get(metrics, METRIC_LOG_PAGES_USED) > 2 * reads);
    assert_string_equal(received(&b), ids(13, 1000, 2));
    assert_string_equal(received(&c), ids(32, 1000, 2));
}

/* What Pub/Sub is behind with is left to it. */
static void test_the_log_is_read_as_far_as_has_passed(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(5);
    for (int i = 0; i < 3; i++)
        publish("ahead");
    resume(&a, NULL, id_at(2));
    settle();
    assert_string_equal(received(&a), ids(3, 5, 1));
    assert_true(is_live(&a));
    for (int i = 0; i < 3; i++) {
        assert_true(pass_in(0));
        settle();
    }
    post("x");
    assert_string_equal(received(&a), ids(5, 9, 1));
}

/* The client has seen the newest event elsewhere, before it passes here. */
static void test_a_cursor_may_be_ahead_of_what_has_passed(void **state)
{
    (void)state;
    posts(5);
    publish("ahead");
    publish("further ahead");
    resume(&a, NULL, id_at(5));
    settle();
    assert_false(is_live(&a));
    pass_in(0);
    pass_in(0);
    settle();
    assert_string_equal(received(&a), ids(6, 7, 1));
    assert_true(is_live(&a));
}

/* It passes here before the client's turn comes. */
static void test_the_event_of_a_cursor_that_was_ahead_is_not_sent_again(void **state)
{
    (void)state;
    posts(5);
    publish("ahead");
    resume(&a, NULL, id_at(5));
    pass_in(0);
    settle();
    assert_string_equal(received(&a), "");
    assert_true(is_live(&a));
    post("x");
    assert_string_equal(received(&a), ids(6, 7, 1));
}

/* A batch of the log from before that event was logged does not tell that there is none. */
static void test_a_cursor_ahead_is_not_judged_by_an_old_batch(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(5);
    resume(&a, NULL, id_at(2)); /* leaves the log's last batch in memory */
    settle();
    assert_int_equal(reads, 1);
    publish("seen elsewhere");
    publish("seen elsewhere, too");
    resume(&b, NULL, id_at(6));
    settle();
    pass_in(0);
    pass_in(0);
    settle();
    assert_string_equal(received(&b), "");
    post("x");
    assert_string_equal(received(&b), ids(7, 8, 1));
}

/* No event has this id; what happens before that time is new all the same. */
static void test_a_cursor_in_the_future_means_now(void **state)
{
    (void)state;
    posts(5);
    resume(&a, NULL, last_id + 1000 * SL_ID_PER_MS);
    settle();
    assert_true(is_live(&a));
    post("x");
    assert_string_equal(received(&a), ids(5, 6, 1));
}

static void test_a_cursor_is_a_position_between_events(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(10);
    resume(&a, NULL, id_at(4) - 1);
    resume(&b, NULL, id_at(4) + 1);
    resume(&c, NULL, 0);
    settle();
    assert_string_equal(received(&a), ids(4, 10, 1));
    assert_string_equal(received(&b), ids(5, 10, 1));
    assert_string_equal(received(&c), ids(0, 10, 1));
}

static void test_the_cursor_of_who_is_behind_follows_what_was_sent(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(1000);
    a.room = 5000;
    resume(&a, NULL, id_at(10));
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, id_at(10));
    settle();
    assert_false(is_live(&a));
    assert_true(a.awaits_writable);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id,
                     id_at(10 + a.client.sent_events)); /* what is held will be sent */
    resume(&b, "milk", id_at(10));                      /* wants nothing of it */
    settle();
    assert_int_equal(deliver_client_cursor(deliver, &b.client).id, id_at(999));
}

/* What has been handed to the socket, and no more: a suspended client is sent nothing. */
static void test_nothing_is_sent_beyond_the_cursor_of_who_leaves(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(300);
    resume(&a, NULL, id_at(10));
    subscribe(&b, NULL);
    deliver_suspend(&a.client);
    deliver_suspend(&b.client);
    settle();
    post("x");
    assert_int_equal(a.sends + b.sends, 0);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, id_at(10));
}

/* --- the cursor, with several shards ---------------------------------------------------------- */

enum { QUIET_SHARD = 2, EMPTY_SHARD = 3, TAKES = 600 };

/* The ids of what two busy shards have logged, in turn, and what passed at once. One shard has a
 * single event, from before, one has none. */
static uint64_t busy_ids[TAKES];

static const uint64_t *begin_busy(void)
{
    memset(busy_ids, 0, sizeof(busy_ids));
    return busy_ids;
}

static const uint64_t *begin_with_quiet_shards(size_t ring_bytes)
{
    begin_again(ring_bytes, 4096, LAG_MS);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        deliver_begin_shard(deliver, shard, 0);
    publish_in(QUIET_SHARD, "ada", "long ago");
    pass_in(QUIET_SHARD);
    deliver_turn_end(deliver);
    return begin_busy();
}

static void post_to_busy_shards(const uint64_t *busy)
{
    for (size_t i = 0; i < TAKES; i++) {
        ((uint64_t *)busy)[i] = publish_in(i % 2, "ada", "tea");
        pass_in(i % 2);
        deliver_turn_end(deliver);
    }
}

/* The end of the log of shard 2 is asked later than that of shard 1, which has an event in between.
 */
static void test_who_comes_to_shards_that_began_at_different_times_misses_nothing(void **state)
{
    uint64_t ids[3];
    char expected[2 * SL_ID_TEXT_SIZE];

    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    for (uint32_t shard = 0; shard < 3; shard++)
        ids[shard] = publish_in(shard, "ada", "tea");
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        deliver_begin_shard(deliver, shard, shard == 0 || shard == 2 ? ids[shard] : 0);
    logs[0].passed = logs[2].passed = 1;
    pass_in(1);
    deliver_turn_end(deliver);
    deliver_begin(deliver);
    resume(&a, NULL, ids[0]);
    settle();
    snprintf(expected, sizeof(expected), "%" PRIu64 " %" PRIu64, ids[1], ids[2]);
    assert_string_equal(received(&a), expected);
}

static void test_quiet_shards_do_not_hold_back_the_cursor_of_who_falls_behind(void **state)
{
    const uint64_t *busy = begin_with_quiet_shards(1 << 20);

    (void)state;
    subscribe(&a, NULL);
    a.room = 8000;
    post_to_busy_shards(busy);
    settle();
    assert_true(a.client.catcher && a.client.sent_events > 10);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, busy[a.client.sent_events - 1]);
    make_room(&a, 30000); /* it reads on for a while */
    settle();
    assert_true(a.client.catcher && a.client.sent_events > 100);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id,
                     busy[a.client.sent_events - 2]); /* one was a warning */
}

/* The ring has lost what it is owed next. */
static void test_nor_when_only_the_log_has_the_rest(void **state)
{
    const uint64_t *busy = begin_with_quiet_shards(ROOM);

    (void)state;
    subscribe(&a, NULL);
    a.room = 8000;
    post_to_busy_shards(busy);
    assert_true(a.client.catcher && a.client.sent_events > 10);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, busy[a.client.sent_events - 1]);
    make_room(&a, 20000);
    settle();
    assert_true(reads > 0 && a.client.catcher && a.client.sent_events > 50);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id,
                     busy[a.client.sent_events - 2]); /* one was a warning */
}

static void test_the_cursor_of_who_came_with_one_follows_what_was_sent(void **state)
{
    const uint64_t *busy = begin_with_quiet_shards(ROOM);

    (void)state;
    post_to_busy_shards(busy);
    a.room = 20000;
    resume(&a, NULL, busy[9]);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, busy[9]);
    settle();
    assert_true(a.client.catcher && a.client.sent_events > 50);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, busy[9 + a.client.sent_events]);
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_true(is_live(&a));
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, busy[TAKES - 1]);
}

static const char *cursor_text(const struct sl_cursor *cursor)
{
    static char text[SL_CURSOR_TEXT_SIZE];

    return sl_cursor_print(cursor, text);
}

/* `id`, of the quiet shard no more than `low`. */
static struct sl_cursor behind(uint64_t id, uint64_t low)
{
    struct sl_cursor cursor = {.id = id};

    sl_cursor_lower(&cursor, QUIET_SHARD, low);
    return cursor;
}

static void assert_cursor(const struct fake_client *client, uint64_t id, uint64_t low)
{
    const struct sl_cursor cursor = deliver_client_cursor(deliver, &client->client);
    const struct sl_cursor expected = behind(id, low);
    char text[SL_CURSOR_TEXT_SIZE];

    assert_string_equal(cursor_text(&cursor), sl_cursor_print(&expected, text));
}

/* How the event that is late for somebody comes, who stands there then. */
static void assert_late(const struct fake_client *client, uint64_t id, uint64_t newest)
{
    char text[128];

    if (newest == id)
        return;
    snprintf(text, sizeof(text),
             "\"text\":\"late\"},\"late\":true,\"cursor\":\"%" PRIu64 "~%" PRIu64 ":4\"}", newest,
             id);
    if (!strstr(buffer_str((struct buffer *)&client->received), text))
        fail_msg("%s is not in %s", text, buffer_str((struct buffer *)&client->received));
}

/* These, then all of the busy shards. */
static void check_follow(struct fake_client *client, const uint64_t *first, size_t count)
{
    struct buffer text = BUFFER_INIT;

    for (size_t i = 0; i < count; i++)
        buffer_append_format(&text, "%" PRIu64 " ", first[i]);
    for (size_t i = 0; i < TAKES; i++)
        buffer_append_format(&text, i + 1 < TAKES ? "%" PRIu64 " " : "%" PRIu64, busy_ids[i]);
    check_all_but_warning(client, buffer_str(&text));
    buffer_done(&text);
}

/* The others go on without the shard: *late is logged in it before the last of `ids`, and passes
 * behind it. Returns what the shard had before. */
static uint64_t leave_behind(uint64_t *ret_late, uint64_t ids[static 2])
{
    uint64_t low = logs[QUIET_SHARD].entries[0].id;

    ids[0] = publish_in(0, "ada", "first");
    pass_in(0);
    *ret_late = publish_in(QUIET_SHARD, "ada", "late");
    deliver_shard_behind(deliver, QUIET_SHARD, ids[0]);
    ids[1] = publish_in(0, "ada", "second");
    pass_in(0);
    deliver_turn_end(deliver);
    return low;
}

static void come_late(void)
{
    pass_in(QUIET_SHARD);
    deliver_shard_behind(deliver, QUIET_SHARD, logs[QUIET_SHARD].entries[1].id);
    deliver_turn_end(deliver);
}

static void test_a_late_event_is_told_with_a_cursor_of_its_own(void **state)
{
    uint64_t late, ids[2];

    (void)state;
    begin_with_quiet_shards(1 << 20);
    subscribe(&a, NULL);
    leave_behind(&late, ids);
    assert_cursor(&a, ids[1], ids[0]);
    come_late();
    assert_late(&a, late, ids[1]);
    assert_cursor(&a, ids[1], late);
    deliver_shard_whole(deliver, QUIET_SHARD);
    assert_cursor(&a, ids[1], ids[1]);
}

/* It passes behind what lies in it of the others, which have left the ring when it has not. */
static void test_nobody_is_given_a_cursor_beyond_a_gap_before_it_is_told(void **state)
{
    uint64_t late, ids[2], low;
    struct sl_cursor cursor;
    struct gap gap;

    (void)state;
    begin_with_quiet_shards(ROOM);
    low = leave_behind(&late, ids);
    post_to_busy_shards(begin_busy());
    gap = (struct gap){QUIET_SHARD, low, late, GAP_REDIS};
    deliver_gap(deliver, &gap);
    deliver_shard_behind(deliver, QUIET_SHARD, late);
    deliver_shard_whole(deliver, QUIET_SHARD);
    a.room = 20000;
    resume(&a, NULL, low);
    settle();
    cursor = deliver_client_cursor(deliver, &a.client);
    assert_true(a.client.catcher && cursor.id > busy_ids[40] && cursor.id < busy_ids[TAKES - 1]);
    assert_int_equal(sl_cursor_of_shard(&cursor, QUIET_SHARD), low);
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_true(is_live(&a));
    assert_non_null(strstr(buffer_str(&a.received), "\"reason\":\"redis\",\"shard\":2"));
}

/* Wherever the client is cut, the cursor says what it has, and it gets the rest. */
static void test_who_is_cut_around_a_late_event_misses_nothing(void **state)
{
    static const size_t rings[] = {1 << 20, ROOM, 0};
    uint64_t late, ids[2];
    struct sl_cursor cursors[3];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        begin_with_quiet_shards(rings[i]);
        cursors[0] = (struct sl_cursor){.id = leave_behind(&late, ids)};
        cursors[1] = deliver_cursor(deliver);
        come_late();
        cursors[2] = deliver_cursor(deliver);
        deliver_shard_whole(deliver, QUIET_SHARD);
        post_to_busy_shards(begin_busy());
        subscribe(&a, NULL);
        assert_int_equal(deliver_resume(deliver, &a.client, &cursors[0]), 0);
        subscribe(&b, NULL);
        assert_int_equal(deliver_resume(deliver, &b.client, &cursors[1]), 0);
        subscribe(&c, NULL);
        assert_int_equal(deliver_resume(deliver, &c.client, &cursors[2]), 0);
        settle();
        assert_true(is_live(&a) && is_live(&b) && is_live(&c));
        if (i > 0) /* merged from the logs */
            assert_late(&a, late, late);
        assert_late(&b, late, ids[1]);
        check_follow(&a,
                     rings[i] == 1 << 20 ? (uint64_t[]){ids[0], ids[1], late}
                                         : (uint64_t[]){ids[0], late, ids[1]},
                     3);
        check_follow(&b, (uint64_t[]){late}, 1);
        check_follow(&c, NULL, 0);
    }
}

static void mark_late(uint64_t from, uint64_t to)
{
    struct fake_log *log = &logs[QUIET_SHARD];

    publish_in(QUIET_SHARD, "ada", "mark");
    snprintf(log->entries[log->count - 1].json, JSON_SIZE,
             "{\"id\":\"%" PRIu64 "\",\"type\":\"late\",\"shard\":2,\"from\":\"%" PRIu64
             "\",\"to\":\"%" PRIu64 "\"}",
             last_id, from, to);
    pass_in(QUIET_SHARD);
    deliver_turn_end(deliver);
}

static const char *late_gap(uint64_t from, uint64_t to)
{
    static char text[128];

    snprintf(text, sizeof(text),
             "{\"type\":\"gap\",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64
             "\",\"reason\":\"late\",\"shard\":%d}",
             from, to, QUIET_SHARD);
    return text;
}

/* A plain cursor claims what came late below it: while the shard is behind, when it is whole, and
 * when a mark in its log says so, here or in the ring. */
static void test_a_plain_cursor_is_told_what_came_late(void **state)
{
    static const size_t rings[] = {1 << 20, ROOM, 0};
    uint64_t late, ids[2], from;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        begin_with_quiet_shards(rings[i]);
        leave_behind(&late, ids);
        resume(&a, NULL, ids[1]);
        settle();
        assert_string_equal(received(&a), late_gap(ids[0], ids[1]));
        come_late();
        deliver_shard_whole(deliver, QUIET_SHARD);
        resume(&b, NULL, ids[1]);
        settle();
        assert_string_equal(received(&b), late_gap(ids[0], ids[1]));
        from = ids[0] - 1;
        mark_late(from, ids[1]);
        deliver_leave(&b.client);
        post_to_busy_shards(begin_busy());
        buffer_clear(&b.received);
        resume(&b, NULL, ids[1]);
        resume(&c, NULL, ids[0] - 1);
        settle();
        assert_true(is_live(&b) && is_live(&c));
        check_follow(&c,
                     rings[i] == 1 << 20 ? (uint64_t[]){ids[0], ids[1], late}
                                         : (uint64_t[]){ids[0], late, ids[1]},
                     3);
        assert_memory_equal(buffer_str(&b.received) + 4, late_gap(from, ids[1]),
                            strlen(late_gap(from, ids[1])));
    }
}

static void post_in(uint32_t shard, uint64_t *ret_id, const char *text)
{
    *ret_id = publish_in(shard, "ada", text);
    pass_in(shard);
    deliver_turn_end(deliver);
    settle();
}

static void assert_received(struct fake_client *client, uint64_t id)
{
    char text[SL_ID_TEXT_SIZE];

    snprintf(text, sizeof(text), "%" PRIu64, id);
    assert_string_equal(received(client), id ? text : "");
}

/* Where they come from the shard was not behind, or not as far: they have the first late event, and
 * have not what comes after what their cursors say. */
static void test_who_has_more_of_a_shard_that_is_behind_is_not_sent_it_again(void **state)
{
    static const size_t rings[] = {1 << 20, 0};
    uint64_t late, later, third, last, ids[2];
    struct sl_cursor cursor;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        begin_with_quiet_shards(rings[i]);
        leave_behind(&late, ids);
        resume(&a, NULL, ids[1]);
        subscribe(&b, NULL);
        cursor = behind(ids[1], late);
        assert_int_equal(deliver_resume(deliver, &b.client, &cursor), 0);
        subscribe(&c, NULL);
        settle();
        assert_string_equal(received(&a), late_gap(ids[0], ids[1]));
        assert_cursor(&a, ids[1], ids[1]);
        assert_cursor(&b, ids[1], late);
        come_late();
        settle();
        assert_received(&a, 0);
        assert_received(&b, 0);
        assert_received(&c, late);
        later = publish_in(QUIET_SHARD, "ada", "late");
        post_in(0, &third, "third");
        assert_received(&a, third);
        assert_received(&b, third);
        assert_received(&c, third);
        assert_cursor(&a, third, ids[1]);
        assert_cursor(&b, third, late);
        pass_in(QUIET_SHARD);
        deliver_turn_end(deliver);
        settle();
        assert_late(&a, later, third);
        assert_received(&a, later);
        assert_received(&b, later);
        assert_received(&c, later);
        assert_cursor(&a, third, later);
        deliver_shard_whole(deliver, QUIET_SHARD);
        post_in(0, &last, "last");
        assert_received(&a, last);
        assert_received(&b, last);
        assert_true(is_live(&a) && is_live(&b));
    }
}

/* It waits for what it came with, and the shard is left behind meanwhile. */
static void test_who_is_ahead_is_told_when_a_shard_falls_behind(void **state)
{
    uint64_t late, ids[2];

    (void)state;
    begin_with_quiet_shards(1 << 20);
    post_in(0, &ids[0], "first");
    late = publish_in(QUIET_SHARD, "ada", "late");
    ids[1] = publish_in(0, "ada", "second");
    resume(&a, NULL, ids[1]);
    subscribe(&b, NULL);
    settle();
    assert_false(is_live(&a));
    deliver_shard_behind(deliver, QUIET_SHARD, ids[0]);
    pass_in(0);
    deliver_turn_end(deliver);
    settle();
    assert_string_equal(received(&a), late_gap(ids[0], ids[1]));
    assert_received(&b, ids[1]);
    come_late();
    settle();
    assert_received(&a, 0);
    assert_received(&b, late);
    assert_cursor(&a, ids[1], ids[1]);
}

/* What a shard mints below what has passed, for its clock has stepped back, nobody has. */
static void test_what_a_clock_that_steps_back_mints_is_new_to_all(void **state)
{
    uint64_t late, stepped, again, ids[2];

    (void)state;
    begin_with_quiet_shards(1 << 20);
    leave_behind(&late, ids);
    for (size_t i = 0; i < 4; i++)
        post_in(0, &ids[1], "more");
    resume(&a, NULL, ids[1]);
    settle();
    assert_string_equal(received(&a), late_gap(ids[0], ids[1]));
    last_id = ids[0];
    post_in(1, &stepped, "late");
    assert_true(stepped < ids[1]);
    assert_received(&a, stepped);
    last_id = stepped;
    post_in(1, &again, "late");
    assert_true(again < ids[1]);
    assert_received(&a, again);
    come_late();
    settle();
    assert_received(&a, 0);
}

/* Nothing has come late here: another server was left behind, gave out the cursor, and marks it
 * when the client is live here. */
static void test_who_is_live_is_told_of_a_mark_that_its_cursor_claims(void **state)
{
    const uint64_t *busy = begin_with_quiet_shards(1 << 20);
    char expected[512];

    (void)state;
    post_to_busy_shards(busy);
    resume(&a, NULL, busy[TAKES - 5]);
    resume(&b, NULL, busy[TAKES - 20]); /* from before */
    subscribe(&c, NULL);
    settle();
    assert_true(is_live(&a) && is_live(&b));
    buffer_clear(&a.received);
    buffer_clear(&b.received);
    mark_late(busy[TAKES - 10], busy[TAKES - 2]);
    assert_true(is_live(&b) && is_live(&c));
    settle();
    publish_in(0, "ada", "behind it");
    pass_in(0);
    deliver_turn_end(deliver);
    settle();
    assert_true(is_live(&a));
    snprintf(expected, sizeof(expected), "%s %" PRIu64, late_gap(busy[TAKES - 10], busy[TAKES - 5]),
             last_id);
    assert_string_equal(received(&a), expected);
    snprintf(expected, sizeof(expected), "%" PRIu64, last_id);
    assert_string_equal(received(&b), expected);
    assert_string_equal(received(&c), expected);
    mark_late(busy[TAKES - 10], busy[TAKES - 2]); /* by another one: once is enough */
    settle();
    assert_string_equal(received(&a), "");
}

/* It has fallen out of the ring before it came to the late event. */
static void test_who_is_slow_gets_a_late_event_from_the_log(void **state)
{
    uint64_t late, ids[2];

    (void)state;
    begin_with_quiet_shards(ROOM);
    subscribe(&a, NULL);
    publish_in(0, "ada", "before");
    pass_in(0);
    deliver_turn_end(deliver);
    buffer_clear(&a.received);
    a.room = 0;
    leave_behind(&late, ids);
    come_late();
    deliver_shard_whole(deliver, QUIET_SHARD);
    post_to_busy_shards(begin_busy());
    assert_false(is_live(&a));
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_true(is_live(&a));
    check_follow(&a, (uint64_t[]){ids[0], late, ids[1]}, 3);
}

/* --- what is lost ----------------------------------------------------------------------------- */

static void test_a_cursor_older_than_the_log_is_told_both_ends(void **state)
{
    char expected[256];

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(300);
    logs[0].first = 100;
    resume(&a, NULL, id_at(10));
    resume(&b, NULL, id_at(99)); /* has all that was trimmed */
    settle();
    snprintf(expected, sizeof(expected),
             "{\"type\":\"gap\",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64
             "\",\"reason\":\"retention\"} %" PRIu64 " ",
             id_at(10), id_at(99), id_at(100));
    assert_memory_equal(received(&a), expected, strlen(expected));
    assert_string_equal(received(&b), ids(100, 300, 1));
    assert_true(is_live(&a));
}

static void test_a_log_that_was_emptied_is_told_as_a_gap(void **state)
{
    char expected[256];

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(10);
    logs[0].first = 10;
    resume(&a, NULL, id_at(4));
    resume(&b, NULL, id_at(9));
    settle();
    snprintf(expected, sizeof(expected),
             "{\"type\":\"gap\",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64
             "\",\"reason\":\"retention\"}",
             id_at(4), id_at(9));
    assert_string_equal(received(&a), expected);
    assert_string_equal(received(&b), "");
    post("x");
    assert_string_equal(received(&a), ids(10, 11, 1));
    assert_string_equal(received(&b), ids(10, 11, 1));
}

static void test_a_gap_in_the_ring_is_told_to_who_resumes_from_before_it(void **state)
{
    struct gap gap = {.reason = GAP_RETENTION};
    char expected[256];

    (void)state;
    begin_again(1 << 20, 1 << 20, LAG_MS);
    posts(10);
    gap.from = id_at(9);
    gap.to = id_at(9) + 1;
    deliver_gap(deliver, &gap);
    posts(10);
    resume(&a, NULL, id_at(9));
    resume(&b, NULL, gap.to); /* has all that is missing */
    settle();
    snprintf(expected, sizeof(expected),
             "{\"type\":\"gap\",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64
             "\",\"reason\":\"retention\"} %s",
             gap.from, gap.to, ids(10, 20, 1));
    assert_string_equal(received(&a), expected);
    assert_string_equal(received(&b), ids(10, 20, 1));
}

static void test_who_is_overtaken_by_the_end_of_the_log_is_too_slow(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(1500);
    a.room = 1000;
    resume(&a, NULL, id_at(10));
    settle();
    logs[0].first = 1400;
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_int_equal(a.evictions, 1);
    assert_int_equal(a.disconnect_reason, DISCONNECT_TOO_SLOW);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id,
                     id_at(10 + a.client.sent_events));
    assert_true(a.client.sent_events > 100);
}

static void test_what_cannot_be_read_is_told_as_a_gap(void **state)
{
    const char *got;

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(10);
    logs[0].entries[6].is_unreadable = true;
    resume(&a, NULL, id_at(2));
    settle();
    got = received(&a);
    assert_non_null(strstr(got, "\"reason\":\"redis\""));
    post("x");
    assert_string_equal(received(&a), ids(10, 11, 1));
}

static void test_trouble_with_redis_is_waited_out(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(10);
    resume(&a, NULL, id_at(2));
    turn();
    answer_with_trouble(0);
    assert_false(logs[0].request.is_asked); /* not at once: in a turn of its own */
    while (!logs[0].request.is_asked)
        uv_run(&loop, UV_RUN_ONCE);
    settle();
    assert_string_equal(received(&a), ids(3, 10, 1));
    assert_int_equal(metric_get(metrics, METRIC_LOG_READ_FAILURES), 1);
}

/* Whatever of the ring is gone when the client comes: who has all before the gap and nothing behind
 * it is told of it, once. */
static void check_gap_is_told(enum gap_reason reason, size_t posts_behind)
{
    uint64_t from, to;

    begin_again(ROOM, 1 << 20, LAG_MS);
    posts(20);
    from = id_at(19);
    tell_lost(3, reason);
    to = id_at(22);
    posts(posts_behind);
    resume(&a, NULL, from);
    resume(&b, NULL, to);        /* has been told */
    resume(&c, NULL, id_at(21)); /* lies in the middle of it */
    settle();
    assert_true(is_live(&a) && is_live(&b) && is_live(&c));
    check_gap_then(&a,
                   strstr(buffer_str(&a.received), "redis")
                       ? gap_text(from, to, GAP_REDIS)
                       : gap_text(from, to, GAP_RETENTION), /* all the log can tell */
                   ids(23, 23 + posts_behind, 1));
    assert_string_equal(received(&b), ids(23, 23 + posts_behind, 1));
    assert_int_equal(c.client.sent_events, posts_behind + 1);
    post("x");
    assert_string_equal(received(&a), ids(23 + posts_behind, 24 + posts_behind, 1));
}

static void test_a_gap_is_told_wherever_in_the_ring_it_was(void **state)
{
    (void)state;
    for (size_t count = 0; count < 130; count++) {
        check_gap_is_told(GAP_REDIS, count);
        check_gap_is_told(GAP_RETENTION, count);
    }
}

static void test_a_gap_is_told_by_a_ring_that_keeps_nothing(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(20);
    tell_lost(3, GAP_RETENTION);
    resume(&a, NULL, id_at(19));
    settle();
    assert_string_equal(received(&a), gap_text(id_at(19), id_at(22), GAP_RETENTION));
    assert_true(is_live(&a));
    resume(&b, NULL, id_at(22));
    settle();
    assert_string_equal(received(&b), "");
    assert_true(is_live(&b));
    post("x");
    assert_string_equal(received(&a), ids(23, 24, 1));
    assert_string_equal(received(&b), ids(23, 24, 1));
}

/* Nobody could be told, for want of memory: all had to go, and are told when they come back. */
static void test_a_gap_that_could_not_be_told_is_told_to_who_comes_back(void **state)
{
    struct gap gap = {.reason = GAP_RETENTION};

    (void)state;
    posts(20);
    publish("lost");
    logs[0].entries[20].is_deleted = true;
    logs[0].passed = 21;
    gap.from = id_at(19);
    gap.to = id_at(20);
    subscribe(&b, NULL);
    mem_fail_after(0);
    deliver_gap(deliver, &gap);
    mem_fail_never();
    assert_int_equal(b.evictions, 1);
    resume(&a, NULL, b.disconnect_cursor.id);
    settle();
    assert_string_equal(received(&a), gap_text(id_at(19), id_at(20), GAP_RETENTION));
    post("x");
    assert_string_equal(received(&a), ids(21, 22, 1));
}

/* Live, or in the ring, or reading the log: everybody has to go, and gets it on coming back. */
static void test_what_there_was_no_memory_for_is_had_on_coming_back(void **state)
{
    (void)state;
    posts(20);
    subscribe(&a, NULL);
    a.room = 0;
    post("x");
    a.room = FAKE_UNLIMITED;
    resume(&b, NULL, id_at(18));
    logs[0].passed++;
    deliver_miss(deliver, 0, publish("missed"));
    assert_int_equal(a.disconnect_reason, DISCONNECT_INTERNAL);
    assert_int_equal(b.disconnect_reason, DISCONNECT_INTERNAL);
    assert_int_equal(a.disconnect_cursor.id, id_at(19));
    resume(&c, NULL, deliver_client_cursor(deliver, &b.client).id);
    settle();
    assert_string_equal(received(&c), ids(19, 22, 1));
    post("x");
    assert_string_equal(received(&c), ids(22, 23, 1));
}

/* Behind it comes much that the client does not want: that moves no cursor past it. */
static void test_who_leaves_before_a_gap_was_sent_is_told_when_it_comes_back(void **state)
{
    uint64_t from, to, cursor;

    (void)state;
    posts(20);
    from = id_at(19);
    subscribe(&a, "milk");
    a.room = 0;
    tell_lost(3, GAP_RETENTION);
    to = id_at(22);
    resume(&b, "milk", from);
    b.room = 0;
    posts(50);
    settle();
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, from);
    cursor = deliver_client_cursor(deliver, &b.client).id;
    assert_int_equal(cursor, from);
    resume(&c, "milk", cursor);
    settle();
    assert_string_equal(received(&c), gap_text(from, to, GAP_RETENTION));
}

/* Events have been taken out of the log. */
static void delete_logged(size_t from, size_t to)
{
    while (from < to)
        logs[0].entries[from++].is_deleted = true;
}

/* Wherever in a batch the hole lies, and were it as long as some: it is told to who reads there,
 * who goes on. */
static void test_a_hole_in_the_log_ends_no_stream(void **state)
{
    (void)state;
    for (size_t first = 120; first < 160; first++) {
        size_t end = first + 1 + first % 7 * 20;
        char expected[160];
        const char *got;

        begin_again(0, 1 << 20, LAG_MS);
        posts(500);
        resume(&a, NULL, id_at(10));
        turn();
        answer(0);
        turn(); /* has been given the first batch */
        delete_logged(first, end);
        settle();
        assert_true(is_live(&a));
        got = strchr(received(&a), '{');
        if (first <= 10 + LOG_BATCH_EVENTS && end <= 11 + LOG_BATCH_EVENTS) {
            assert_null(got); /* that batch had been read */
            continue;
        }
        assert_non_null(got);
        snprintf(expected, sizeof(expected), "%s ",
                 gap_text(first > 10 + LOG_BATCH_EVENTS ? id_at(first - 1)
                                                        : id_at(10 + LOG_BATCH_EVENTS),
                          id_at(end - 1), GAP_RETENTION));
        assert_memory_equal(got, expected, strlen(expected));
        assert_string_equal(got + strlen(expected), ids(end, 500, 1));
    }
}

static void test_a_hole_at_the_end_of_the_log_ends_no_stream(void **state)
{
    (void)state;
    for (size_t first = 11 + LOG_BATCH_EVENTS; first < 14 + LOG_BATCH_EVENTS; first++) {
        const char *got;

        begin_again(0, 1 << 20, LAG_MS);
        posts(300);
        resume(&a, NULL, id_at(10));
        turn();
        answer(0);
        turn();
        delete_logged(first, 300);
        settle();
        assert_true(is_live(&a));
        got = strchr(received(&a), '{');
        assert_non_null(got);
        assert_string_equal(got, gap_text(id_at(first - 1), id_at(299), GAP_RETENTION));
        post("x");
        assert_string_equal(received(&a), ids(300, 301, 1));
    }
}

/* Whether the log was trimmed cannot be asked just then. */
static void test_trouble_at_a_hole_is_waited_out(void **state)
{
    char expected[160];
    const char *got;

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(300);
    resume(&a, NULL, id_at(10));
    turn();
    answer(0);
    turn();
    delete_logged(139, 150);
    answer(0);
    turn();
    answer_with_trouble(0);
    while (!logs[0].request.is_asked)
        uv_run(&loop, UV_RUN_ONCE);
    settle();
    assert_true(is_live(&a));
    got = strchr(received(&a), '{');
    assert_non_null(got);
    snprintf(expected, sizeof(expected), "%s %" PRIu64 " ",
             gap_text(id_at(138), id_at(149), GAP_RETENTION), id_at(150));
    assert_memory_equal(got, expected, strlen(expected));
}

/* --- what has happened no more ---------------------------------------------------------------- */

/* What it has, the log has not: it was told of that when it left, perhaps, or it was not. */
static void test_who_comes_back_with_the_last_of_what_was_rewound_is_told(void **state)
{
    uint64_t had;

    (void)state;
    posts(20);
    had = id_at(19);
    rewind_log(3);
    resume(&a, NULL, had);
    resume(&b, NULL, had - SL_ID_PER_MS);
    posts(5);
    resume(&c, NULL, id_at(17));
    settle();
    check_gap_then(&a, gap_text(id_at(16), had, GAP_REWOUND), ids(17, 22, 1));
    assert_non_null(strstr(received(&b), gap_text(id_at(16), had, GAP_REWOUND)));
    assert_string_equal(received(&c), ids(18, 22, 1));
}

/* The clock of the new master is behind: ids that were lost, or lie between them, come again. */
static void test_ids_that_come_again_after_a_rewind_are_not_passed_over(void **state)
{
    char expected[4096];
    uint64_t lost;

    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    posts(20);
    lost = id_at(19);
    resume(&a, NULL, id_at(9)); /* has not had its turn */
    subscribe(&b, NULL);
    b.room = 0;
    rewind_log(5);
    last_id = id_at(14);
    for (int i = 0; i < 100; i++)
        post("again"); /* b falls behind */
    settle();
    make_room(&b, FAKE_UNLIMITED);
    resume(&c, NULL, lost);
    settle();
    assert_true(is_live(&a) && is_live(&b) && is_live(&c));
    assert_non_null(strstr(received(&a), ids(15, 115, 1)));
    snprintf(expected, sizeof(expected), "%s %s", gap_text(id_at(14), lost, GAP_REWOUND),
             ids(15, 115, 1));
    check_all_but_warning(&b, expected);
    check_gap_then(&c, gap_text(id_at(14), lost, GAP_REWOUND), ids(15, 115, 1));
}

static void come_again(struct fake_client *client, uint64_t cursor)
{
    leave(client);
    fake_client_init(client, FORMAT_NDJSON, head);
    resume(client, NULL, cursor);
}

/* The new master's clock is behind: until it has caught up, its ids are lower than those that were
 * lost. `count` of them are lost, the last one `ahead_ms` after the others. Its id. */
static uint64_t fail_over_to_a_slow_clock(size_t count, uint64_t ahead_ms)
{
    uint64_t lost;

    last_id += ahead_ms * SL_ID_PER_MS;
    lost = post("lost");
    rewind_log(count);
    last_id = id_at(logs[0].count - 1);
    id_offset = 1;
    return lost;
}

static void test_who_comes_back_from_behind_a_rewind_gets_what_follows_and_no_more(void **state)
{
    uint64_t kept, lost;
    const char *got;

    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    posts(20);
    subscribe(&a, NULL);
    kept = id_at(15);
    lost = fail_over_to_a_slow_clock(5, 1000);
    assert_int_equal(head().id, kept);
    post("x");
    assert_int_equal(head().id, id_at(16)); /* and not what is lost */
    posts(3);
    resume(&b, NULL, id_at(17));
    settle();
    assert_string_equal(received(&b), ids(18, 20, 1));
    resume(&c, NULL, head().id);
    posts(2);
    settle();
    assert_string_equal(received(&c), ids(20, 22, 1));
    come_again(&c, lost);
    settle();
    check_gap_then(&c, gap_text(kept, lost, GAP_REWOUND), ids(16, 22, 1));
    come_again(&c, kept);
    settle();
    got = strstr(received(&c), gap_text(kept, lost, GAP_REWOUND));
    assert_non_null(got);
    assert_string_equal(got + strlen(gap_text(kept, lost, GAP_REWOUND)) + 1, ids(16, 22, 1));
    last_id = lost; /* it has caught up */
    posts(3);
    come_again(&b, id_at(23));
    settle();
    assert_string_equal(received(&b), ids(24, 25, 1));
    assert_true(is_live(&a) && is_live(&b) && is_live(&c));
    assert_non_null(strstr(received(&a), ids(16, 25, 1)));
}

/* Neither the tail that was lost nor the gap that tells so is in memory any more. */
/* Of several shards: the gap of a rewind before what it has is not told again, nor what came
 * instead, though there was another one since. */
static void test_who_comes_back_from_between_two_rewinds_gets_what_follows_the_first(void **state)
{
    uint64_t had, kept, lost, last;
    char expected[256];
    const char *got;

    (void)state;
    begin_with_quiet_shards(1 << 20);
    posts(5);
    rewind_log(2);
    posts(5);
    had = publish_in(1, "ada", "tea");
    pass_in(1);
    kept = post("tea");
    lost = post("lost");
    rewind_log(1);
    last = post("tea");
    resume(&a, NULL, had);
    settle();
    snprintf(expected, sizeof(expected),
             "%" PRIu64 " %" PRIu64 " {\"type\":\"gap\",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64
             "\",\"reason\":\"rewound\",\"shard\":0} %" PRIu64,
             kept, lost, kept, lost, last);
    assert_string_equal(received(&a), expected);
    resume(&b, NULL, had + 1); /* a cursor that is no event's: it may not know of the first */
    settle();
    got = received(&b);
    assert_string_equal(strchr(got, '}') + 2, expected);
}

static void test_a_rewind_that_has_left_the_ring_is_no_gap_to_who_comes_later(void **state)
{
    (void)state;
    begin_again(ROOM, 4096, LAG_MS);
    posts(20);
    fail_over_to_a_slow_clock(5, 100000);
    posts(1000);
    resume(&a, NULL, id_at(500));
    subscribe(&b, NULL);
    b.room = 0;
    posts(1000); /* b falls behind */
    make_room(&b, FAKE_UNLIMITED);
    settle();
    assert_string_equal(received(&a), ids(501, 2016, 1));
    check_all_but_warning(&b, ids(1016, 2016, 1));
    assert_true(is_live(&a) && is_live(&b));
}

/* The new log is ahead of what has passed. */
static void test_what_is_logged_behind_a_rewind_comes_once(void **state)
{
    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(20);
    fail_over_to_a_slow_clock(5, 100000);
    posts(100);
    publish("ahead");
    publish("ahead");
    resume(&a, NULL, id_at(50));
    settle();
    assert_string_equal(received(&a), ids(51, 116, 1));
    while (pass_in(0)) {
    }
    post("x");
    settle();
    assert_string_equal(received(&a), ids(116, 119, 1));
    assert_true(is_live(&a));
}

/* What says so has left the ring by the time it reads on. */
static void test_who_was_behind_when_the_log_was_rewound_is_told(void **state)
{
    char expected[256];
    uint64_t lost;
    const char *got;

    (void)state;
    begin_again(ROOM, 4096, LAG_MS);
    subscribe(&a, NULL);
    posts(20);
    lost = id_at(19);
    assert_string_equal(received(&a), ids(0, 20, 1));
    a.room = 0;
    rewind_log(3);
    posts(1000);
    assert_false(is_live(&a));
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_true(is_live(&a));
    got = strchr(received(&a), '{');
    got = got ? strstr(got, "{\"type\":\"gap\"") : NULL;
    assert_non_null(got);
    snprintf(expected, sizeof(expected), "%s ", gap_text(id_at(16), lost, GAP_REWOUND));
    assert_memory_equal(got, expected, strlen(expected));
    got += strlen(expected);
    assert_null(strstr(got, "gap"));
    assert_non_null(strstr(got, ids(100, 1017, 1)));
}

/* --- falling behind --------------------------------------------------------------------------- */

static void test_who_falls_behind_goes_on_in_the_ring(void **state)
{
    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    subscribe(&a, NULL);
    subscribe(&b, "tea");
    a.room = b.room = 1000;
    posts(300);
    assert_false(is_live(&a) || is_live(&b));
    make_room(&a, FAKE_UNLIMITED);
    make_room(&b, FAKE_UNLIMITED);
    settle();
    check_all_but_warning(&a, ids(0, 300, 1));
    check_all_but_warning(&b, ids(1, 300, 2));
    assert_true(is_live(&a) && is_live(&b));
    assert_int_equal(reads, 0);
    post("tea");
    assert_string_equal(received(&a), ids(300, 301, 1));
    assert_string_equal(received(&b), ids(300, 301, 1));
}

/* It has everything, and its socket is full when its lane is kept alive. */
static void test_who_falls_behind_a_keepalive_is_sent_nothing_twice(void **state)
{
    const struct sl_cursor *cursor;

    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    a.client.encoding = ENCODING_DEFLATE;
    a.client.window_bits = 15;
    subscribe(&a, NULL);
    subscribe(&b, NULL);
    post_unlogged("bob"); /* whose sequence alone tells that it was sent */
    cursor = CURSOR(post("the first"));
    assert_false(deliver_keep_alive(&b.client, cursor)); /* it is told by itself */
    a.room = 0;
    assert_true(deliver_keep_alive(&a.client, cursor));
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, cursor->id);
    posts(300);
    assert_false(is_live(&a));
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_true(is_live(&a));
    assert_int_equal(a.client.sent_events, 302 + 1); /* a warning */
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, id_at(300));
}

static void test_who_falls_further_behind_goes_on_in_the_log(void **state)
{
    (void)state;
    begin_again(ROOM, 4096, LAG_MS);
    subscribe(&a, NULL);
    subscribe(&b, "tea");
    a.room = b.room = 1000;
    posts(2000);
    make_room(&a, FAKE_UNLIMITED);
    make_room(&b, FAKE_UNLIMITED);
    settle();
    assert_true(reads > 0);
    check_all_but_warning(&a, ids(0, 2000, 1));
    check_all_but_warning(&b, ids(1, 2000, 2));
    assert_true(is_live(&a) && is_live(&b));
}

static void test_who_is_behind_is_warned_once(void **state)
{
    const char *got;
    unsigned long events;

    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    subscribe(&a, NULL);
    for (int i = 0; i < 3; i++) {
        a.room = 0;
        posts(200);
        assert_false(is_live(&a));
        make_room(&a, FAKE_UNLIMITED);
        settle();
        assert_true(is_live(&a));
    }
    got = behind_warning(received(&a));
    assert_null(strstr(strchr(got, '}'), "warning"));
    assert_int_equal(sscanf(strstr(got, "events\":"), "events\":%lu", &events), 1);
    assert_int_equal(events, 200);
}

static void test_who_holds_out_for_ever_costs_little(void **state)
{
    (void)state;
    begin_again(ROOM, 4096, LAG_MS);
    subscribe(&a, NULL);
    a.room = 0;
    posts(3000);
    settle();
    assert_true(metric_get(metrics, METRIC_EVENT_BYTES) < 2 * ROOM);
    make_room(&a, 1000); /* takes one step more */
    settle();
    posts(900);
    settle();
    assert_true(metric_get(metrics, METRIC_EVENT_BYTES) < 4 * ROOM + (256 << 10));
}

static void test_who_does_not_read_for_too_long_is_too_slow(void **state)
{
    (void)state;
    begin_again(ROOM, 4096, 1); /* the log is 1,000 seconds old */
    subscribe(&a, NULL);
    a.room = 500;
    posts(300);
    resume(&b, NULL, id_at(10)); /* came with as great a lag */
    b.room = 500;
    while (a.evictions == 0) {
        uv_run(&loop, UV_RUN_ONCE);
        answer(0);
    }
    assert_int_equal(a.disconnect_reason, DISCONNECT_TOO_SLOW);
    assert_int_equal(deliver_client_cursor(deliver, &a.client).id, id_at(a.client.sent_events - 1));
    assert_true(fake_client_lives(&b) || b.disconnect_reason == DISCONNECT_TOO_SLOW);
}

static void test_events_without_a_log_come_from_the_ring(void **state)
{
    (void)state;
    begin_again(1 << 20, 4096, LAG_MS);
    subscribe(&a, NULL);
    a.room = 0;
    posts(50);
    post_unlogged("bob");
    posts(50);
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_true(is_live(&a));
    assert_int_equal(a.client.sent_events, 102); /* and the warning */
}

static void test_events_without_a_log_that_are_gone_are_told_as_a_gap(void **state)
{
    const char *got, *gap;

    (void)state;
    begin_again(ROOM, 4096, LAG_MS);
    subscribe(&a, NULL);
    subscribe(&b, NULL);
    a.room = b.room = 0;
    posts(50);
    post_unlogged("bob");
    posts(500);
    make_room(&a, FAKE_UNLIMITED);
    settle();
    assert_true(is_live(&a));
    got = received(&a);
    gap = strstr(got, "{\"type\":\"gap\"");
    assert_non_null(gap);
    assert_non_null(strstr(gap, "\"reason\":\"unlogged\"}"));
    assert_null(strstr(strchr(gap, '}'), "gap"));
    assert_int_equal(a.client.sent_events, 550 + 2); /* the warning and the gap */
}

static void test_a_resumed_client_gets_events_without_a_log_from_then_on(void **state)
{
    (void)state;
    posts(10);
    post_unlogged("bob");
    resume(&a, NULL, id_at(4));
    post_unlogged("bob");
    settle();
    assert_int_equal(a.client.sent_events, 5 + 1);
}

/* --- turns of the loop --------------------------------------------------------------------------
 */

enum { MANY = 600, SENDS_IN_A_TURN = 130 };

/* Each second those who wait for the log are sent the little that has gathered: not all at once. */
static void test_however_many_wait_a_turn_of_the_loop_is_short(void **state)
{
    static struct fake_client many[MANY];
    unsigned before = 0, after;

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(300);
    for (size_t i = 0; i < MANY; i++) {
        fake_client_init(&many[i], FORMAT_NDJSON, head);
        resume(&many[i], "tea", id_at(10));
    }
    for (int i = 0; i < 1000; i++)
        turn();
    answer(0);
    do {
        uv_run(&loop, UV_RUN_ONCE);
        after = 0;
        for (size_t i = 0; i < MANY; i++)
            after += many[i].sends;
        assert_true(after - before <= SENDS_IN_A_TURN);
        before = after;
    } while (after < MANY);
    assert_true(logs[0].request.is_asked);
    settle();
    for (size_t i = 0; i < MANY; i++) {
        assert_string_equal(received(&many[i]), ids(11, 300, 2));
        leave(&many[i]);
    }
}

/* --- home and named rules --------------------------------------------------------------------- */

static uint64_t last_load;

static void on_load(void *owner, const char *user, uint64_t load)
{
    (void)owner;
    (void)user;
    last_load = load;
}

static void test_a_home_stream_resumes_with_the_graph_of_today(void **state)
{
    struct sl_slice ada = SL_SLICE("ada");
    struct home_sets sets = {.followed = {&ada, 1}};

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    home_on_load(deliver_home(deliver), on_load, NULL);
    for (int i = 0; i < 300; i++) {
        publish_in(0, i % 3 ? "ada" : "eve", "x");
        pass_in(0);
    }
    assert_int_equal(
        deliver_subscribe_home(deliver, &a.client, SL_SLICE("bob"), 1u << SL_EVENT_POST, -1), 0);
    assert_int_equal(deliver_resume(deliver, &a.client, CURSOR(id_at(0))), 0);
    settle();
    assert_int_equal(a.client.sent_events, 0); /* who is followed is not known yet */
    home_loaded(deliver_home(deliver), "bob", last_load, &sets);
    settle();
    assert_int_equal(a.client.sent_events, 200);
    assert_true(is_live(&a));
}

static void put(struct rule_set *rules, const char *id, const char *track)
{
    struct sl_filter *filter = filter_of(track);

    assert_int_equal(rule_set_put(rules, sl_slice_str(id), SL_SLICE_NONE, filter), 0);
    sl_filter_unref(filter);
}

static void test_named_rules_resume_when_they_are_there(void **state)
{
    struct rule_set *rules;

    (void)state;
    begin_again(0, 1 << 20, LAG_MS);
    posts(300);
    fake_client_done(&a);
    fake_client_init(&a, FORMAT_WEBSOCKET, head);
    assert_int_equal(deliver_subscribe_rules(deliver, &a.client, -1, &rules), 0);
    assert_int_equal(deliver_resume(deliver, &a.client, CURSOR(id_at(0))), 0);
    settle();
    put(rules, "t", "tea");
    settle();
    assert_int_equal(a.client.sent_events, 0);
    put(rules, "c", "coffee");
    deliver_rules_ready(&a.client);
    settle();
    assert_int_equal(a.client.sent_events, 299);
    assert_true(is_live(&a));
    for (size_t i = 0; i < 2; i++) {
        static const char *const names[] = {"\"matching_rules\":[{\"id\":\"t\"}]}",
                                            "\"matching_rules\":[{\"id\":\"c\"}]}"};

        assert_non_null(memmem(a.received.data, a.received.size, names[i], strlen(names[i])));
    }
}

/* --- no memory -------------------------------------------------------------------------------- */

/* What the client receives must not need memory when there is none. */
static void reserve(struct fake_client *client)
{
    assert_non_null(buffer_reserve(&client->received, 1 << 20));
}

/* Whatever allocation fails: a client gets everything, or hears where to go on. */
static void test_without_memory_nobody_misses_anything_in_silence(void **state)
{
    bool has_failed = true;

    (void)state;
    for (uint64_t n = 0; has_failed; n++) {
        uint64_t cursor;
        bool began;

        begin_again(0, 4096, LAG_MS);
        subscribe(&b, NULL);
        b.room = 0;
        posts(202);
        subscribe(&a, "tea");
        reserve(&a);
        mem_fail_after(n);
        began = deliver_resume(deliver, &a.client, CURSOR(id_at(0))) == 0;
        for (int i = 0; i < 10; i++) {
            turn();
            answer(0);
        }
        has_failed = mem_failed();
        mem_fail_never();
        while (logs[0].request.is_asked || (began && a.client.catcher && fake_client_lives(&a))) {
            uv_run(&loop, UV_RUN_ONCE);
            answer(0);
        }
        if (!began)
            continue;
        cursor = deliver_client_cursor(deliver, &a.client).id;
        if (fake_client_lives(&a))
            assert_string_equal(received(&a), ids(1, 202, 2));
        else
            assert_string_equal(received(&a),
                                ids(1, (size_t)((cursor - id_at(0)) / SL_ID_PER_MS) + 1, 2));
    }
}

static void test_who_cannot_fall_behind_for_lack_of_memory_has_to_go(void **state)
{
    (void)state;
    begin_again(ROOM, 4096, LAG_MS);
    subscribe(&a, NULL);
    reserve(&a);
    a.room = 0;
    while (fake_client_lives(&a) && is_live(&a)) {
        publish("x");
        pass_in(0);
        mem_fail_after(0); /* from here on for the flush alone */
        deliver_turn_end(deliver);
        mem_fail_never();
    }
    assert_int_equal(a.evictions, 1);
    assert_int_equal(a.disconnect_reason, DISCONNECT_INTERNAL);
    assert_int_equal(a.disconnect_cursor.id, id_at(0) - 1);
}

/* --- anything in any order -------------------------------------------------------------------- */

enum { CLIENTS = 10, STEPS = 1500 };

static const char *const tracks[] = {NULL, "tea", "coffee", "tea,milk"};

struct model_client {
    struct fake_client fake;
    bool is_there;
    size_t track;
    size_t at[SHARDS]; /* by shard: the next of its log that it may get */
};

static struct model_client clients[CLIENTS];
static uint64_t random_state;
static uint32_t shards;

static size_t below(size_t n)
{
    return stable_hash(random_state++) % n;
}

static bool wants(size_t track, const struct logged *entry)
{
    static const char *const words[] = {"tea", "coffee", "milk"};
    static const bool wanted[4][3] = {
        {true, true, true}, {true, false, false}, {false, true, false}, {true, false, true}};

    if (!tracks[track])
        return true;
    for (size_t i = 0; i < 3; i++) {
        if (strstr(entry->json, words[i]))
            return wanted[track][i];
    }
    return false;
}

/* The next event of the shard for this client; NULL: there is no more. */
static const struct logged *next_wanted(struct model_client *client, uint32_t shard)
{
    struct fake_log *log = &logs[shard];

    while (client->at[shard] < log->count &&
           !wants(client->track, &log->entries[client->at[shard]]))
        client->at[shard]++;
    return client->at[shard] < log->count ? &log->entries[client->at[shard]] : NULL;
}

/* The next event of all shards for this client; NULL: there is no more. */
static const struct logged *next_of_all(struct model_client *client)
{
    const struct logged *first = NULL;

    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct logged *next = next_wanted(client, shard);

        if (next && (!first || next->id < first->id))
            first = next;
    }
    return first;
}

/* The events that it wants, in the order of their ids, none missing. */
static void check_received(struct model_client *client)
{
    const struct logged *next;
    const char *text;
    char *end;

    assert_true(fake_client_lives(&client->fake));
    if (client->fake.held.size > 0)
        return; /* cut within a frame */
    for (text = received(&client->fake); *text; text = end + (*end == ' ')) {
        uint64_t id;

        if (*text == '{') {
            assert_memory_equal(text, "{\"type\":\"warning\"", 17);
            end = strchr(text, '}') + 1;
            continue;
        }
        id = strtoull(text, &end, 10);
        next = next_of_all(client);
        assert_non_null(next);
        assert_int_equal(next->id, id);
        client->at[sl_id_shard(id)]++;
    }
}

/* Would the client, going on with the cursor that it is told now, get what it lacks and no more? */
static void check_cursor(struct model_client *client)
{
    const struct sl_cursor cursor = deliver_client_cursor(deliver, &client->fake.client);
    const struct logged *next = next_of_all(client);

    if (client->fake.held.size > 0)
        return; /* cut within a frame, which will be sent */
    assert_true(sl_cursor_is_plain(&cursor));
    assert_true(!next ||
                next >= logs[sl_id_shard(next->id)].entries + logs[sl_id_shard(next->id)].passed ||
                cursor.id < next->id);
    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct fake_log *log = &logs[shard];

        for (size_t i = client->at[shard]; i > 0 && log->entries[i - 1].id > cursor.id; i--)
            assert_false(wants(client->track, &log->entries[i - 1]));
    }
}

static void model_join(struct model_client *client)
{
    uint64_t cursor = deliver_cursor(deliver).id;

    fake_client_init(&client->fake, FORMAT_NDJSON, head);
    client->is_there = true;
    client->track = below(4);
    client->fake.room = below(2) ? FAKE_UNLIMITED : below(3000);
    subscribe(&client->fake, tracks[client->track]);
    for (uint32_t shard = 0; shard < shards; shard++)
        client->at[shard] = logs[shard].passed;
    if (below(3) == 0 || cursor == 0)
        return; /* live */
    cursor -= below(4) ? below(100) * SL_ID_PER_MS : below(2000) * SL_ID_PER_MS;
    assert_int_equal(deliver_resume(deliver, &client->fake.client, CURSOR(cursor)), 0);
    for (uint32_t shard = 0; shard < shards; shard++) {
        while (client->at[shard] > 0 && logs[shard].entries[client->at[shard] - 1].id > cursor)
            client->at[shard]--;
    }
}

static void model_leave(struct model_client *client)
{
    leave(&client->fake);
    client->is_there = false;
}

/* The next event of all shards passes, as they come out of id_order.h. */
static bool pass_next(void)
{
    const struct fake_log *first = NULL;

    for (uint32_t shard = 0; shard < shards; shard++) {
        const struct fake_log *log = &logs[shard];

        if (log->passed < log->count &&
            (!first || log->entries[log->passed].id < first->entries[first->passed].id))
            first = log;
    }
    return first && pass_in((uint32_t)(first - logs));
}

static void model_step(void)
{
    struct model_client *client = &clients[below(CLIENTS)];
    uint32_t shard = (uint32_t)below(shards);

    switch (below(10)) {
    case 0:
        if (!client->is_there)
            model_join(client);
        else if (below(8) == 0)
            model_leave(client);
        break;
    case 1:
    case 2:
        for (size_t i = below(6); i > 0; i--)
            publish_in(shard, "ada", (const char *[]){"tea", "coffee", "milk", "water"}[below(4)]);
        break;
    case 3:
    case 4:
    case 5:
        for (size_t i = below(8); i > 0; i--)
            pass_next();
        break;
    case 6:
        answer(shard);
        break;
    case 7:
        if (client->is_there)
            make_room(&client->fake, below(4) ? below(6000) : 100000);
        break;
    default:
        turn();
    }
    if (client->is_there) {
        check_received(client);
        check_cursor(client);
    }
}

static void run_model(unsigned seed)
{
    random_state = (uint64_t)seed << 32;
    begin_again(seed % 3 ? ROOM : 4096, 4096, UINT32_MAX);
    for (uint32_t shard = 0; shard < shards; shard++)
        deliver_begin_shard(deliver, shard, 0);
    for (int i = 0; i < STEPS; i++)
        model_step();
    while (pass_next())
        continue;
    for (size_t i = 0; i < CLIENTS; i++) {
        if (clients[i].is_there)
            make_room(&clients[i].fake, FAKE_UNLIMITED);
    }
    settle();
    for (size_t i = 0; i < CLIENTS; i++) {
        if (!clients[i].is_there)
            continue;
        assert_true(is_live(&clients[i].fake));
        check_received(&clients[i]);
        for (uint32_t shard = 0; shard < shards; shard++)
            assert_null(next_wanted(&clients[i], shard));
        model_leave(&clients[i]);
    }
}

static void test_every_client_gets_everything_once_and_in_order(void **state)
{
    (void)state;
    shards = 1;
    for (unsigned seed = 1; seed <= 25; seed++)
        run_model(seed);
}

static void test_so_it_does_with_more_shards(void **state)
{
    (void)state;
    shards = 3;
    for (unsigned seed = 1; seed <= 25; seed++)
        run_model(seed);
}

#define CATCH_UP_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CATCH_UP_TEST(test_what_is_in_the_ring_needs_no_log),
        CATCH_UP_TEST(test_what_is_not_in_the_ring_comes_from_the_log),
        CATCH_UP_TEST(test_only_what_the_filter_wants_comes),
        CATCH_UP_TEST(test_batches_are_read_once_for_all),
        CATCH_UP_TEST(test_the_log_is_read_as_far_as_has_passed),
        CATCH_UP_TEST(test_a_cursor_may_be_ahead_of_what_has_passed),
        CATCH_UP_TEST(test_the_event_of_a_cursor_that_was_ahead_is_not_sent_again),
        CATCH_UP_TEST(test_a_cursor_ahead_is_not_judged_by_an_old_batch),
        CATCH_UP_TEST(test_a_cursor_in_the_future_means_now),
        CATCH_UP_TEST(test_a_cursor_is_a_position_between_events),
        CATCH_UP_TEST(test_the_cursor_of_who_is_behind_follows_what_was_sent),
        CATCH_UP_TEST(test_nothing_is_sent_beyond_the_cursor_of_who_leaves),
        CATCH_UP_TEST(test_who_comes_to_shards_that_began_at_different_times_misses_nothing),
        CATCH_UP_TEST(test_quiet_shards_do_not_hold_back_the_cursor_of_who_falls_behind),
        CATCH_UP_TEST(test_nor_when_only_the_log_has_the_rest),
        CATCH_UP_TEST(test_the_cursor_of_who_came_with_one_follows_what_was_sent),
        CATCH_UP_TEST(test_a_late_event_is_told_with_a_cursor_of_its_own),
        CATCH_UP_TEST(test_nobody_is_given_a_cursor_beyond_a_gap_before_it_is_told),
        CATCH_UP_TEST(test_who_is_cut_around_a_late_event_misses_nothing),
        CATCH_UP_TEST(test_a_plain_cursor_is_told_what_came_late),
        CATCH_UP_TEST(test_who_has_more_of_a_shard_that_is_behind_is_not_sent_it_again),
        CATCH_UP_TEST(test_who_is_ahead_is_told_when_a_shard_falls_behind),
        CATCH_UP_TEST(test_what_a_clock_that_steps_back_mints_is_new_to_all),
        CATCH_UP_TEST(test_who_is_live_is_told_of_a_mark_that_its_cursor_claims),
        CATCH_UP_TEST(test_who_is_slow_gets_a_late_event_from_the_log),
        CATCH_UP_TEST(test_a_cursor_older_than_the_log_is_told_both_ends),
        CATCH_UP_TEST(test_a_log_that_was_emptied_is_told_as_a_gap),
        CATCH_UP_TEST(test_a_gap_in_the_ring_is_told_to_who_resumes_from_before_it),
        CATCH_UP_TEST(test_who_is_overtaken_by_the_end_of_the_log_is_too_slow),
        CATCH_UP_TEST(test_what_cannot_be_read_is_told_as_a_gap),
        CATCH_UP_TEST(test_trouble_with_redis_is_waited_out),
        CATCH_UP_TEST(test_a_gap_is_told_wherever_in_the_ring_it_was),
        CATCH_UP_TEST(test_a_gap_is_told_by_a_ring_that_keeps_nothing),
        CATCH_UP_TEST(test_a_gap_that_could_not_be_told_is_told_to_who_comes_back),
        CATCH_UP_TEST(test_what_there_was_no_memory_for_is_had_on_coming_back),
        CATCH_UP_TEST(test_who_leaves_before_a_gap_was_sent_is_told_when_it_comes_back),
        CATCH_UP_TEST(test_a_hole_in_the_log_ends_no_stream),
        CATCH_UP_TEST(test_a_hole_at_the_end_of_the_log_ends_no_stream),
        CATCH_UP_TEST(test_trouble_at_a_hole_is_waited_out),
        CATCH_UP_TEST(test_who_comes_back_with_the_last_of_what_was_rewound_is_told),
        CATCH_UP_TEST(test_ids_that_come_again_after_a_rewind_are_not_passed_over),
        CATCH_UP_TEST(test_who_comes_back_from_behind_a_rewind_gets_what_follows_and_no_more),
        CATCH_UP_TEST(test_who_comes_back_from_between_two_rewinds_gets_what_follows_the_first),
        CATCH_UP_TEST(test_a_rewind_that_has_left_the_ring_is_no_gap_to_who_comes_later),
        CATCH_UP_TEST(test_what_is_logged_behind_a_rewind_comes_once),
        CATCH_UP_TEST(test_who_was_behind_when_the_log_was_rewound_is_told),
        CATCH_UP_TEST(test_who_falls_behind_goes_on_in_the_ring),
        CATCH_UP_TEST(test_who_falls_behind_a_keepalive_is_sent_nothing_twice),
        CATCH_UP_TEST(test_who_falls_further_behind_goes_on_in_the_log),
        CATCH_UP_TEST(test_who_is_behind_is_warned_once),
        CATCH_UP_TEST(test_who_holds_out_for_ever_costs_little),
        CATCH_UP_TEST(test_who_does_not_read_for_too_long_is_too_slow),
        CATCH_UP_TEST(test_events_without_a_log_come_from_the_ring),
        CATCH_UP_TEST(test_events_without_a_log_that_are_gone_are_told_as_a_gap),
        CATCH_UP_TEST(test_a_resumed_client_gets_events_without_a_log_from_then_on),
        CATCH_UP_TEST(test_however_many_wait_a_turn_of_the_loop_is_short),
        CATCH_UP_TEST(test_a_home_stream_resumes_with_the_graph_of_today),
        CATCH_UP_TEST(test_named_rules_resume_when_they_are_there),
        CATCH_UP_TEST(test_without_memory_nobody_misses_anything_in_silence),
        CATCH_UP_TEST(test_who_cannot_fall_behind_for_lack_of_memory_has_to_go),
        CATCH_UP_TEST(test_every_client_gets_everything_once_and_in_order),
        CATCH_UP_TEST(test_so_it_does_with_more_shards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
