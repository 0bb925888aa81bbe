/* cache_reader.c - a queue of jobs for a thread, and the results for the loop.
 *
 * A job belongs to the thread from the moment it is queued until it is in `done_jobs`. If it is
 * late, its caller is called without a result; when it returns then, nobody waits for it. */
#include "gateway/api/cache_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/deadline_list.h"
#include "base/list.h"
#include "base/log.h"
#include "src/model/database.h"

enum job_kind { JOB_GET, JOB_PUT, JOB_DROP };

struct job {
    enum job_kind kind;
    struct sl_cache_item *items;
    size_t count;
    uint64_t read_ms; /* for JOB_PUT */
    char database_id[SL_DATABASE_ID_SIZE];
    struct list_node node; /* in jobs or done_jobs, or with the thread */

    /* used by the loop only */
    struct deadline deadline; /* in `waiting`, while the caller waits */
    cache_read_fn done;       /* NULL: nobody waits */
    void *owner;
};

struct cache_reader {
    uv_loop_t *loop;
    uv_async_t async;
    uv_timer_t timer;
    unsigned handles; /* not closed yet */
    char *url;
    uint32_t timeout_ms;
    uint64_t ttl_ms;
    struct metrics *metrics; /* each number is written either by the loop or by the thread */
    char database_id[SL_DATABASE_ID_SIZE];
    struct deadline_list waiting;
    size_t job_count;    /* queued, or with the thread */
    bool is_late;        /* no job has returned since one timed out */
    atomic_bool is_away; /* written by the thread */
    uv_thread_t thread;

    uv_mutex_t mutex; /* protects: */
    uv_cond_t is_work;
    struct list jobs, done_jobs;
    bool is_over;

    /* used by the thread only */
    struct sl_cache *cache; /* NULL: not open */
    char cache_database_id[SL_DATABASE_ID_SIZE];
    struct sl_cache_counts counted;
};

static void job_free(struct job *job)
{
    sl_cache_items_done(job->items, job->count);
    mem_free(job->items);
    mem_free(job);
}

/* ---- the thread ---- */

static void on_told(void *context, const char *server, const char *why)
{
    char room[LOG_QUOTE_SIZE];

    (void)context;
    if (why)
        log_warn("cache_away", "server=\"%s\" why=%s", server, log_quote(sl_slice_str(why), room));
    else
        log_info("cache_back", "server=\"%s\"", server);
}

static void count(struct cache_reader *reader)
{
    const struct sl_cache_counts *now = sl_cache_counts(reader->cache);
    struct sl_cache_counts *before = &reader->counted;
    const struct {
        enum metric metric;
        uint64_t more;
    } rows[] = {
        {METRIC_CACHE_HITS, now->hits - before->hits},
        {METRIC_CACHE_MISSES, now->misses - before->misses},
        {METRIC_CACHE_REFUSED, now->refused - before->refused},
        {METRIC_CACHE_SKIPPED, now->skipped - before->skipped},
        {METRIC_CACHE_STORED, now->stored - before->stored},
        {METRIC_CACHE_DROPPED, now->dropped - before->dropped},
        {METRIC_CACHE_ERRORS, now->errors - before->errors},
        {METRIC_CACHE_READ_BYTES, now->hit_bytes - before->hit_bytes},
        {METRIC_CACHE_WRITTEN_BYTES, now->stored_bytes - before->stored_bytes},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        metric_add(reader->metrics, rows[i].metric, rows[i].more);
    *before = *now;
}

/* Opens the cache for the database of the job. */
static bool open_for(struct cache_reader *reader, const struct job *job)
{
    const struct sl_cache_options options = {
        .ttl_ms = reader->ttl_ms, .timeout_ms = reader->timeout_ms, .tell = on_told};

    if (reader->cache && strcmp(reader->cache_database_id, job->database_id) == 0)
        return true;
    sl_cache_close(reader->cache);
    reader->cache = NULL;
    reader->counted = (struct sl_cache_counts){0};
    if (sl_cache_open(reader->url, job->database_id, &options, &reader->cache, NULL) < 0)
        return false;
    memcpy(reader->cache_database_id, job->database_id, sizeof(job->database_id));
    return true;
}

static void do_job(struct cache_reader *reader, struct job *job)
{
    if (!open_for(reader, job))
        return;
    if (job->kind == JOB_GET)
        sl_cache_get(reader->cache, job->items, job->count);
    else if (job->kind == JOB_PUT)
        sl_cache_put(reader->cache, job->items, job->count, job->read_ms);
    else
        sl_cache_drop(reader->cache, job->items, job->count);
    count(reader);
    atomic_store(&reader->is_away, sl_cache_is_away(reader->cache));
}

static struct job *take_first(struct list *jobs)
{
    struct list_node *node = list_first(jobs);

    if (!node)
        return NULL;
    list_remove(jobs, node);
    return LIST_OWNER(node, struct job, node);
}

static void run(void *context)
{
    struct cache_reader *reader = context;
    struct job *job;

    uv_mutex_lock(&reader->mutex);
    while (!reader->is_over) {
        job = take_first(&reader->jobs);
        if (!job) {
            uv_cond_wait(&reader->is_work, &reader->mutex);
            continue;
        }
        uv_mutex_unlock(&reader->mutex);
        do_job(reader, job);
        uv_mutex_lock(&reader->mutex);
        list_append(&reader->done_jobs, &job->node);
        uv_async_send(&reader->async);
    }
    uv_mutex_unlock(&reader->mutex);
    sl_cache_close(reader->cache);
}

/* ---- the loop ---- */

static void arm_timer(struct cache_reader *reader);

static void call_owner(struct job *job, struct cache_reader *reader, int r,
                       struct sl_cache_item *items)
{
    cache_read_fn done = job->done;

    if (!done)
        return;
    job->done = NULL;
    deadline_list_remove(&reader->waiting, &job->deadline);
    done(job->owner, r, items, job->count);
}

static void on_done(uv_async_t *async)
{
    struct cache_reader *reader = async->data;

    for (;;) {
        struct job *job;

        uv_mutex_lock(&reader->mutex);
        job = take_first(&reader->done_jobs);
        uv_mutex_unlock(&reader->mutex);
        if (!job)
            break;
        reader->job_count--;
        reader->is_late = false;
        call_owner(job, reader, 0, job->items);
        job_free(job);
    }
    arm_timer(reader);
}

static void on_timer(uv_timer_t *timer)
{
    struct cache_reader *reader = timer->data;
    struct deadline *due;

    while ((due = deadline_list_take_due(&reader->waiting, uv_now(reader->loop))) != NULL) {
        metric_add(reader->metrics, METRIC_CACHE_LATE, 1);
        reader->is_late = true;
        call_owner(DEADLINE_OWNER(due, struct job, deadline), reader, 0, NULL);
    }
    arm_timer(reader);
}

static void arm_timer(struct cache_reader *reader)
{
    uint64_t due_ms = deadline_list_next_due_ms(&reader->waiting);
    uint64_t now_ms = uv_now(reader->loop);

    if (due_ms == UINT64_MAX)
        uv_timer_stop(&reader->timer);
    else if (!uv_is_active((uv_handle_t *)&reader->timer))
        uv_timer_start(&reader->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/* NULL: not possible, and the items are freed. */
static struct job *queue(struct cache_reader *reader, enum job_kind kind,
                         struct sl_cache_item *items, size_t count, uint64_t read_ms)
{
    struct job *job = mem_zalloc(sizeof(*job));

    if (!job || !reader->database_id[0] || reader->job_count == CACHE_READER_JOBS_MAX) {
        metric_add(reader->metrics, METRIC_CACHE_LATE, kind == JOB_GET);
        sl_cache_items_done(items, count);
        mem_free(items);
        mem_free(job);
        return NULL;
    }
    job->kind = kind;
    job->items = items;
    job->count = count;
    job->read_ms = read_ms;
    memcpy(job->database_id, reader->database_id, sizeof(job->database_id));
    reader->job_count++;
    return job;
}

static void hand_over(struct cache_reader *reader, struct job *job)
{
    uv_mutex_lock(&reader->mutex);
    list_append(&reader->jobs, &job->node);
    uv_cond_signal(&reader->is_work);
    uv_mutex_unlock(&reader->mutex);
}

bool cache_reader_is_away(const struct cache_reader *reader)
{
    return reader->is_late || atomic_load(&reader->is_away);
}

int cache_reader_get_take(struct cache_reader *reader, struct sl_cache_item *items, size_t count,
                          cache_read_fn done, void *owner)
{
    struct job *job = queue(reader, JOB_GET, items, count, 0);

    if (!job)
        return -EAGAIN;
    job->done = done;
    job->owner = owner;
    deadline_list_add(&reader->waiting, &job->deadline, uv_now(reader->loop));
    arm_timer(reader);
    hand_over(reader, job);
    return 0;
}

void cache_reader_put_take(struct cache_reader *reader, struct sl_cache_item *items, size_t count,
                           uint64_t read_ms)
{
    struct job *job = queue(reader, JOB_PUT, items, count, read_ms);

    if (job)
        hand_over(reader, job);
}

void cache_reader_drop_take(struct cache_reader *reader, struct sl_cache_item *items, size_t count)
{
    struct job *job = queue(reader, JOB_DROP, items, count, 0);

    if (job)
        hand_over(reader, job);
}

/* ---- creating and freeing ---- */

void cache_reader_set_database(struct cache_reader *reader, const char *database_id)
{
    memcpy(reader->database_id, database_id, sizeof(reader->database_id));
}

struct cache_reader *cache_reader_new(uv_loop_t *loop, const char *url, uint32_t timeout_ms,
                                      uint64_t ttl_ms, struct metrics *metrics)
{
    struct cache_reader *reader = mem_zalloc(sizeof(*reader));

    if (!reader)
        return NULL;
    reader->loop = loop;
    reader->timeout_ms = timeout_ms;
    reader->ttl_ms = ttl_ms;
    reader->metrics = metrics;
    reader->url = mem_strndup(url, strlen(url));
    deadline_list_init(&reader->waiting, 2 * timeout_ms);
    list_init(&reader->jobs);
    list_init(&reader->done_jobs);
    if (!reader->url || uv_mutex_init(&reader->mutex) < 0)
        goto no_mutex;
    if (uv_cond_init(&reader->is_work) < 0)
        goto no_cond;
    if (uv_async_init(loop, &reader->async, on_done) < 0)
        goto no_async;
    uv_timer_init(loop, &reader->timer);
    reader->async.data = reader->timer.data = reader;
    reader->handles = 2;
    if (uv_thread_create(&reader->thread, run, reader) < 0) {
        reader->is_over = true;
        cache_reader_free(reader);
        return NULL;
    }
    return reader;
no_async:
    uv_cond_destroy(&reader->is_work);
no_cond:
    uv_mutex_destroy(&reader->mutex);
no_mutex:
    mem_free(reader->url);
    mem_free(reader);
    return NULL;
}

static void on_closed(uv_handle_t *handle)
{
    struct cache_reader *reader = handle->data;

    if (--reader->handles > 0)
        return;
    uv_cond_destroy(&reader->is_work);
    uv_mutex_destroy(&reader->mutex);
    mem_free(reader->url);
    mem_free(reader);
}

static void stop_thread(struct cache_reader *reader)
{
    uv_mutex_lock(&reader->mutex);
    reader->is_over = true;
    uv_cond_signal(&reader->is_work);
    uv_mutex_unlock(&reader->mutex);
    uv_thread_join(&reader->thread);
}

void cache_reader_free(struct cache_reader *reader)
{
    struct deadline *first;
    struct job *job;

    if (!reader)
        return;
    if (!reader->is_over)
        stop_thread(reader);
    while ((first = deadline_list_first(&reader->waiting)) != NULL)
        call_owner(DEADLINE_OWNER(first, struct job, deadline), reader, -ECANCELED, NULL);
    while ((job = take_first(&reader->done_jobs)) || (job = take_first(&reader->jobs)))
        job_free(job);
    uv_close((uv_handle_t *)&reader->async, on_closed);
    uv_close((uv_handle_t *)&reader->timer, on_closed);
}
