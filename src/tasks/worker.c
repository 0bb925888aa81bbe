/* worker.c - threads that each take a task, run it, and report the result.
 *
 * A thread blocks on the streams of all shards at once, so one answer may contain a task of each
 * shard: it holds them all and runs one after the other (src/tasks/worker_thread.h). Once a second,
 * one of the threads asks all shards for tasks whose lease has expired.
 *
 * In a cluster a call cannot concern two shards, and a call that blocks on one needs its own
 * connection, which would make 64 for each worker. Therefore the shards are asked in turn, without
 * blocking, by one thread at a time; a thread that finds a task leaves the search to the next one.
 * While no shard has a task there is a pause after each turn, up to 250 ms. So a task may start
 * that much later, in exchange for only about 256 commands a second for each worker, over all
 * nodes. */
#include "src/tasks/worker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/hash.h"
#include "src/call/call_build.h"
#include "src/call/reply.h"
#include "src/database/settings.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/tasks/worker_archive.h"
#include "src/tasks/worker_thread.h"

enum {
    CONCURRENCY = 4,
    LEASE_MS = 30000,
    BLOCK_MS = 250,      /* how long a thread may take to notice that it must stop */
    LAST_MS = 10,        /* with until_empty: pauses while all tasks are held by others, or not
                            due */
    SEARCH_FIRST_MS = 5, /* in a cluster: pauses between two turns */
    SEARCH_LAST_MS = 250,
    CLAIM_EVERY_MS = 1000,
    CLAIM_COUNT = 4, /* tasks of a shard at once */
    DUE_USERS = 500, /* users checked for old posts, for each shard and second; takes less than a
                        millisecond */
    CACHE_TIMEOUT_MS = 1000,
    RETRY_MS = 1000, /* within a link; what takes longer counts as `away` */
};

/* ---- one task ---- */

static int run_kind(struct sl_worker_thread *thread, const struct sl_task *task,
                    struct failure *reterr)
{
    sl_task_run_fn run = sl_task_kind_find(task->kind);

    if (task->is_exhausted)
        return failure_set(reterr, -EIO, "its worker ended in the middle of it, again and again");
    if (!run)
        return failure_set(reterr, -ENOTSUP, "no kind of task is called '%.*s'",
                           SL_SLICE_ARG(task->kind));
    if (task->id == 0)
        return failure_set(reterr, -EBADMSG, "the task does not say of which operation it is");
    return run(thread, task, reterr);
}

static void conclude_done(struct sl_worker_thread *thread, const struct sl_task *task)
{
    redisReply *reply = NULL;
    struct failure failure;
    int r;

    r = sl_worker_thread_call_with_retries(
        thread, sl_task_done_call(&thread->call, &thread->worker->meta, task, &failure), &reply,
        &failure);
    if (r == 0)
        r = sl_reply_check(reply, &failure);
    freeReplyObject(reply);
    if (r == 0)
        sl_worker_thread_tell(thread, SL_WORKER_TASK_DONE, task, NULL);
    else
        sl_worker_thread_tell(thread, SL_WORKER_TASK_LATER, task, failure.text);
}

static void conclude_failed(struct sl_worker_thread *thread, const struct sl_task *task,
                            const struct failure *why)
{
    const struct sl_worker *worker = thread->worker;
    redisReply *reply = NULL;
    struct failure failure;
    bool is_dead = false;
    int r;

    r = (thread->is_put_off ? sl_task_put_off_call : sl_task_fail_call)(
        &thread->call, &worker->meta, task, thread->consumer, worker->options.lease_ms, why->text,
        &failure);
    r = sl_worker_thread_call_with_retries(thread, r, &reply, &failure);
    if (r == 0)
        r = sl_task_fail_reply(reply, &is_dead, &failure);
    freeReplyObject(reply);
    if (r == -ECANCELED)
        sl_worker_thread_tell(thread, SL_WORKER_TASK_LOST, task, NULL);
    else
        sl_worker_thread_tell(thread, is_dead ? SL_WORKER_TASK_DEAD : SL_WORKER_TASK_LATER, task,
                              why->text);
}

static void run_task(struct sl_worker_thread *thread, const struct sl_task *task)
{
    struct failure failure = {""};
    int r;

    do {
        thread->is_away = thread->is_put_off = false;
        r = run_kind(thread, task, &failure);
    } while (r < 0 && thread->is_away && sl_worker_thread_wait(thread, &failure));

    if (r == 0)
        conclude_done(thread, task);
    else if (r == -ECANCELED)
        sl_worker_thread_tell(thread, SL_WORKER_TASK_LOST, task, NULL);
    else if (!thread->is_away)
        conclude_failed(thread, task, &failure);
}

/* ---- taking tasks ---- */

static void pause_ms(uint32_t ms)
{
    struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

/* Runs the *ret_count tasks of an answer. */
static int run_tasks(struct sl_worker_thread *thread, const redisReply *reply, uint32_t shard,
                     size_t *ret_count, struct failure *reterr)
{
    int r = sl_tasks_reply(reply, shard, &thread->tasks, &thread->task_count, reterr);

    if (r < 0)
        return r;
    thread->renewed_ms = clock_monotonic_ms();
    for (thread->at = 0; thread->at < thread->task_count; thread->at++) {
        const struct sl_task *task = &thread->tasks[thread->at];

        if (task->entry.data)
            run_task(thread, task);
    }
    *ret_count = thread->task_count;
    sl_tasks_free(thread->tasks);
    thread->tasks = NULL;
    thread->task_count = thread->at = 0;
    return 0;
}

static int make_groups(struct sl_worker_thread *thread, struct failure *reterr)
{
    int r = 0;

    for (uint32_t shard = 0; r == 0 && shard < thread->worker->meta.shards; shard++) {
        redisReply *reply = NULL;

        r = sl_task_group_call(&thread->call, shard, reterr);
        if (r == 0)
            r = sl_worker_thread_run(thread, &thread->call, 1, &reply, reterr);
        freeReplyObject(reply); /* an error means that it exists */
    }
    return r;
}

/* Waits for a task of any shard. */
static int wait_for_tasks(struct sl_worker_thread *thread, redisReply **ret_reply,
                          struct failure *reterr)
{
    int r;

    r = sl_task_read_call(&thread->call, &thread->worker->meta, thread->consumer,
                          thread->worker->options.until_empty ? 0 : BLOCK_MS, reterr);
    if (r == 0)
        r = sl_worker_thread_run(thread, &thread->call, 1, ret_reply, reterr);
    return r;
}

/* 0; *ret_reply is NULL if the shard has no task. */
static int ask_shard(struct sl_worker_thread *thread, uint32_t shard, redisReply **ret_reply,
                     struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    r = sl_task_read_shard_call(&thread->call, shard, thread->consumer, reterr);
    if (r == 0)
        r = sl_worker_thread_try(thread, &thread->call, &reply, reterr);
    if (r == 0 && reply->type == REDIS_REPLY_NIL) {
        freeReplyObject(reply);
        reply = NULL;
    }
    if (r == 0)
        *ret_reply = reply;
    return r;
}

/* Asks each shard once, until one has a task. Shards that are away do not prevent the others from
 * being asked; if nothing is found, their failure is returned. */
static int ask_shards(struct sl_worker_thread *thread, redisReply **ret_reply,
                      struct failure *reterr)
{
    struct sl_worker *worker = thread->worker;
    int result = 0;

    for (uint32_t i = 0; i < worker->meta.shards && !*ret_reply; i++) {
        int r;

        if (sl_worker_thread_is_stopping(thread))
            return result;
        r = ask_shard(thread, worker->search.shard, ret_reply, reterr);
        worker->search.shard = (worker->search.shard + 1) % worker->meta.shards;
        if (r < 0)
            result = r;
    }
    if (*ret_reply)
        return 0;
    if (result < 0)
        thread->is_away = true;
    else
        sl_worker_thread_tell_back(thread);
    return result;
}

static int search_tasks(struct sl_worker_thread *thread, redisReply **ret_reply,
                        struct failure *reterr)
{
    struct sl_worker *worker = thread->worker;
    uint32_t most_ms = worker->options.until_empty ? LAST_MS : SEARCH_LAST_MS;
    int r;

    pthread_mutex_lock(&worker->search.turn);
    r = ask_shards(thread, ret_reply, reterr);
    if (*ret_reply)
        backoff_reset(&worker->search.backoff);
    else if (r == 0 && !sl_worker_thread_is_stopping(thread))
        pause_ms(backoff_next_ms(&worker->search.backoff, SEARCH_FIRST_MS, most_ms));
    pthread_mutex_unlock(&worker->search.turn);
    return r;
}

static int read_tasks(struct sl_worker_thread *thread, size_t *ret_count, struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    r = (thread->worker->meta.is_clustered ? search_tasks : wait_for_tasks)(thread, &reply, reterr);
    if (r == 0 && reply)
        r = run_tasks(thread, reply, SL_SHARDS_MAX, ret_count, reterr);
    freeReplyObject(reply);
    return r;
}

/* Sends thread->call. In a cluster a part may be away; the others do not wait for it. */
static int ask_once(struct sl_worker_thread *thread, redisReply **ret_reply, struct failure *reterr)
{
    return thread->worker->meta.is_clustered
               ? sl_worker_thread_try(thread, &thread->call, ret_reply, reterr)
               : sl_worker_thread_run(thread, &thread->call, 1, ret_reply, reterr);
}

static int claim_shard(struct sl_worker_thread *thread, uint32_t shard, struct failure *reterr)
{
    const struct sl_worker *worker = thread->worker;
    size_t count;
    int r;

    do {
        redisReply *reply = NULL;

        r = sl_task_claim_call(&thread->call, &worker->meta, shard, thread->consumer,
                               worker->options.lease_ms, CLAIM_COUNT, reterr);
        if (r == 0)
            r = ask_once(thread, &reply, reterr);
        if (r == 0)
            r = run_tasks(thread, reply, shard, &count, reterr);
        freeReplyObject(reply);
    } while (r == 0 && count == CLAIM_COUNT && !sl_worker_thread_is_stopping(thread));
    return r;
}

/* Adds tasks for posts that are old enough for the archive. A failure is ignored until the next
 * time. */
static void look_for_old_posts(struct sl_worker_thread *thread, uint32_t shard)
{
    redisReply *reply = NULL;

    sl_call_begin_repeatable(&thread->call, &sl_script_archive_due, shard,
                             thread->worker->meta.shards);
    sl_call_add_id(&thread->call, DUE_USERS);
    if (sl_call_finish(&thread->call, NULL) == 0)
        sl_worker_thread_run(thread, &thread->call, 1, &reply, NULL);
    freeReplyObject(reply);
}

/* Whether it is this thread's turn. */
static bool take_turn_to_claim(struct sl_worker *worker)
{
    uint_fast64_t now_ms = clock_monotonic_ms();
    uint_fast64_t due_ms = atomic_load(&worker->claim_ms);
    uint32_t every_ms = worker->options.lease_ms / 2 < CLAIM_EVERY_MS ? worker->options.lease_ms / 2
                                                                      : CLAIM_EVERY_MS;

    return now_ms >= due_ms &&
           atomic_compare_exchange_strong(&worker->claim_ms, &due_ms, now_ms + every_ms);
}

static int claim_tasks(struct sl_worker_thread *thread, struct failure *reterr)
{
    int r = 0;

    if (!take_turn_to_claim(thread->worker))
        return 0;
    for (uint32_t shard = 0; r == 0 && shard < thread->worker->meta.shards; shard++) {
        if (sl_worker_thread_is_stopping(thread))
            break;
        r = claim_shard(thread, shard, reterr);
        if (r == 0 && thread->worker->options.archive)
            look_for_old_posts(thread, shard);
        if (r < 0 && thread->is_away && thread->worker->meta.is_clustered)
            r = 0; /* the search for tasks reports it */
    }
    return r;
}

/* Whether there is no task at all, held by anyone. false if unknown. */
static bool all_is_empty(struct sl_worker_thread *thread)
{
    for (uint32_t shard = 0; shard < thread->worker->meta.shards; shard++) {
        redisReply *reply = NULL;
        char key[SL_KEY_SIZE];
        bool is_empty;

        sl_call_begin(&thread->call, shard, true);
        sl_call_add_str(&thread->call, "XLEN");
        sl_call_add_str(&thread->call, sl_key(shard, "tasks", key));
        is_empty = sl_call_finish(&thread->call, NULL) == 0 &&
                   sl_worker_thread_run(thread, &thread->call, 1, &reply, NULL) == 0 &&
                   reply->type == REDIS_REPLY_INTEGER && reply->integer == 0;
        freeReplyObject(reply);
        if (!is_empty)
            return false;
    }
    return true;
}

static void *run_thread(void *argument)
{
    struct sl_worker_thread *thread = argument;
    struct failure failure = {""};

    while (!sl_worker_thread_is_stopping(thread)) {
        size_t count = 0;
        int r;

        r = claim_tasks(thread, &failure);
        if (r == 0)
            r = read_tasks(thread, &count, &failure);
        if (r == -ENODATA && !thread->is_away)
            r = make_groups(thread, &failure);
        if (r < 0 && !sl_worker_thread_wait(thread, &failure))
            break;
        if (r == 0 && count == 0 && thread->worker->options.until_empty) {
            if (all_is_empty(thread))
                break;
            pause_ms(LAST_MS);
        }
    }
    return NULL;
}

/* ---- the worker ---- */

/* The name is "host:1234:5f0c9a7e:0", so that XINFO CONSUMERS shows whose it is. */
static void name_consumer(struct sl_worker_thread *thread, uint64_t random, size_t index)
{
    char host[33] = "";

    gethostname(host, sizeof(host) - 1);
    snprintf(thread->consumer, sizeof(thread->consumer), "%s:%ld:%08lx:%zu", host, (long)getpid(),
             (unsigned long)(random & 0xffffffff), index);
}

/* Reports that posts are dropped, so that nobody learns it from missing posts. */
static void warn_of_drops(struct sl_worker *worker)
{
    struct sl_worker_thread *thread = &worker->threads[0];
    struct sl_settings settings;
    redisReply *reply = NULL;
    size_t rest, archive;

    if (sl_setting_find(SL_SLICE("profile-rest"), &rest, NULL) == 0 &&
        sl_setting_find(SL_SLICE("archive"), &archive, NULL) == 0 &&
        sl_settings_call(&thread->call, 0, NULL) == 0 &&
        sl_redis_link_run(thread->link, &thread->call, &reply, NULL) == 0 &&
        sl_settings_reply(reply, &settings, NULL) == 0 && settings.at[archive].value == 0 &&
        settings.at[rest].value == SL_REST_DROP)
        sl_worker_thread_tell(thread, SL_WORKER_DROPS, NULL,
                              "profile-rest is drop: posts beyond profile-max are gone for good");
    freeReplyObject(reply);
}

int sl_worker_new(const struct sl_redis_address *address, const struct sl_meta *meta,
                  const struct sl_worker_options *options, struct sl_worker **ret_worker,
                  struct failure *reterr)
{
    const struct sl_redis_link_options link_options = {.retry_ms = RETRY_MS};
    const struct sl_cache_options cache_options = {.timeout_ms = CACHE_TIMEOUT_MS};
    uint64_t random = hash_key_random().k0;
    struct sl_worker *worker = mem_zalloc(sizeof(*worker));
    int r = 0;

    if (!worker)
        return failure_set(reterr, -ENOMEM, "out of memory");
    worker->options = *options;
    worker->meta = *meta;
    atomic_flag_clear(&worker->has_given_up);
    pthread_mutex_init(&worker->search.turn, NULL);
    if (worker->options.concurrency == 0)
        worker->options.concurrency = CONCURRENCY;
    if (worker->options.lease_ms == 0)
        worker->options.lease_ms = LEASE_MS;
    worker->threads =
        mem_zalloc(mem_array_size(worker->options.concurrency, sizeof(struct sl_worker_thread)));
    if (!worker->threads)
        r = failure_set(reterr, -ENOMEM, "out of memory");
    for (size_t i = 0; r == 0 && i < worker->options.concurrency; i++) {
        worker->threads[i].worker = worker;
        worker->threads[i].call = SL_CALL_INIT;
        name_consumer(&worker->threads[i], random, i);
        r = sl_redis_link_open(address, &link_options, &worker->threads[i].link, reterr);
        if (r == 0)
            sl_redis_link_expect(worker->threads[i].link, meta);
        if (r == 0 && options->archive && i == 0)
            r = sl_worker_archive_find(worker, worker->threads[0].link, reterr);
        if (r == 0 && options->archive)
            r = sl_worker_archive_open(&worker->threads[i], reterr);
        if (r == 0 && options->cache)
            r = sl_cache_open(options->cache, meta->database_id, &cache_options,
                              &worker->threads[i].cache, reterr);
    }
    if (r == 0 && options->archive && options->accept_archive)
        r = sl_worker_archive_accept(worker, worker->threads[0].link, reterr);
    if (r < 0) {
        sl_worker_free(worker);
        return r;
    }
    warn_of_drops(worker);
    *ret_worker = worker;
    return 0;
}

void sl_worker_free(struct sl_worker *worker)
{
    if (!worker)
        return;
    for (size_t i = 0; worker->threads && i < worker->options.concurrency; i++) {
        sl_redis_link_close(worker->threads[i].link);
        sl_archive_close(worker->threads[i].archive);
        sl_cache_close(worker->threads[i].cache);
        sl_call_done(&worker->threads[i].call);
    }
    pthread_mutex_destroy(&worker->search.turn);
    mem_free(worker->threads);
    mem_free(worker);
}

int sl_worker_run(struct sl_worker *worker, struct failure *reterr)
{
    uint32_t started = 1;
    int error = 0;

    while (error == 0 && started < worker->options.concurrency) {
        struct sl_worker_thread *thread = &worker->threads[started];

        error = pthread_create(&thread->id, NULL, run_thread, thread);
        if (error == 0)
            started++;
    }
    if (error)
        sl_worker_stop(worker);
    run_thread(&worker->threads[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(worker->threads[i].id, NULL);
    if (error)
        return failure_set(reterr, -error, "cannot start a thread: %s", strerror(error));
    if (worker->why.text[0])
        return failure_set(reterr, -ESTALE, "%s", worker->why.text);
    return 0;
}

void sl_worker_stop(struct sl_worker *worker)
{
    atomic_store(&worker->is_stopping, true);
}
