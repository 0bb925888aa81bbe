/* bench/counting.c - what does counting cost compared with matching alone, and how many bytes does
 * it save?
 *
 *     counting [-c CLIENTS] [-e EVENTS] [-r EVENTS_A_SECOND] [-b BUCKET_MS] [-o ROUNDS] [-w ROWS]
 *              [-t 1]
 *
 * EVENTS pass through delivery in one process, without Redis or sockets, two per turn of the loop:
 * without clients; with CLIENTS different filters that lead to lanes where nobody counts yet, which
 * is matching alone; with as many clients that count in buckets of BUCKET_MS (10000); with as many
 * that are sent the events; and with as many that count what is in a language, each excluding
 * another word, so that each event is counted by nearly all of them. A filter is a word of
 * 2 * CLIENTS, of which each post has two.
 *
 * The rows take turns: each is measured for a stretch as long as a bucket, from the middle of one
 * to the middle of the next, in which each client is sent one message. A row's time is compared
 * with that of matching alone in the same stretch, so whatever else the machine does happens to
 * both. Printed are medians over the stretches of ROUNDS (3), and the best; CPU time.
 *
 * -w 23 is the second and third row alone, for example; a single row is for callgrind. -t 1 also
 * prints the longest turn of the loop (turns.h), for which the clock is read twice per turn.
 *
 *     counting -c 1 -r 100 -b 1000
 *
 * shows how many bytes the counts of a second take, where a client would be sent 75 posts. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/stable_hash.h"
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
              round_count = 3, only_rows = 0, times_turns = 0;
static size_t stretch_events, stretch_count; /* in a round */
static struct event **events;                /* of one stretch */
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

static uint64_t id_of(size_t number)
{
    return sl_id_first_at(began_ms + number * 1000 / events_a_second) + number % SL_ID_PER_SHARD;
}

static struct event *event_of(size_t number)
{
    struct event_origin origin = {.id = id_of(number), .previous = number ? id_of(number - 1) : 0};
    uint64_t user = stable_hash(3 * number) >> 50;
    uint64_t one = stable_hash(3 * number + 1) % (2 * client_count);
    uint64_t other = stable_hash(3 * number + 2) % (2 * client_count);
    struct event *event;
    char json[512];
    int size = snprintf(json, sizeof(json),
                        "{\"id\":\"%" PRIu64 "\",\"type\":\"post\",\"post\":{\"id\":\"%" PRIu64
                        "\",\"user\":{\"id\":\"%" PRIu64 "\",\"login\":\"user\",\"name\":\"User\"},"
                        "\"text\":\"the quick word%" PRIu64 " fox jumps over the lazy word%" PRIu64
                        " and some more of what people write\",\"lang\":\"en\"}}",
                        origin.id, origin.id, user, one, other);

    if (event_decode(decoder, sl_slice(json, (size_t)size), &origin, &event, NULL) < 0)
        measure_fail("event", NULL);
    return event;
}

/* --- one row ---------------------------------------------------------------------------------- */

struct row {
    struct metrics_board *board;
    struct client *clients;
    struct deliver *deliver;
    uv_loop_t loop;
    double *stretch_us; /* CPU time of each, in all rounds */
    uint64_t bytes;     /* that all clients were sent in the last round */
    struct turns turns;
};

static void begin_round(struct row *row, enum who who)
{
    row->board = check(metrics_board_new(1));
    row->clients = check(calloc(client_count, sizeof(*row->clients)));
    uv_loop_init(&row->loop);
    row->deliver =
        check(deliver_new(&(struct deliver_settings){.loop = &row->loop,
                                                     .metrics = metrics_slot(row->board, 0),
                                                     .max_owed_bytes = 1 << 20,
                                                     .max_event_bytes = 1 << 30,
                                                     .max_home_bytes = 1 << 30,
                                                     .ring_bytes = 16 << 20,
                                                     .max_lag_ms = 3600000}));
    deliver_begin_shard(row->deliver, 0, sl_id_first_at(began_ms) - 1);
    for (size_t i = 0; who != NOBODY && i < client_count; i++)
        subscribe(row->deliver, &row->clients[i], i, who);
    for (size_t i = 0; i < client_count; i++)
        uv_run(&row->loop, UV_RUN_NOWAIT); /* until all are live */
}

static uint64_t sent_bytes(const struct row *row)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < client_count; i++)
        bytes += row->clients[i].sent_bytes;
    return bytes;
}

static void end_round(struct row *row, enum who who)
{
    row->bytes = sent_bytes(row) - row->bytes;
    for (size_t i = 0; who != NOBODY && i < client_count; i++)
        deliver_leave(&row->clients[i]);
    deliver_free(row->deliver);
    uv_run(&row->loop, UV_RUN_DEFAULT);
    uv_loop_close(&row->loop);
    metrics_board_free(row->board);
    free(row->clients);
    turns_end_round(&row->turns);
}

/* One iteration of the loop: first what is left to do, then what has arrived. */
static void turn(struct row *row, size_t number, struct event **arrived, size_t count)
{
    double began_us = times_turns ? measure_cpu_us() : 0;

    if (uv_backend_timeout(&row->loop) == 0)
        uv_run(&row->loop, UV_RUN_NOWAIT);
    for (size_t i = 0; i < count; i++)
        deliver_event(row->deliver, arrived[i]);
    deliver_turn_end(row->deliver);
    if (times_turns)
        turns_note(&row->turns, number, measure_cpu_us() - began_us);
}

/* Not inlined, for callgrind --toggle-collect=pass_events. */
__attribute__((noinline)) static double pass_events(struct row *row, size_t from, size_t count)
{
    double began_us = measure_cpu_us();

    for (size_t i = 0; i < count; i += TURN_EVENTS)
        turn(row, (from + i) / TURN_EVENTS, &events[i],
             count - i < TURN_EVENTS ? count - i : TURN_EVENTS);
    return measure_cpu_us() - began_us;
}

/* Events are decoded for each row anew, because they keep their frames. Returns the CPU time that
 * they took after that. */
static double pass_stretch(struct row *row, size_t from, size_t count)
{
    double us;

    for (size_t i = 0; i < count; i++)
        events[i] = event_of(from + i);
    us = pass_events(row, from, count);
    for (size_t i = 0; i < count; i++)
        event_unref(events[i]);
    return us;
}

/* --- all rows --------------------------------------------------------------------------------- */

static struct row rows[WHO_COUNT];

static bool is_shown(enum who who)
{
    for (size_t rest = only_rows; rest > 0; rest /= 10) {
        if (rest % 10 == who + 1)
            return true;
    }
    return only_rows == 0;
}

static void measure(size_t round)
{
    const size_t half = stretch_events / 2;

    for (enum who who = NOBODY; who < WHO_COUNT; who++) {
        if (!is_shown(who))
            continue;
        begin_round(&rows[who], who);
        pass_stretch(&rows[who], 0, half);
        rows[who].bytes = sent_bytes(&rows[who]);
    }
    for (size_t i = 0; i < stretch_count; i++) {
        const size_t from = half + i * stretch_events;

        for (enum who who = NOBODY; who < WHO_COUNT; who++) {
            if (is_shown(who))
                rows[who].stretch_us[round * stretch_count + i] =
                    pass_stretch(&rows[who], from, stretch_events);
        }
    }
    for (enum who who = NOBODY; who < WHO_COUNT; who++) {
        if (is_shown(who))
            end_round(&rows[who], who);
    }
}

static void print_row(const char *name, struct row *row, const struct row *matched,
                      const struct row *sent)
{
    size_t count = round_count * stretch_count;
    double *compared = check(calloc(count, sizeof(*compared)));

    for (size_t i = 0; i < count; i++)
        compared[i] = row->stretch_us[i] / matched->stretch_us[i];
    printf("| %s | %.2f |", name, measure_share(compared, count, 0.5));
    memcpy(compared, row->stretch_us, count * sizeof(*compared));
    printf(" %.2f | %.2f | %" PRIu64 " | %.4f | %.0f |\n",
           measure_share(compared, count, 0.5) / (double)stretch_events,
           measure_share(compared, count, 0) / (double)stretch_events, row->bytes / client_count,
           sent->bytes ? (double)row->bytes / (double)sent->bytes : 0,
           turns_longest_us(&row->turns));
    free(compared);
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"heard, by nobody", "matched", "counted", "sent",
                                        "counted, lang:en -WORD"};
    size_t *const numbers[] = {&client_count, &event_count, &events_a_second, &bucket_ms,
                               &round_count,  &only_rows,   &times_turns};
    static const char options[] = "cerbowt";
    int option;

    while ((option = getopt(argc, argv, "c:e:r:b:o:w:t:")) != -1) {
        size_t number = option == '?' ? 0 : strtoul(optarg, NULL, 10);

        if (number == 0)
            return 2;
        *numbers[strchr(options, option) - options] = number;
    }
    stretch_events = events_a_second * bucket_ms / 1000;
    stretch_count = stretch_events ? event_count / stretch_events : 0;
    if (stretch_count == 0)
        measure_fail("-e", "fewer events than in a bucket");
    decoder = check(event_decoder_new(1 << 20));
    events = check(calloc(stretch_events, sizeof(struct event *)));
    began_ms = clock_wall_ms() / bucket_ms * bucket_ms - 360 * bucket_ms;
    for (enum who who = NOBODY; who < WHO_COUNT; who++) {
        rows[who].stretch_us = check(calloc(round_count * stretch_count, sizeof(double)));
        turns_begin(&rows[who].turns, ((stretch_count + 1) * stretch_events) / TURN_EVENTS + 1);
    }
    for (size_t round = 0; round < round_count; round++)
        measure(round);
    printf("| events are | compared with matching alone | us of CPU an event | at best | "
           "bytes a client | share of the events | us of the longest turn |\n"
           "|---|---|---|---|---|---|---|\n");
    for (enum who who = NOBODY; who < WHO_COUNT; who++) {
        struct row *row = &rows[who];

        if (is_shown(who))
            print_row(names[who], row, is_shown(MATCHED) ? &rows[MATCHED] : row,
                      is_shown(SENT) ? &rows[SENT] : row);
    }
    return 0;
}
