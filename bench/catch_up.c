/* bench/catch_up.c - what does it cost to read an event back from the logs of many shards?
 *
 *     catch_up [-e EVENTS] [-c CLIENTS] [SHARDS]...
 *
 * The logs are arrays, and their events alternate: the next event is always of another shard, which
 * is the worst case for merging them. CLIENTS come one after the other, with a cursor before the
 * first event, and receive all EVENTS. Prints a row for each number of SHARDS: the CPU time per
 * event and client, including the batches that the first client decodes. For instructions:
 *
 *     valgrind --tool=callgrind --toggle-collect=catcher_read catch_up 64 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "bench/measure.h"
#include "bench/sink.h"
#include "filters/filter.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/log_cache.h"

enum { JSON_SIZE = 160, ROOM = 256 << 20 };

struct shard_log {
    struct sl_event_log_entry *entries;
    size_t count;
    bool is_asked;
    uint64_t after;
    log_batch_fn done;
    void *owner;
};

static struct shard_log logs[SL_SHARDS_MAX];
static uint32_t shards;
static char *texts;

/* --- logs ------------------------------------------------------------------------------------- */

static void *check(void *memory)
{
    if (!memory)
        measure_fail("memory", NULL);
    return memory;
}

static void fill_logs(size_t events)
{
    uint64_t began_ms = clock_wall_ms() - events;

    texts = check(malloc(events * JSON_SIZE));
    for (uint32_t shard = 0; shard < shards; shard++) {
        logs[shard].entries = check(calloc(events / shards + 1, sizeof(struct sl_event_log_entry)));
        logs[shard].count = 0;
    }
    for (size_t i = 0; i < events; i++) {
        struct shard_log *log = &logs[i % shards];
        uint64_t id = sl_id_first_at(began_ms + i) + i % shards * SL_ID_PER_SHARD;
        int size = snprintf(texts + i * JSON_SIZE, JSON_SIZE,
                            "{\"id\":\"%" PRIu64 "\",\"type\":\"post\",\"post\":{\"id\":\"%" PRIu64
                            "\",\"user\":{\"id\":\"1\"},\"text\":\"the quick brown fox\"}}",
                            id, id);

        log->entries[log->count] =
            (struct sl_event_log_entry){id, log->count ? log->entries[log->count - 1].id : 0,
                                        sl_slice(texts + i * JSON_SIZE, (size_t)size)};
        log->count++;
    }
}

static int ask(struct log_reader *reader, uint32_t shard, uint64_t after, uint64_t to,
               log_batch_fn done, void *owner)
{
    struct shard_log *log = &logs[shard];

    (void)reader;
    (void)to;
    log->is_asked = true;
    log->after = after;
    log->done = done;
    log->owner = owner;
    return 0;
}

static void answer_all(void)
{
    for (uint32_t shard = 0; shard < shards; shard++) {
        struct shard_log *log = &logs[shard];
        size_t first = 0;
        struct log_batch batch = {.after = log->after, .to = SL_ID_MAX};

        if (!log->is_asked)
            continue;
        log->is_asked = false;
        while (first < log->count && log->entries[first].id <= log->after)
            first++;
        batch.entries = log->entries + first;
        batch.count = log->count - first < LOG_BATCH_EVENTS ? log->count - first : LOG_BATCH_EVENTS;
        batch.is_full = batch.count == LOG_BATCH_EVENTS;
        log->done(log->owner, &batch, 0, NULL);
    }
}

/* --- a client that receives everything -------------------------------------------------------- */

static void read_back(uv_loop_t *loop, struct deliver *deliver, struct sl_filter *filter,
                      size_t events)
{
    struct client client = {.transport = &sink, .format = FORMAT_NDJSON};

    if (deliver_subscribe(deliver, &client, filter, -1) < 0 ||
        deliver_resume(deliver, &client, &(struct sl_cursor){.id = logs[0].entries[0].id - 1}) < 0)
        measure_fail("memory", NULL);
    while (client.sent_events < events) {
        answer_all();
        uv_run(loop, UV_RUN_NOWAIT);
        deliver_turn_end(deliver);
    }
    deliver_leave(&client);
}

/* --- one row ---------------------------------------------------------------------------------- */

static void measure(size_t events, unsigned clients)
{
    const struct sl_filter_text text = {.firehose = true};
    struct metrics_board *board = check(metrics_board_new(1));
    struct metrics *metrics = metrics_slot(board, 0);
    struct event_decoder *decoder = check(event_decoder_new(1 << 20));
    struct sl_filter_error error;
    struct sl_filter *filter;
    struct log_cache *cache;
    struct deliver *deliver;
    double began_us;
    uv_loop_t loop;

    uv_loop_init(&loop);
    fill_logs(events);
    cache = check(log_cache_new(&(struct log_cache_settings){.loop = &loop,
                                                             .metrics = metrics,
                                                             .read = ask,
                                                             .decoder = decoder,
                                                             .max_bytes = ROOM,
                                                             .retry_ms = 100}));
    deliver = check(deliver_new(&(struct deliver_settings){.loop = &loop,
                                                           .metrics = metrics,
                                                           .max_owed_bytes = 1 << 20,
                                                           .max_event_bytes = 1 << 30,
                                                           .max_home_bytes = 1 << 30,
                                                           .max_lag_ms = 3600000}));
    deliver_set_log(deliver, cache);
    for (uint32_t shard = 0; shard < shards; shard++)
        deliver_begin_shard(deliver, shard, logs[shard].entries[logs[shard].count - 1].id);
    if (sl_filter_new(&text, &SL_FILTER_LIMITS_DEFAULT, &filter, &error) < 0)
        measure_fail("filter", NULL);
    began_us = measure_cpu_us();
    for (unsigned i = 0; i < clients; i++)
        read_back(&loop, deliver, filter, events);
    printf("| %" PRIu32 " | %.0f |\n", shards,
           (measure_cpu_us() - began_us) * 1000 / (double)(events * clients));
    sl_filter_unref(filter);
    deliver_set_log(deliver, NULL);
    deliver_free(deliver);
    log_cache_free(cache);
    uv_run(&loop, UV_RUN_DEFAULT);
    uv_loop_close(&loop);
    event_decoder_free(decoder);
    metrics_board_free(board);
    for (uint32_t shard = 0; shard < shards; shard++)
        free(logs[shard].entries);
    free(texts);
}

int main(int argc, char **argv)
{
    static const char *const usual[] = {"1", "8", "64", NULL};
    unsigned clients = 2;
    size_t events = 32768;
    int option;

    while ((option = getopt(argc, argv, "e:c:")) != -1) {
        if (option == 'e')
            events = strtoul(optarg, NULL, 10);
        else if (option == 'c')
            clients = (unsigned)strtoul(optarg, NULL, 10);
        else
            return 2;
    }
    printf("| shards | ns an event |\n|---|---|\n");
    for (const char *const *at = argv[optind] ? (const char *const *)argv + optind : usual; *at;
         at++) {
        shards = (uint32_t)strtoul(*at, NULL, 10);
        if (shards < 1 || shards > SL_SHARDS_MAX || events < shards)
            measure_fail("1 to 64 shards, and an event for each", NULL);
        measure(events, clients);
    }
    return 0;
}
