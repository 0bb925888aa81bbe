/* bench/trends.c - what do trends cost per post, when they are sent, and in memory?
 *
 *     trends [-e EVENTS] [-r EVENTS_A_SECOND] [-o ROUNDS]
 *
 * EVENTS posts of 12 words (Zipf's, of 50,000), some with a hashtag, mention, link and cashtag,
 * pass through delivery in one process, without Redis or sockets. Rows: counts of everything in
 * buckets of ten seconds, and trends over five minutes, sent every ten seconds: CPU time of a post
 * and of sending a bucket, in the best of ROUNDS (3); of the longest turn of the loop (a post is a
 * turn, too; see turns.h: those that send the same bucket have one number), and how many took more
 * than a millisecond; the heap in the end, less that of the first row; and the largest `error` of
 * the last trends. */
#include <inttypes.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/measure.h"
#include "bench/sink.h"
#include "bench/turns.h"
#include "filters/filter.h"
#include "gateway/delivery/deliver.h"
#include "gateway/intake/event_decode.h"
#include "src/model/id.h"

enum { WORDS = 50000, USERS = 20000, BUCKET_MS = 10000, TEXT_MAX = 512 };

static size_t event_count = 650000, events_a_second = 1000, round_count = 3;
static uint64_t began_ms, state = 1;

static void *check(void *memory)
{
    if (!memory)
        measure_fail("memory", NULL);
    return memory;
}

static double draw(void)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(state >> 11) / (double)(UINT64_C(1) << 53);
}

static unsigned zipf(void)
{
    return (unsigned)pow(WORDS, draw());
}

static struct event *make_event(struct event_decoder *decoder, size_t i, uint64_t previous)
{
    struct event_origin origin = {
        .id = sl_id_first_at(began_ms + i * 1000 / events_a_second) + i % SL_ID_PER_SHARD,
        .previous = previous,
    };
    char json[TEXT_MAX + 256], text[TEXT_MAX];
    struct event *event;
    int size = 0;

    for (int word = 0; word < 12; word++)
        size += snprintf(text + size, sizeof(text) - (size_t)size, "word%u ", zipf());
    if (draw() < 0.25)
        size += snprintf(text + size, sizeof(text) - (size_t)size,
                         "#tag%u @user%u https://example.org/%u $c%c%c ", zipf(), zipf(), zipf(),
                         'a' + (int)(draw() * 26), 'a' + (int)(draw() * 26));
    size = snprintf(json, sizeof(json),
                    "{\"id\":\"%" PRIu64 "\",\"type\":\"post\",\"post\":{\"id\":\"%" PRIu64
                    "\",\"user\":{\"id\":\"%u\"},\"text\":\"%.*s\",\"lang\":\"en\"}}",
                    origin.id, origin.id, 1 + (unsigned)(draw() * USERS), size - 1, text);
    if (event_decode(decoder, sl_slice(json, (size_t)size), &origin, &event, NULL) < 0)
        measure_fail("event", NULL);
    return event;
}

struct row {
    double post_us, told_us;
    uint64_t heap, error;
};

static uint64_t told_error; /* the largest one since it was reset */

/* A sink that reads `error` out of what the client is sent. */
static ssize_t take(struct client *client, const struct iovec *pieces, int count)
{
    static const char member[] = "\"error\":";

    for (int i = 0; i < count; i++) {
        const char *at = pieces[i].iov_base, *end = at + pieces[i].iov_len;

        while ((at = memmem(at, (size_t)(end - at), member, strlen(member)))) {
            uint64_t error = strtoull(at += strlen(member), NULL, 10);

            told_error = error > told_error ? error : told_error;
        }
    }
    return sink.send(client, pieces, count);
}

/* Adds the time since `began_us` to `*sum`. */
static void add_turn(struct turns *turns, size_t i, double *sum, double began_us)
{
    double spent_us = measure_cpu_us() - began_us;

    *sum += spent_us;
    turns_note(turns, i, spent_us);
}

static struct row measure(unsigned of, struct turns *turns)
{
    const struct count_question question = {
        .bucket_ms = BUCKET_MS, .trends = {.window_ms = of ? 300000 : 0, .of = of, .limit = 20}};
    struct metrics_board *board = check(metrics_board_new(1));
    struct event_decoder *decoder = check(event_decoder_new(1 << 20));
    struct transport transport = sink;
    struct client client = {.transport = &transport, .format = FORMAT_NDJSON, .question = question};
    struct sl_filter_text text = {.firehose = true, .types = SL_SLICE("post")};
    uint64_t previous = 0, told = 0, next_ms;
    struct sl_filter_error error;
    struct sl_filter *filter;
    struct deliver *deliver;
    struct row row = {0};
    uv_loop_t loop;
    int r;

    uv_loop_init(&loop);
    transport.send = take;
    state = 1;
    next_ms = began_ms + 2 * BUCKET_MS;
    deliver = check(deliver_new(&(struct deliver_settings){.loop = &loop,
                                                           .metrics = metrics_slot(board, 0),
                                                           .max_owed_bytes = 1 << 20,
                                                           .max_event_bytes = 1 << 30,
                                                           .max_home_bytes = 1 << 30,
                                                           .ring_bytes = 16 << 20,
                                                           .max_lag_ms = 3600000}));
    deliver_begin_shard(deliver, 0, 0); /* an empty log */
    if (sl_filter_new(&text, &SL_FILTER_LIMITS_DEFAULT, &filter, &error) < 0)
        measure_fail("filter", NULL);
    r = deliver_subscribe(deliver, &client, filter, -1);
    if (r == 0 && !of)
        r = deliver_resume(deliver, &client, &(struct sl_cursor){.id = deliver_closed(deliver)});
    if (r < 0)
        measure_fail("memory", NULL);
    for (int i = 0; i < 10000; i++)
        uv_run(&loop, UV_RUN_NOWAIT); /* until it is live */
    for (size_t i = 0; i < event_count; i++) {
        struct event *event = make_event(decoder, i, previous);
        double began_us;

        previous = event->id;
        if (sl_id_time_ms(event->id) >= next_ms) {
            told_error = 0;
            began_us = measure_cpu_us();
            deliver_set_watermark(deliver, sl_id_first_at(next_ms) - 1);
            deliver_turn_end(deliver);
            add_turn(turns, event_count + ++told, &row.told_us, began_us);
            next_ms += BUCKET_MS;
        }
        if (uv_backend_timeout(&loop) == 0) { /* there is more to send */
            began_us = measure_cpu_us();
            uv_run(&loop, UV_RUN_NOWAIT);
            add_turn(turns, event_count + told, &row.told_us, began_us);
        }
        began_us = measure_cpu_us();
        deliver_event(deliver, event);
        add_turn(turns, i, &row.post_us, began_us);
        event_unref(event);
    }
    row.post_us /= (double)event_count;
    row.told_us = told ? row.told_us / (double)told : 0;
    row.heap = mallinfo2().uordblks;
    row.error = told_error;
    deliver_leave(&client);
    sl_filter_unref(filter);
    deliver_free(deliver);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    event_decoder_free(decoder);
    metrics_board_free(board);
    return row;
}

static struct row measure_rounds(unsigned of, struct turns *turns)
{
    struct row best = {0};

    for (size_t round = 0; round < round_count; round++) {
        struct row row = measure(of, turns);

        turns_end_round(turns);
        best.post_us = round == 0 ? row.post_us : fmin(best.post_us, row.post_us);
        best.told_us = round == 0 ? row.told_us : fmin(best.told_us, row.told_us);
        best.heap = row.heap;
        best.error = row.error;
    }
    return best;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        unsigned of;
    } rows[] = {{"counts", 0},
                {"trends of hashtags", 1 << TREND_OF_HASHTAGS},
                {"trends of words", 1 << TREND_OF_WORDS},
                {"trends of all five", (1 << TREND_OF_COUNT) - 1}};
    struct turns turns[sizeof(rows) / sizeof(rows[0])];
    uint64_t heap = 0;
    int option;

    while ((option = getopt(argc, argv, "e:r:o:")) != -1) {
        size_t number = option == '?' ? 0 : strtoul(optarg, NULL, 10);

        if (number == 0)
            return 2;
        *(option == 'e' ? &event_count : option == 'r' ? &events_a_second : &round_count) = number;
    }
    began_ms = clock_wall_ms() / BUCKET_MS * BUCKET_MS;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        turns_begin(&turns[i], event_count + 2 + event_count * 1000 / events_a_second / BUCKET_MS);
    printf("| of all posts | us of CPU a post | ms to send | longest turn, ms | turns over 1 ms "
           "| MiB | error |\n|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct row row = measure_rounds(rows[i].of, &turns[i]);

        heap = i == 0 ? row.heap : heap;
        printf("| %s | %.2f | %.2f | %.2f | %zu | %.1f | %" PRIu64 " |\n", rows[i].name,
               row.post_us, row.told_us / 1000, turns_longest_us(&turns[i]) / 1000,
               turns_over(&turns[i], 1000), ((double)row.heap - (double)heap) / (1 << 20),
               row.error);
        fflush(stdout);
        turns_end(&turns[i]);
    }
    return 0;
}
