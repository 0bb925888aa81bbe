/* log_reader.c - reads a batch of a log with one command: XRANGE forward from a cursor, or
 * XREVRANGE backward.
 *
 * Each request stores what it asked for, to check the reply, and is freed with its answer. Entries
 * are passed on in the order of the log in both cases. A batch has at most LOG_BATCH_EVENTS
 * entries; the callers limit the number of outstanding batches. */
#include "gateway/intake/log_reader.h"

#include <errno.h>

#include "base/alloc.h"

struct log_reader {
    struct redis_commands *commands;
    struct sl_event_log_entry entries[LOG_BATCH_EVENTS]; /* of the current batch */
};

struct request {
    struct log_reader *reader;
    uint32_t shard;
    uint64_t after, to;
    bool is_back; /* the newest entry comes first */
    log_batch_fn done;
    void *owner;
};

struct log_reader *log_reader_new(struct redis_commands *commands)
{
    struct log_reader *reader = mem_zalloc(sizeof(*reader));

    if (reader)
        reader->commands = commands;
    return reader;
}

void log_reader_free(struct log_reader *reader)
{
    mem_free(reader);
}

static void hand_over(const struct request *request, const redisReply *reply, size_t count)
{
    struct sl_event_log_entry *entries = request->reader->entries;
    const struct log_batch batch = {
        .after = request->after,
        .to = request->to,
        .entries = entries,
        .count = count,
        .is_full = count == LOG_BATCH_EVENTS,
    };

    for (size_t i = 0; i < count; i++)
        entries[i] = sl_event_log_entry_at(reply, request->is_back ? count - 1 - i : i);
    request->done(request->owner, &batch, 0, NULL);
}

static void on_reply(void *owner, const redisReply *reply, const char *why)
{
    struct request *request = owner;
    struct failure failure = {""};
    size_t count = 0;
    int r = -EPIPE;

    if (reply && request->is_back)
        r = sl_event_log_back_reply(reply, request->shard, request->to, &count, &failure);
    else if (reply)
        r = sl_event_log_range_reply(reply, request->shard, request->after, request->to, &count,
                                     &failure);
    if (r == 0 && count > LOG_BATCH_EVENTS)
        r = failure_set(&failure, -EBADMSG, "Redis returned more of the log than requested");
    if (r == 0)
        hand_over(request, reply, count);
    else
        request->done(request->owner, NULL, r, reply ? failure.text : why);
    mem_free(request);
}

static int run(const struct request *settings)
{
    struct sl_call call = SL_CALL_INIT;
    struct request *request = mem_copy(settings, sizeof(*settings));
    int r;

    if (!request)
        return -ENOMEM;
    if (request->is_back)
        r = sl_event_log_back_call(&call, request->shard, request->to, LOG_BATCH_EVENTS, NULL);
    else
        r = sl_event_log_range_call(&call, request->shard, request->after, request->to,
                                    LOG_BATCH_EVENTS, NULL);
    if (r == 0)
        r = redis_commands_run_take(request->reader->commands, &call, on_reply, request);
    if (r < 0) {
        sl_call_done(&call);
        mem_free(request);
        return -ENOMEM;
    }
    return 0;
}

int log_reader_read(struct log_reader *reader, uint32_t shard, uint64_t after, uint64_t to,
                    log_batch_fn done, void *owner)
{
    return run(&(struct request){reader, shard, after, to, false, done, owner});
}

int log_reader_read_back(struct log_reader *reader, uint32_t shard, uint64_t to, log_batch_fn done,
                         void *owner)
{
    return run(&(struct request){reader, shard, 0, to, true, done, owner});
}
