#include "tests/support/catch_up_scene.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "tests/support/events.h"

struct fake_log logs[SHARDS];
uint64_t last_id;
uint64_t id_offset;
unsigned reads;
uv_loop_t loop;
struct metrics *metrics;
struct deliver *deliver;
struct fake_client a, b, c;
uint64_t busy_ids[TAKES];

static struct metrics_board *board;
static struct log_cache *cache;
static struct event_decoder *decoder;

struct sl_cursor head(void)
{
    return deliver_cursor(deliver);
}

/* --- the log --- */

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

bool answer(uint32_t shard)
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

uint64_t publish_in(uint32_t shard, const char *user, const char *text)
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

bool pass_in(uint32_t shard)
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

uint64_t publish(const char *text)
{
    return publish_in(0, "ada", text);
}

uint64_t post(const char *text)
{
    uint64_t id = publish(text);

    pass_in(0);
    deliver_turn_end(deliver);
    return id;
}

void posts(size_t count)
{
    for (size_t i = 0; i < count; i++)
        post(i % 2 ? "tea" : "coffee");
}

void post_unlogged(const char *user)
{
    struct event *event = event_post(0, user, "coffee");

    deliver_event(deliver, event);
    event_unref(event);
    deliver_turn_end(deliver);
}

const char *ids(size_t from, size_t to, size_t step)
{
    static char text[1 << 20];
    size_t size = 0;

    text[0] = '\0';
    for (size_t i = from; i < to; i += step)
        size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%" PRIu64, size ? " " : "",
                                 logs[0].entries[i].id);
    return text;
}

uint64_t id_at(size_t place)
{
    return logs[0].entries[place].id;
}

/* --- setting up and tearing down --- */

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

int scene_begin(void **state)
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

void leave(struct fake_client *client)
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

int scene_end(void **state)
{
    (void)state;
    end_deliver();
    event_decoder_free(decoder);
    assert_int_equal(uv_loop_close(&loop), 0);
    metrics_board_free(board);
    return 0;
}

void begin_again(size_t ring_bytes, size_t max_owed_bytes, uint64_t max_lag_ms)
{
    end_deliver();
    begin_with(ring_bytes, max_owed_bytes, max_lag_ms);
}

/* --- clients --- */

struct sl_filter *filter_of(const char *track)
{
    struct sl_filter_text text = {.track = sl_slice_str(track), .firehose = !track};
    struct sl_filter_error error;
    struct sl_filter *filter;

    if (sl_filter_new(&text, &SL_FILTER_LIMITS_DEFAULT, &filter, &error) < 0)
        fail_msg("filter refused: %s", error.message);
    return filter;
}

void subscribe(struct fake_client *client, const char *track)
{
    struct sl_filter *filter = filter_of(track);

    assert_int_equal(deliver_subscribe(deliver, &client->client, filter, -1), 0);
    sl_filter_unref(filter);
}

void resume(struct fake_client *client, const char *track, uint64_t cursor)
{
    subscribe(client, track);
    assert_int_equal(deliver_resume(deliver, &client->client, CURSOR(cursor)), 0);
}

void make_room(struct fake_client *client, size_t bytes)
{
    if (fake_client_make_room(client, bytes))
        deliver_client_writable(&client->client);
}

bool is_live(const struct fake_client *client)
{
    return client->client.outbox && !client->client.catcher;
}

void turn(void)
{
    uv_run(&loop, UV_RUN_NOWAIT);
    deliver_turn_end(deliver);
}

void settle(void)
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

const char *received(struct fake_client *client)
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

void check_all_but_warning(struct fake_client *client, const char *expected)
{
    char *got = (char *)received(client), *warning = strstr(got, "{\"type\":\"warning\"");

    if (warning) {
        char *end = strchr(warning, '}') + 1;

        end += *end == ' ';
        memmove(warning, end, strlen(end) + 1);
    }
    assert_string_equal(got, expected);
}

/* --- several shards --- */

const uint64_t *begin_busy(void)
{
    memset(busy_ids, 0, sizeof(busy_ids));
    return busy_ids;
}

const uint64_t *begin_with_quiet_shards(size_t ring_bytes)
{
    begin_again(ring_bytes, 4096, LAG_MS);
    for (uint32_t shard = 0; shard < SHARDS; shard++)
        deliver_begin_shard(deliver, shard, 0);
    publish_in(QUIET_SHARD, "ada", "long ago");
    pass_in(QUIET_SHARD);
    deliver_turn_end(deliver);
    return begin_busy();
}

void post_to_busy_shards(const uint64_t *busy)
{
    for (size_t i = 0; i < TAKES; i++) {
        ((uint64_t *)busy)[i] = publish_in(i % 2, "ada", "tea");
        pass_in(i % 2);
        deliver_turn_end(deliver);
    }
}
