/* key_watch.c - checks one file after the other, then rests: has it changed, and if so, what is in
 * it? Both are done in the loop's thread pool; the loop applies the result.
 *
 * The first round reads every file, because it may have changed between being read and being
 * watched. A changed file with the same bytes is ignored. If other files are set while a check is
 * running, its result is ignored. */
#include "gateway/serve/key_watch.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "gateway/front/issuer_keys.h"

enum { REST_MS = 500 };

struct looks {
    int error;
    uint64_t inode, size;
    uv_timespec_t changed, status_changed;
};

struct key_watch {
    struct key_watch_settings settings;
    struct token_policy *policy; /* NULL: nothing to watch */
    struct looks *looks;         /* of each file, at the last reading */
    unsigned at;                 /* the current file */
    bool is_asking, is_stale;    /* a check is running; its result will be ignored */
    bool is_closed;
    uv_timer_t timer;
    uv_fs_t question;
    uv_work_t work;
    struct key_set_reading reading;
};

static void free_when_done(struct key_watch *watch)
{
    if (!watch->is_closed || watch->is_asking)
        return;
    mem_free(watch->looks);
    mem_free(watch);
}

static void tell(const struct key_watch *watch, const struct key_set_file *file, int r,
                 const struct failure *why)
{
    const struct jwk_set *set = file->set;
    char path[LOG_QUOTE_SIZE], text[LOG_QUOTE_SIZE];
    const char *skipped;

    metric_add(watch->settings.metrics, r > 0 ? METRIC_KEY_SETS_READ : METRIC_KEY_SETS_BAD, 1);
    if (!watch->settings.tells)
        return;
    log_quote(sl_slice_str(file->path), path);
    if (r < 0) {
        log_warn("key_set_bad", "file=%s keys_kept=%u why=%s", path, set ? jwk_set_count(set) : 0,
                 log_quote(sl_slice_str(why->text), text));
        return;
    }
    skipped = jwk_set_skipped_why(set);
    log_info("key_set_read", "file=%s keys=%u skipped=%u%s%s", path, jwk_set_count(set),
             jwk_set_skipped(set), skipped ? " first=" : "",
             skipped ? log_quote(sl_slice_str(skipped), text) : "");
}

static void next(struct key_watch *watch);

static void take_over(struct key_watch *watch)
{
    struct key_set_file *file = token_policy_file(watch->policy, watch->at);
    struct failure why;
    int r = key_set_reading_end(&watch->reading, file, &why);

    if (r > 0)
        token_policy_forget(watch->policy);
    if (r != 0)
        tell(watch, file, r, &why);
}

static void read_aside(uv_work_t *work)
{
    struct key_watch *watch = work->data;

    key_set_reading_run(&watch->reading);
}

static void on_read(uv_work_t *work, int status)
{
    struct key_watch *watch = work->data;

    (void)status; /* never cancelled */
    if (watch->is_stale)
        key_set_reading_forget(&watch->reading);
    else
        take_over(watch);
    next(watch);
}

/* false: it could not begin, and is tried again in the next round. */
static bool begin_to_read(struct key_watch *watch)
{
    const struct key_set_file *file = token_policy_file(watch->policy, watch->at);

    if (key_set_reading_begin(&watch->reading, file) < 0)
        return false;
    watch->work.data = watch;
    if (uv_queue_work(watch->settings.loop, &watch->work, read_aside, on_read) == 0)
        return true;
    key_set_reading_forget(&watch->reading);
    return false;
}

static void rest(struct key_watch *watch);
static void on_looks(uv_fs_t *question);

static void ask(struct key_watch *watch)
{
    const struct key_set_file *file =
        watch->policy ? token_policy_file(watch->policy, watch->at) : NULL;

    assert(!watch->is_asking);
    if (!file) {
        rest(watch);
        return;
    }
    watch->question.data = watch;
    watch->is_asking = true;
    if (uv_fs_stat(watch->settings.loop, &watch->question, file->path, on_looks) < 0) {
        watch->is_asking = false;
        rest(watch);
    }
}

static void on_looks(uv_fs_t *question)
{
    struct key_watch *watch = question->data;
    struct looks looks;

    memset(&looks, 0, sizeof(looks));
    looks.error = (int)question->result;
    if (question->result == 0) {
        looks.inode = question->statbuf.st_ino;
        looks.size = question->statbuf.st_size;
        looks.changed = question->statbuf.st_mtim;
        looks.status_changed = question->statbuf.st_ctim;
    }
    uv_fs_req_cleanup(question);
    if (!watch->is_stale && memcmp(&looks, &watch->looks[watch->at], sizeof(looks)) != 0 &&
        begin_to_read(watch))
        watch->looks[watch->at] = looks;
    else
        next(watch);
}

/* The file at `at` is finished. */
static void next(struct key_watch *watch)
{
    watch->is_asking = false;
    if (watch->is_closed) {
        free_when_done(watch);
        return;
    }
    watch->at = watch->is_stale ? 0 : watch->at + 1;
    watch->is_stale = false;
    ask(watch);
}

/* An outdated check may still be running when the timer fires. */
static void on_timer(uv_timer_t *timer)
{
    struct key_watch *watch = timer->data;

    if (watch->is_asking)
        return;
    watch->at = 0;
    ask(watch);
}

static void rest(struct key_watch *watch)
{
    if (watch->policy && !watch->is_closed)
        uv_timer_start(&watch->timer, on_timer, REST_MS, 0);
}

struct key_watch *key_watch_new(const struct key_watch_settings *settings)
{
    struct key_watch *watch = mem_zalloc(sizeof(*watch));

    if (!watch)
        return NULL;
    watch->settings = *settings;
    uv_timer_init(settings->loop, &watch->timer);
    watch->timer.data = watch;
    return watch;
}

int key_watch_set(struct key_watch *watch, struct token_policy *policy)
{
    struct looks *looks;
    unsigned count = 0;

    while (policy && token_policy_file(policy, count))
        count++;
    looks = mem_alloc(mem_array_size(count, sizeof(looks[0])) + 1);
    watch->policy = NULL;
    watch->is_stale = watch->is_asking;
    uv_timer_stop(&watch->timer);
    if (!looks)
        return -ENOMEM;
    for (unsigned i = 0; i < count; i++) {
        memset(&looks[i], 0, sizeof(looks[i]));
        looks[i].error = 1; /* different from any real file */
    }
    mem_free(watch->looks);
    watch->looks = looks;
    if (count > 0) {
        watch->policy = policy;
        rest(watch);
    }
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct key_watch *watch = handle->data;

    watch->is_closed = true;
    free_when_done(watch);
}

void key_watch_free(struct key_watch *watch)
{
    if (!watch)
        return;
    watch->policy = NULL;
    watch->is_stale = true;
    uv_close((uv_handle_t *)&watch->timer, on_closed);
}
