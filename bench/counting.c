/* bench/counting.c - what does counting cost compared with matching alone, and how many bytes does
 * it save?
 *
 *     counting [-c CLIENTS] [-e EVENTS] [-r EVENTS_A_SECOND] [-b BUCKET_MS] [-o ROUNDS] [-w ROW]
 *              [-t 1]
 *
 * EVENTS are decoded, then pass through delivery in one process, without Redis or sockets, two per
 * turn of the loop: without clients; with CLIENTS different filters that lead to lanes where nobody
 * counts yet, which is matching alone; with as many clients that count in buckets of BUCKET_MS
 * (10000); with as many that are sent the events; and with as many that count what is in a
 * language, each excluding another word, so that each event is counted by nearly all of them. A
 * filter is a word of 2 * CLIENTS, of which each post has two. Rows: CPU time per event, and bytes
 * sent to a client. The best of ROUNDS (3), because other programs may use the machine. -w 1 is the
 * first row alone, -w 2 the second, for callgrind. -t 1 also prints the longest turn of the loop
 * (turns.h), for which the clock is read twice per turn.
 *
 *     counting -c 1 -r 100 -b 1000
 *
 * shows how many bytes the counts of a second take, where a client would be sent 75 posts. */
#include <inttypes.h>
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

enum { TURN_EVENTS = 2 };

enum who { NOBODY, MATCHED, COUNTED, SENT, COUNTED_WIDE, WHO_COUNT };

static size_t event_count = 20000, client_count = 1000, events_a_second = 1000, bucket_ms = 10000,
              round_count = 3, only_row = 0, times_turns = 0;
static struct event **events;
static struct event_decoder *decoder;
static uint64_t began_ms;

static void *check(void *memory)
{
    if (!memory)
        measure_fail("memory", NULL);
    return memory;
}

/* --- clients ---------------------------------------------------------------------------------- */

static struct sl_filter *filter_of(size_t number, enum who who)
{
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct sl_filter_text text = {0};
    struct sl_filter *filter;
    char rule[32];

    snprintf(rule, sizeof(rule), who == COUNTED_WIDE ? "lang:en -word%zu" : "word%zu", number);
    text.rule = sl_slice_str(rule);
    limits.allows_wide = who == COUNTED_WIDE;
    if (sl_filter_new(&text, &limits, &filter, NULL) < 0)
        measure_fail("filter", NULL);
    return filter;
}

static void subscribe(struct deliver *deliver, struct client *client, size_t number, enum who who)
{
    const struct count_question question = {.bucket_ms = bucket_ms};
    const struct sl_cursor before = {.id = deliver_closed(deliver)};
    struct sl_filter *filter = filter_of(number, who);
    int r;

    *client = (struct client){.transport = &sink, .format = FORMAT_NDJSON};
    if (who != SENT)
        client->question = question;
    r = deliver_subscribe(deliver, client, filter, -1);
    if (r == 0 && (who == COUNTED || who == COUNTED_WIDE))
        r = deliver_resume(deliver, client, &before);
    if (r < 0)
        measure_fail("memory", NULL);
    sl_filter_unref(filter);
}

/* --- events ----------------------------------------------------------------------------------- */

/* Frees the previous ones, with what is stored with them. */
static void decode_all(void)
{
    uint64_t random = 1;

    for (size_t i = 0; events && i < event_count; i++)
        event_unref(events[i]);
    free(events);
    events = check(calloc(event_count, sizeof(struct event *)));
    began_ms = clock_wall_ms() / 10000 * 10000 - 3600000;
    for (size_t i = 0; i < event_count; i++) {
        struct event_origin origin = {
            .id = sl_id_first_at(began_ms + i * 1000 / events_a_second) + i % SL_ID_PER_SHARD,
            .previous = i ? events[i - 1]->id : 0,
        };
        char json[512];
        int size;

        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        size = snprintf(json, sizeof(json),
                        "{\"id\":\"%" PRIu64 "\",\"type\":\"post\",\"post\":{\"id\":\"%" PRIu64
                        "\",\"user\":{\"id\":\"%" PRIu64 "\",\"login\":\"user\",\"name\":\"User\"},"
                        "\"text\":\"the quick word%" PRIu64 " fox jumps over the lazy word%" PRIu64
                        " and some more of what people write\",\"lang\":\"en\"}}",
                        origin.id, origin.id, random >> 50, (random >> 33) % (2 * client_count),
                        (random >> 20) % (2 * client_count));
        if (event_decode(decoder, sl_slice(json, (size_t)size), &origin, &events[i], NULL) < 0)
            measure_fail("event", NULL);
    }
}

/* --- one row ---------------------------------------------------------------------------------- */

struct row {
    double event_us; /* CPU time */
    uint64_t bytes;  /* that all clients were sent */
};

/* Two events, and what is to be gone on with. */
static void turn(struct deliver *deliver, uv_loop_t *loop, size_t from, struct turns *turns)
{
    double began_us = times_turns ? measure_cpu_us() : 0;

    for (size_t i = from; i < from + TURN_EVENTS && i < event_count; i++)
        deliver_event(deliver, events[i]);
    deliver_turn_end(deliver);
    if (uv_backend_timeout(loop) == 0)
        uv_run(loop, UV_RUN_NOWAIT);
    if (times_turns)
        turns_note(turns, from / TURN_EVENTS, measure_cpu_us() - began_us);
}

static struct row measure(enum who who, struct turns *turns)
{
    struct metrics_board *board = check(metrics_board_new(1));
    struct client *clients = check(calloc(client_count, sizeof(*clients)));
    struct deliver *deliver;
    struct row row = {0};
    double began_us;
    uv_loop_t loop;

    uv_loop_init(&loop);
    deliver = check(deliver_new(&(struct deliver_settings){.loop = &loop,
                                                           .metrics = metrics_slot(board, 0),
                                                           .max_owed_bytes = 1 << 20,
                                                           .max_event_bytes = 1 << 30,
                                                           .max_home_bytes = 1 << 30,
                                                           .ring_bytes = 16 << 20,
                                                           .max_lag_ms = 3600000}));
    deliver_begin_shard(deliver, 0, sl_id_first_at(began_ms) - 1);
    for (size_t i = 0; who != NOBODY && i < client_count; i++)
        subscribe(deliver, &clients[i], i, who);
    for (size_t i = 0; i < client_count; i++)
        uv_run(&loop, UV_RUN_NOWAIT); /* until all are live */
    began_us = measure_cpu_us();
    for (size_t i = 0; i < event_count; i += TURN_EVENTS)
        turn(deliver, &loop, i, turns);
    deliver_set_watermark(deliver, sl_id_first_at(began_ms + event_count * 1000 / events_a_second));
    deliver_flush_all(deliver);
    row.event_us = (measure_cpu_us() - began_us) / (double)event_count;
    for (size_t i = 0; who != NOBODY && i < client_count; i++) {
        row.bytes += clients[i].sent_bytes;
        deliver_leave(&clients[i]);
    }
    deliver_free(deliver);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    metrics_board_free(board);
    free(clients);
    return row;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"heard, by nobody", "matched", "counted", "sent",
                                        "counted, lang:en -WORD"};
    size_t *const numbers[] = {&client_count, &event_count, &events_a_second, &bucket_ms,
                               &round_count,  &only_row,    &times_turns};
    static const char options[] = "cerbowt";
    struct row best[WHO_COUNT] = {0};
    struct turns turns[WHO_COUNT];
    int option;

    while ((option = getopt(argc, argv, "c:e:r:b:o:w:t:")) != -1) {
        size_t number = option == '?' ? 0 : strtoul(optarg, NULL, 10);

        if (number == 0)
            return 2;
        *numbers[strchr(options, option) - options] = number;
    }
    decoder = check(event_decoder_new(1 << 20));
    decode_all();
    for (enum who who = NOBODY; who < WHO_COUNT; who++)
        turns_begin(&turns[who], event_count / TURN_EVENTS + 1);
    for (int round = 0; round < (int)round_count; round++) {
        for (enum who who = NOBODY; who < WHO_COUNT; who++) {
            struct row row;

            if (only_row && who != only_row - 1)
                continue;
            row = measure(who, &turns[who]);
            turns_end_round(&turns[who]);
            decode_all(); /* events keep their frames */
            if (round == 0 || row.event_us < best[who].event_us)
                best[who] = row;
        }
    }
    printf("| events are | us of CPU an event | compared with matching alone | bytes a client | "
           "share of the events | us of the longest turn |\n|---|---|---|---|---|---|\n");
    for (enum who who = NOBODY; who < WHO_COUNT; turns_end(&turns[who++])) {
        const struct row *row = &best[who];

        if (only_row && who != only_row - 1)
            continue;
        printf("| %s | %.2f | %.2f | %" PRIu64 " | %.4f | %.0f |\n", names[who], row->event_us,
               row->event_us / best[only_row ? who : MATCHED].event_us, row->bytes / client_count,
               (double)row->bytes / (double)best[only_row ? who : SENT].bytes,
               turns_longest_us(&turns[who]));
    }
    return 0;
}
