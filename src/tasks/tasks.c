/* tasks.c - builders and parsers of the queue's calls: take, renew, done, failed, and those for
 * operators.
 *
 * The tasks of a reply become one array, whose slices point into the reply. Fields that a kind does
 * not know are ignored. A task that cannot be read at all is an error; one without an id is passed
 * to the worker, which reports it as failed. The caller limits how many are taken at once. */
#include "src/tasks/tasks.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "src/call/call_build.h"
#include "src/call/reply_read.h"
#include "src/model/id.h"
#include "src/model/keys.h"

static const char GROUP[] = "workers"; /* as in src/scripts/common.lua */

/* ---- a task ---- */

struct sl_slice sl_task_field(const struct sl_task *task, const char *name)
{
    for (size_t i = 0; i + 1 < task->fields->elements; i += 2) {
        if (sl_slice_is(sl_reply_at(task->fields, i), name))
            return sl_reply_at(task->fields, i + 1);
    }
    return SL_SLICE_NONE;
}

int sl_task_field_id(const struct sl_task *task, const char *name, uint64_t *ret_id,
                     struct failure *reterr)
{
    if (sl_id_parse(sl_task_field(task, name), ret_id) < 0)
        return failure_set(reterr, -EBADMSG, "the task has no usable '%s'", name);
    return 0;
}

/* ---- taking tasks ---- */

static void begin_read(struct sl_call *call, uint32_t shard, const char *consumer)
{
    sl_call_begin(call, shard, false);
    sl_call_add_str(call, "XREADGROUP");
    sl_call_add_str(call, "GROUP");
    sl_call_add_str(call, GROUP);
    sl_call_add_str(call, consumer);
    sl_call_add_str(call, "COUNT");
    sl_call_add_str(call, "1");
}

int sl_task_read_shard_call(struct sl_call *call, uint32_t shard, const char *consumer,
                            struct failure *reterr)
{
    char key[SL_KEY_SIZE];

    begin_read(call, shard, consumer);
    sl_call_add_str(call, "STREAMS");
    sl_call_add_str(call, sl_key(shard, "tasks", key));
    sl_call_add_str(call, ">");
    return sl_call_finish(call, reterr);
}

int sl_task_read_call(struct sl_call *call, const struct sl_meta *meta, const char *consumer,
                      uint32_t block_ms, struct failure *reterr)
{
    char key[SL_KEY_SIZE];

    begin_read(call, 0, consumer);
    if (block_ms > 0) {
        sl_call_add_str(call, "BLOCK");
        sl_call_add_id(call, block_ms);
    }
    sl_call_add_str(call, "STREAMS");
    for (uint32_t shard = 0; shard < meta->shards; shard++)
        sl_call_add_str(call, sl_key(shard, "tasks", key));
    for (uint32_t shard = 0; shard < meta->shards; shard++)
        sl_call_add_str(call, ">");
    return sl_call_finish(call, reterr);
}

static void begin(struct sl_call *call, const struct sl_script *script, uint32_t shard,
                  const struct sl_meta *meta)
{
    sl_call_begin_repeatable(call, script, shard, meta->shards);
}

int sl_task_claim_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                       const char *consumer, uint32_t lease_ms, uint32_t count,
                       struct failure *reterr)
{
    begin(call, &sl_script_task_claim, shard, meta);
    sl_call_add_str(call, consumer);
    sl_call_add_id(call, lease_ms);
    sl_call_add_id(call, count);
    return sl_call_finish(call, reterr);
}

/* {entry, {name, value, ...}, ...} */
static int read_task(const redisReply *reply, uint32_t shard, struct sl_task *ret_task)
{
    struct sl_task task = {.shard = shard, .tries = 1, .progress = SL_SLICE("")};

    if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 ||
        reply->element[1]->type != REDIS_REPLY_ARRAY)
        return -EBADMSG;
    task.entry = sl_reply_at(reply, 0);
    task.fields = reply->element[1];
    task.kind = sl_task_field(&task, "task");
    if (sl_task_field_id(&task, "id", &task.id, NULL) < 0)
        task.id = 0;
    if (reply->elements >= 5) {
        task.tries = (uint64_t)reply->element[2]->integer;
        task.is_exhausted = reply->element[3]->integer == 1;
        task.progress = sl_reply_at(reply, 4);
    }
    if (!task.entry.data || !task.progress.data)
        return -EBADMSG;
    *ret_task = task;
    return 0;
}

/* "sluice:{S}:tasks" */
static int read_stream_key(struct sl_slice key, uint32_t *ret_shard)
{
    char expected[SL_KEY_SIZE];

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        if (sl_slice_is(key, sl_key(shard, "tasks", expected))) {
            *ret_shard = shard;
            return 0;
        }
    }
    return -EBADMSG;
}

static int append_tasks(const redisReply *list, uint32_t shard, struct sl_task **tasks,
                        size_t *count, struct failure *reterr)
{
    struct sl_task *more;

    if (list->type != REDIS_REPLY_ARRAY)
        return sl_reply_unexpected(reterr);
    more = mem_realloc(*tasks, mem_array_size(*count + list->elements + 1, sizeof(*more)));
    if (!more)
        return failure_set(reterr, -ENOMEM, "out of memory");
    *tasks = more;
    for (size_t i = 0; i < list->elements; i++) {
        if (read_task(list->element[i], shard, &more[*count]) < 0)
            return sl_reply_unexpected(reterr);
        ++*count;
    }
    return 0;
}

/* {{key, {task, ...}}, ...} */
static int append_streams(const redisReply *reply, struct sl_task **tasks, size_t *count,
                          struct failure *reterr)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < reply->elements; i++) {
        const redisReply *stream = reply->element[i];
        uint32_t shard;

        if (stream->type != REDIS_REPLY_ARRAY || stream->elements != 2 ||
            read_stream_key(sl_reply_at(stream, 0), &shard) < 0)
            return sl_reply_unexpected(reterr);
        r = append_tasks(stream->element[1], shard, tasks, count, reterr);
    }
    return r;
}

int sl_tasks_reply(const struct redisReply *reply, uint32_t shard, struct sl_task **ret_tasks,
                   size_t *ret_count, struct failure *reterr)
{
    struct sl_task *tasks = NULL;
    size_t count = 0;
    int r;

    r = sl_reply_check(reply, reterr);
    if (r == -EIO && sl_slice_starts_with(sl_slice(reply->str, reply->len), SL_SLICE("NOGROUP")))
        return failure_set(reterr, -ENODATA, "a shard has no group of workers");
    if (r == 0 && reply->type != REDIS_REPLY_NIL) {
        r = sl_reply_check_array(reply, 0, reterr);
        if (r == 0)
            r = shard == SL_SHARDS_MAX ? append_streams(reply, &tasks, &count, reterr)
                                       : append_tasks(reply, shard, &tasks, &count, reterr);
    }
    if (r < 0) {
        mem_free(tasks);
        return r;
    }
    *ret_tasks = tasks;
    *ret_count = count;
    return 0;
}

void sl_tasks_free(struct sl_task *tasks)
{
    mem_free(tasks);
}

int sl_task_group_call(struct sl_call *call, uint32_t shard, struct failure *reterr)
{
    char key[SL_KEY_SIZE];

    sl_call_begin(call, shard, true);
    sl_call_add_str(call, "XGROUP");
    sl_call_add_str(call, "CREATE");
    sl_call_add_str(call, sl_key(shard, "tasks", key));
    sl_call_add_str(call, GROUP);
    sl_call_add_str(call, "0");
    sl_call_add_str(call, "MKSTREAM");
    return sl_call_finish(call, reterr);
}

/* ---- results ---- */

int sl_task_save_call(struct sl_call *call, const struct sl_meta *meta, const struct sl_task *task,
                      const char *consumer, struct sl_slice progress, struct failure *reterr)
{
    begin(call, &sl_script_task_save, task->shard, meta);
    sl_call_add_str(call, consumer);
    sl_call_add(call, task->entry);
    sl_call_add(call, progress);
    return sl_call_finish(call, reterr);
}

static int lost(struct failure *reterr)
{
    return failure_set(reterr, -ECANCELED, "another worker has taken the task over");
}

int sl_task_save_reply(const struct redisReply *reply, struct failure *reterr)
{
    int r = sl_reply_check(reply, reterr);

    if (r < 0)
        return r;
    if (reply->type != REDIS_REPLY_INTEGER)
        return sl_reply_unexpected(reterr);
    return reply->integer == 1 ? 0 : lost(reterr);
}

int sl_task_done_call(struct sl_call *call, const struct sl_meta *meta, const struct sl_task *task,
                      struct failure *reterr)
{
    begin(call, &sl_script_task_done, task->shard, meta);
    sl_call_add(call, task->entry);
    return sl_call_finish(call, reterr);
}

static int end_try(struct sl_call *call, const struct sl_script *script, const struct sl_meta *meta,
                   const struct sl_task *task, const char *consumer, uint32_t lease_ms,
                   const char *why, struct failure *reterr)
{
    begin(call, script, task->shard, meta);
    sl_call_add_str(call, consumer);
    sl_call_add(call, task->entry);
    sl_call_add_id(call, lease_ms);
    sl_call_add_str(call, why);
    return sl_call_finish(call, reterr);
}

int sl_task_fail_call(struct sl_call *call, const struct sl_meta *meta, const struct sl_task *task,
                      const char *consumer, uint32_t lease_ms, const char *why,
                      struct failure *reterr)
{
    return end_try(call, &sl_script_task_fail, meta, task, consumer, lease_ms, why, reterr);
}

int sl_task_put_off_call(struct sl_call *call, const struct sl_meta *meta,
                         const struct sl_task *task, const char *consumer, uint32_t lease_ms,
                         const char *why, struct failure *reterr)
{
    return end_try(call, &sl_script_task_put_off, meta, task, consumer, lease_ms, why, reterr);
}

int sl_task_fail_reply(const struct redisReply *reply, bool *ret_is_dead, struct failure *reterr)
{
    struct sl_slice answer;
    int r = sl_reply_check(reply, reterr);

    if (r < 0)
        return r;
    if (reply->type != REDIS_REPLY_STRING)
        return sl_reply_unexpected(reterr);
    answer = sl_slice(reply->str, reply->len);
    if (sl_slice_is(answer, "lost"))
        return lost(reterr);
    *ret_is_dead = sl_slice_is(answer, "dead");
    return 0;
}

/* ---- for operators ---- */

int sl_task_counts_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                        struct failure *reterr)
{
    begin(call, &sl_script_task_counts, shard, meta);
    return sl_call_finish(call, reterr);
}

int sl_task_counts_reply(const struct redisReply *reply, struct sl_task_counts *ret_counts,
                         struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 6, reterr);
    struct sl_slice why;

    if (r < 0)
        return r;
    for (size_t i = 0; i < 6; i++) {
        if (i == 4)
            continue;
        if (reply->element[i]->type != REDIS_REPLY_INTEGER || reply->element[i]->integer < 0)
            return sl_reply_unexpected(reterr);
    }
    why = sl_reply_at(reply, 4);
    if (!why.data)
        return sl_reply_unexpected(reterr);
    *ret_counts = (struct sl_task_counts){
        .tasks = (uint64_t)reply->element[0]->integer,
        .taken = (uint64_t)reply->element[1]->integer,
        .oldest_ms = (uint64_t)reply->element[2]->integer,
        .dead = (uint64_t)reply->element[3]->integer,
        .kept = (uint64_t)reply->element[5]->integer,
    };
    snprintf(ret_counts->archive_away, sizeof(ret_counts->archive_away), "%.*s", SL_SLICE_ARG(why));
    return 0;
}

static int list_call(struct sl_call *call, uint32_t shard, const char *stream, const char *after,
                     uint32_t count, struct failure *reterr)
{
    char key[SL_KEY_SIZE], from[64] = "-";

    if (after)
        snprintf(from, sizeof(from), "(%s", after);
    sl_call_begin(call, shard, true);
    sl_call_add_str(call, "XRANGE");
    sl_call_add_str(call, sl_key(shard, stream, key));
    sl_call_add_str(call, from);
    sl_call_add_str(call, "+");
    sl_call_add_str(call, "COUNT");
    sl_call_add_id(call, count);
    return sl_call_finish(call, reterr);
}

int sl_task_list_call(struct sl_call *call, uint32_t shard, const char *after, uint32_t count,
                      struct failure *reterr)
{
    return list_call(call, shard, "tasks", after, count, reterr);
}

int sl_dead_list_call(struct sl_call *call, uint32_t shard, const char *after, uint32_t count,
                      struct failure *reterr)
{
    return list_call(call, shard, "dead", after, count, reterr);
}

int sl_task_list_reply(const struct redisReply *reply, uint32_t shard, struct sl_task **ret_tasks,
                       size_t *ret_count, struct failure *reterr)
{
    return sl_tasks_reply(reply, shard, ret_tasks, ret_count, reterr);
}

int sl_dead_retry_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                       struct sl_slice entry, struct failure *reterr)
{
    sl_call_begin_script(call, &sl_script_task_retry, shard, meta->shards, SL_SLICE_NONE);
    sl_call_add(call, entry);
    return sl_call_finish(call, reterr);
}

int sl_dead_drop_call(struct sl_call *call, uint32_t shard, struct sl_slice entry,
                      struct failure *reterr)
{
    char key[SL_KEY_SIZE];

    sl_call_begin(call, shard, false);
    sl_call_add_str(call, "XDEL");
    sl_call_add_str(call, sl_key(shard, "dead", key));
    sl_call_add(call, entry);
    return sl_call_finish(call, reterr);
}

int sl_dead_reply(const struct redisReply *reply, struct failure *reterr)
{
    int r = sl_reply_check(reply, reterr);

    if (r < 0)
        return r;
    if (reply->type != REDIS_REPLY_INTEGER)
        return sl_reply_unexpected(reterr);
    if (reply->integer == 0)
        return failure_set(reterr, -ENOENT, "there is no such dead letter");
    return 0;
}
