/* home_task.c - fan-out, merge, gain and backfill, each in steps that are short for Redis.
 *
 * Fan-out processes an author's followers in batches of 500, and saves its position after each
 * batch, so that it continues there after a crash. Merge makes one call to each shard; gain is one
 * call. Backfill reads the missing posts of a timeline from all shards (home_merge.h) and adds
 * them. If the set of authors changes meanwhile it tries again, five times at most. All of them may
 * run twice without harm. */
#include "src/tasks/home_task.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "src/call/reply_read.h"
#include "src/call/shard_calls_build.h"
#include "src/call/write_build.h"
#include "src/home/home_merge.h"
#include "src/model/id.h"

enum {
    BATCH_FOLLOWERS = 500, /* in one call, to limit the time of Redis */
    FILL_TRIES = 5,        /* if the set of authors changes while their posts are read */
};

/* ---- fan out ---- */

struct fan_out {
    struct sl_worker_thread *thread;
    const struct sl_task *task;
    const char *mode; /* of fan_out.lua and home_apply.lua */
    uint64_t post, author;
    char from[32]; /* position of the next batch; empty: there is none */
};

static int batch_call(struct sl_call *call, const struct fan_out *fan, struct failure *reterr)
{
    sl_call_begin_repeatable(call, &sl_script_fan_out, sl_id_shard(fan->author),
                             sl_worker_thread_meta(fan->thread)->shards);
    sl_call_add_str(call, fan->mode);
    sl_call_add_id(call, fan->post);
    sl_call_add_id(call, fan->author);
    sl_call_add_str(call, fan->from);
    sl_call_add_id(call, BATCH_FOLLOWERS);
    return sl_call_finish(call, reterr);
}

/* Adds the readers in elements `1` and on of the batch's reply, each with its follow, to the calls
 * to their shards. */
static int apply_calls(struct sl_shard_calls *calls, const struct fan_out *fan,
                       const redisReply *batch, struct failure *reterr)
{
    const struct sl_meta *meta = sl_worker_thread_meta(fan->thread);
    uint64_t reader, since;
    bool is_new;
    int r;

    r = sl_shard_calls_begin(calls, meta, batch->elements / 2, reterr);
    for (size_t i = 1; r == 0 && i < batch->elements; i += 2) {
        struct sl_call *call;

        r = sl_reply_read_id(batch, i, &reader, reterr);
        if (r == 0)
            r = sl_reply_read_id(batch, i + 1, &since, reterr);
        if (r == 0 && sl_id_shard(reader) >= meta->shards)
            r = sl_reply_unexpected(reterr);
        if (r < 0)
            break;
        call = sl_shard_calls_next(calls, sl_id_shard(reader), &is_new);
        if (is_new) {
            sl_call_begin_repeatable(call, &sl_script_home_apply, sl_id_shard(reader),
                                     meta->shards);
            sl_call_add_str(call, fan->mode);
            sl_call_add_id(call, fan->post);
            sl_call_add_id(call, fan->author);
            sl_call_add_id(call, fan->task->id);
        }
        sl_call_add_id(call, reader);
        sl_call_add_id(call, since);
    }
    return sl_shard_calls_finish(calls, r, reterr);
}

static int run_all(struct sl_worker_thread *thread, struct sl_call *calls, size_t count,
                   struct failure *reterr)
{
    redisReply **replies = mem_zalloc(mem_array_size(count, sizeof(*replies)));
    int r;

    if (!replies)
        return failure_set(reterr, -ENOMEM, "out of memory");
    r = count > 0 ? sl_worker_thread_call_many(thread, calls, count, replies, reterr) : 0;
    for (size_t i = 0; i < count; i++) {
        if (r == 0)
            r = sl_reply_check(replies[i], reterr);
        freeReplyObject(replies[i]);
    }
    mem_free(replies);
    return r;
}

static int take_position(struct fan_out *fan, struct sl_slice position, struct failure *reterr)
{
    if (!position.data || position.size >= sizeof(fan->from))
        return sl_reply_unexpected(reterr);
    snprintf(fan->from, sizeof(fan->from), "%.*s", SL_SLICE_ARG(position));
    return 0;
}

static int do_batch(struct fan_out *fan, struct failure *reterr)
{
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    struct sl_call call = SL_CALL_INIT;
    redisReply *batch = NULL;
    int r;

    r = sl_worker_thread_call(fan->thread, &call, batch_call(&call, fan, reterr), &batch, reterr);
    if (r == 0)
        r = sl_reply_check_array(batch, 1, reterr);
    if (r == 0)
        r = apply_calls(&calls, fan, batch, reterr);
    if (r == 0)
        r = run_all(fan->thread, calls.calls, calls.count, reterr);
    if (r == 0)
        r = take_position(fan, sl_reply_at(batch, 0), reterr);
    if (r == 0 && fan->from[0])
        r = sl_worker_thread_save(fan->thread, fan->task, sl_slice_str(fan->from), reterr);
    sl_shard_calls_done(&calls);
    freeReplyObject(batch);
    sl_call_done(&call);
    return r;
}

int sl_fan_out_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                        struct failure *reterr)
{
    struct fan_out fan = {.thread = thread, .task = task};
    struct sl_slice from = task->progress.size > 0 ? task->progress : sl_task_field(task, "from");
    int r;

    fan.mode = sl_slice_is(task->kind, "take_back") ? "take_back" : "push";
    r = sl_task_field_id(task, "post", &fan.post, reterr);
    if (r == 0)
        r = sl_task_field_id(task, "author", &fan.author, reterr);
    if (r == 0 && sl_id_shard(fan.author) >= sl_worker_thread_meta(thread)->shards)
        r = sl_reply_unexpected(reterr);
    if (r == 0)
        r = take_position(&fan, from, reterr);
    while (r == 0 && fan.from[0])
        r = do_batch(&fan, reterr);
    return r;
}

/* ---- merge ---- */

static int merge_calls(struct sl_shard_calls *calls, const struct sl_meta *meta, uint64_t author,
                       uint64_t since, struct failure *reterr)
{
    bool is_new;
    int r = sl_shard_calls_begin(calls, meta, meta->shards, reterr);

    for (uint32_t shard = 0; r == 0 && shard < meta->shards; shard++) {
        struct sl_call *call = sl_shard_calls_next(calls, shard, &is_new);

        sl_call_begin_repeatable(call, &sl_script_merge, shard, meta->shards);
        sl_call_add_id(call, author);
        sl_call_add_id(call, since);
    }
    return sl_shard_calls_finish(calls, r, reterr);
}

int sl_merge_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                      struct failure *reterr)
{
    struct sl_shard_calls calls = SL_SHARD_CALLS_INIT;
    uint64_t author;
    int r;

    r = sl_task_field_id(task, "author", &author, reterr);
    if (r == 0)
        r = merge_calls(&calls, sl_worker_thread_meta(thread), author, task->id, reterr);
    if (r == 0)
        r = run_all(thread, calls.calls, calls.count, reterr);
    sl_shard_calls_done(&calls);
    return r;
}

/* ---- gain ---- */

static int gain_call(struct sl_call *call, const struct sl_meta *meta, const struct sl_task *task,
                     struct failure *reterr)
{
    uint64_t reader, author;
    int r;

    r = sl_task_field_id(task, "user", &reader, reterr);
    if (r == 0)
        r = sl_task_field_id(task, "target", &author, reterr);
    if (r == 0 && sl_id_shard(reader) >= meta->shards)
        r = sl_reply_unexpected(reterr);
    if (r < 0)
        return r;
    sl_call_begin_repeatable(call, &sl_script_home_gain, sl_id_shard(reader), meta->shards);
    sl_call_add_id(call, reader);
    sl_call_add_id(call, author);
    return sl_call_finish(call, reterr);
}

int sl_gain_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                     struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;

    return sl_worker_thread_apply(
        thread, &call, gain_call(&call, sl_worker_thread_meta(thread), task, reterr), reterr);
}

/* ---- backfill ---- */

/* What home_missing.lua returns, in this order. */
struct missing {
    uint64_t version;
    bool is_all;
    struct sl_slice floor; /* a slice of the reply; empty: none */
    uint64_t size, above;
    struct buffer wanted, merged; /* of uint64_t */
};

static int read_missing(const redisReply *reply, struct missing *missing, struct failure *reterr)
{
    int r;

    r = sl_reply_read_id(reply, 0, &missing->version, reterr);
    if (r == 0)
        r = sl_reply_read_flag(reply, 1, &missing->is_all, reterr);
    missing->floor = sl_reply_at(reply, 2);
    if (r == 0)
        r = sl_reply_read_number(reply, 3, &missing->size, reterr);
    if (r == 0)
        r = sl_reply_read_number(reply, 4, &missing->above, reterr);
    if (r == 0)
        r = sl_home_merge_read_ids(reply, 5, &missing->wanted, reterr);
    if (r == 0)
        r = sl_home_merge_read_ids(reply, 6, &missing->merged, reterr);
    return r;
}

static int ask_due(struct sl_worker_thread *thread, struct sl_home_merge *merge,
                   struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    int r = 0;

    for (size_t i = 0; r == 0 && i < merge->source_count; i++) {
        redisReply *reply = NULL;

        if (!merge->sources[i].is_due)
            continue;
        r = sl_worker_thread_call(thread, &call, sl_home_merge_call(merge, i, &call, reterr),
                                  &reply, reterr);
        if (r == 0)
            r = sl_home_merge_take(merge, i, reply, reterr);
        freeReplyObject(reply);
    }
    sl_call_done(&call);
    return r;
}

static int compare_ids(const void *a, const void *b)
{
    const uint64_t *left = a, *right = b;

    return *left < *right ? -1 : *left > *right;
}

static const uint64_t *ids_of(const struct buffer *ids, size_t *ret_count)
{
    *ret_count = ids->size / sizeof(uint64_t);
    return (const uint64_t *)(const void *)ids->data;
}

static int compare_settled(const void *a, const void *b)
{
    const struct sl_home_settled *left = a, *right = b;

    return compare_ids(&left->author, &right->author);
}

static struct sl_home_settled *settled_of(const struct sl_home_merge *merge, size_t *ret_count)
{
    *ret_count = merge->settled.size / sizeof(struct sl_home_settled);
    return (struct sl_home_settled *)(void *)merge->settled.data;
}

/* They are sorted at this point. */
static bool is_settled(const struct sl_home_merge *merge, uint64_t author)
{
    const struct sl_home_settled wanted = {.author = author};
    size_t count;
    const struct sl_home_settled *settled = settled_of(merge, &count);

    return count > 0 && bsearch(&wanted, settled, count, sizeof(wanted), compare_settled);
}

/* Authors whose posts are merged by reads need no backfill. */
static int settle_merged(struct sl_home_merge *merge, const struct buffer *merged,
                         struct failure *reterr)
{
    struct sl_home_settled *settled;
    size_t count;
    const uint64_t *ids = ids_of(merged, &count);

    for (size_t i = 0; i < count; i++)
        buffer_append(&merge->settled, &(struct sl_home_settled){.author = ids[i]},
                      sizeof(struct sl_home_settled));
    if (merge->settled.failed)
        return failure_set(reterr, -ENOMEM, "out of memory");
    settled = settled_of(merge, &count);
    if (count > 0)
        qsort(settled, count, sizeof(settled[0]), compare_settled);
    return 0;
}

static void add_list(struct sl_call *call, const uint64_t *ids, size_t count)
{
    sl_call_add_id(call, count);
    for (size_t i = 0; i < count; i++)
        sl_call_add_id(call, ids[i]);
}

/* The authors that were asked and are not settled. */
static int unsettled_of(const struct missing *missing, const struct sl_home_merge *merge,
                        struct buffer *ret_ids, struct failure *reterr)
{
    size_t count;
    const uint64_t *wanted = ids_of(&missing->wanted, &count);

    for (size_t i = 0; i < count; i++) {
        if (!is_settled(merge, wanted[i]))
            buffer_append(ret_ids, &wanted[i], sizeof(wanted[i]));
    }
    return ret_ids->failed ? failure_set(reterr, -ENOMEM, "out of memory") : 0;
}

static int fill_call(struct sl_call *call, const struct missing *missing,
                     struct sl_home_merge *merge, const struct buffer *unsettled,
                     struct failure *reterr)
{
    const struct sl_home_settled *settled;
    uint64_t whole_above = 0;
    const uint64_t *ids;
    size_t count;

    if (merge->row_count >= merge->limit)
        whole_above = merge->rows[merge->row_count - 1].post.id - 1;
    sl_call_begin_repeatable(call, &sl_script_home_fill, sl_id_shard(merge->reader),
                             merge->meta.shards);
    sl_call_add_id(call, merge->reader);
    sl_call_add_id(call, missing->version);
    sl_call_add_str(call, missing->is_all ? "1" : "0");
    sl_call_add(call, missing->floor);
    sl_call_add_id(call, whole_above);
    settled = settled_of(merge, &count);
    sl_call_add_id(call, 2 * count);
    for (size_t i = 0; i < count; i++) {
        sl_call_add_id(call, settled[i].author);
        sl_call_add_id(call, settled[i].since);
    }
    ids = ids_of(unsettled, &count);
    add_list(call, ids, count);
    for (size_t i = 0; i < merge->row_count; i++) {
        if (!is_settled(merge, merge->rows[i].author))
            continue;
        sl_call_add_id(call, merge->rows[i].post.id);
        sl_call_add_id(call, merge->rows[i].author);
    }
    return sl_call_finish(call, reterr);
}

/* Reads the missing posts and adds them to the timeline. *ret_done: nothing has changed
 * meanwhile. */
static int fill(struct sl_worker_thread *thread, const struct missing *missing,
                struct sl_home_merge *merge, bool *ret_done, struct failure *reterr)
{
    struct buffer unsettled = BUFFER_INIT;
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    uint64_t result = 0;
    size_t count;
    const uint64_t *ids = ids_of(&missing->wanted, &count);
    int r;

    r = sl_home_merge_add(merge, ids, count, UINT64_MAX, reterr);
    while (r == 0 && sl_home_merge_plan(merge))
        r = ask_due(thread, merge, reterr);
    if (r == 0)
        r = settle_merged(merge, &missing->merged, reterr);
    if (r == 0)
        r = unsettled_of(missing, merge, &unsettled, reterr);
    if (r == 0)
        r = sl_worker_thread_call(
            thread, &call, fill_call(&call, missing, merge, &unsettled, reterr), &reply, reterr);
    if (r == 0)
        r = sl_reply_check(reply, reterr);
    if (r == 0 && reply->type != REDIS_REPLY_INTEGER)
        r = sl_reply_unexpected(reterr);
    if (r == 0)
        result = (uint64_t)reply->integer;
    if (r == 0)
        *ret_done = result == 1;
    freeReplyObject(reply);
    sl_call_done(&call);
    buffer_done(&unsettled);
    return r;
}

static int fill_missing(struct sl_worker_thread *thread, uint64_t reader, const redisReply *reply,
                        bool *ret_done, struct failure *reterr)
{
    struct missing missing = {.version = 0};
    struct sl_home_merge merge = {.limit = 0};
    int r = sl_reply_check_array(reply, 0, reterr);

    if (r == 0 && reply->elements == 0) {
        *ret_done = true;
        return 0;
    }
    if (r == 0)
        r = read_missing(reply, &missing, reterr);
    if (r == 0) {
        merge = (struct sl_home_merge){.meta = *sl_worker_thread_meta(thread),
                                       .reader = reader,
                                       .after = missing.above,
                                       .limit = missing.size,
                                       .is_settling = true};
        r = fill(thread, &missing, &merge, ret_done, reterr);
    }
    sl_home_merge_done(&merge);
    buffer_done(&missing.wanted);
    buffer_done(&missing.merged);
    return r;
}

static int missing_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                        struct failure *reterr)
{
    if (sl_id_shard(reader) >= meta->shards)
        return sl_reply_unexpected(reterr);
    sl_call_begin_repeatable(call, &sl_script_home_missing, sl_id_shard(reader), meta->shards);
    sl_call_add_id(call, reader);
    return sl_call_finish(call, reterr);
}

/* If the timeline changes faster than it can be read, the next read requests a backfill again. */
int sl_backfill_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                         struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    bool is_done = false;
    uint64_t reader;
    int r;

    r = sl_task_field_id(task, "user", &reader, reterr);
    for (int i = 0; r == 0 && !is_done && i < FILL_TRIES; i++) {
        redisReply *reply = NULL;

        r = sl_worker_thread_call(
            thread, &call, missing_call(&call, sl_worker_thread_meta(thread), reader, reterr),
            &reply, reterr);
        if (r == 0)
            r = fill_missing(thread, reader, reply, &is_done, reterr);
        freeReplyObject(reply);
    }
    sl_call_done(&call);
    return r;
}
