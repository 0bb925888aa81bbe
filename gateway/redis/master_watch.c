/* master_watch.c - a connection to each sentinel, any of which may announce a new master, and a
 * timer that reconnects a lost one.
 *
 * All announcements go to the owner, who decides what they mean. A sentinel that cannot be reached
 * is logged once for each reason, and tried again after an increasing delay. The number of
 * connections is that of the address's sentinels, which its parser limits. */
#include "gateway/redis/master_watch.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/failure.h"
#include "base/log.h"
#include "gateway/redis/sentinel_line.h"

enum { ANSWER_MS = 2000, RETRY_MIN_MS = 100, RETRY_MAX_MS = 5000 };

/* The connection to one sentinel. */
struct sentinel {
    uv_timer_t timer; /* when to reconnect */
    struct master_watch *watch;
    uint32_t number;
    struct sentinel_line *line;
    bool is_heard;
    struct backoff backoff;
    char logged_reason[FAILURE_TEXT_SIZE]; /* why it is down, as logged last; empty: it is not
                                              down */
};

struct master_watch {
    struct sl_redis_address address;
    struct metrics *metrics;
    struct master_watch_callbacks callbacks;
    void *context;
    struct sentinel *sentinels[SL_REDIS_SENTINELS_MAX];
};

static void set_heard(struct sentinel *sentinel, bool is_heard)
{
    if (is_heard != sentinel->is_heard)
        (is_heard ? metric_add : metric_sub)(sentinel->watch->metrics, METRIC_SENTINELS_HEARD, 1);
    sentinel->is_heard = is_heard;
}

static void on_timer(uv_timer_t *timer)
{
    struct sentinel *sentinel = timer->data;

    sentinel_line_open(sentinel->line, sentinel->number);
}

static void on_lost(void *context, const char *reason)
{
    struct sentinel *sentinel = context;
    uint32_t delay_ms = backoff_next_spread_ms(&sentinel->backoff, RETRY_MIN_MS, RETRY_MAX_MS);
    char endpoint[SL_REDIS_ENDPOINT_TEXT_SIZE], room[LOG_QUOTE_SIZE];

    set_heard(sentinel, false);
    uv_timer_start(&sentinel->timer, on_timer, delay_ms, 0);
    if (strcmp(reason, sentinel->logged_reason) == 0)
        return;
    sl_redis_endpoint_print(&sentinel->watch->address.sentinels[sentinel->number], endpoint,
                            sizeof(endpoint));
    log_warn("sentinel_not_heard", "sentinel=%s reason=%s retry_ms=%u", endpoint,
             log_quote(sl_slice_str(reason), room), delay_ms);
    snprintf(sentinel->logged_reason, sizeof(sentinel->logged_reason), "%s", reason);
}

static void on_answer(void *context, const struct sl_redis_endpoint *master)
{
    struct sentinel *sentinel = context;

    set_heard(sentinel, true);
    backoff_reset(&sentinel->backoff);
    sentinel->logged_reason[0] = '\0';
    sentinel->watch->callbacks.named(sentinel->watch->context, master);
}

static void on_news(void *context, const struct sl_sentinel_news *news)
{
    struct sentinel *sentinel = context;

    sentinel->watch->callbacks.news(sentinel->watch->context, news);
}

static struct sentinel *sentinel_new(uv_loop_t *loop, struct master_watch *watch, uint32_t number)
{
    static const struct sentinel_line_callbacks callbacks = {
        .on_answer = on_answer,
        .on_news = on_news,
        .on_lost = on_lost,
    };
    struct sentinel *sentinel = mem_zalloc(sizeof(*sentinel));

    if (!sentinel)
        return NULL;
    sentinel->line =
        sentinel_line_new(loop, &watch->address, true, ANSWER_MS, &callbacks, sentinel);
    if (!sentinel->line) {
        mem_free(sentinel);
        return NULL;
    }
    sentinel->watch = watch;
    sentinel->number = number;
    uv_timer_init(loop, &sentinel->timer);
    sentinel->timer.data = sentinel;
    uv_timer_start(&sentinel->timer, on_timer, 0, 0);
    return sentinel;
}

static void on_timer_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

struct master_watch *master_watch_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                      struct metrics *metrics,
                                      const struct master_watch_callbacks *callbacks, void *context)
{
    struct master_watch *watch = mem_zalloc(sizeof(*watch));

    if (!watch)
        return NULL;
    assert(address->sentinel_count > 0);
    watch->address = *address;
    watch->metrics = metrics;
    watch->callbacks = *callbacks;
    watch->context = context;
    for (uint32_t i = 0; i < address->sentinel_count; i++) {
        watch->sentinels[i] = sentinel_new(loop, watch, i);
        if (!watch->sentinels[i]) {
            master_watch_free(watch);
            return NULL;
        }
    }
    return watch;
}

/* The caller may be a callback of one of these: they exist until the next turn of the loop. */
void master_watch_free(struct master_watch *watch)
{
    if (!watch)
        return;
    for (uint32_t i = 0; i < watch->address.sentinel_count && watch->sentinels[i]; i++) {
        struct sentinel *sentinel = watch->sentinels[i];

        set_heard(sentinel, false);
        sentinel_line_free(sentinel->line);
        uv_close((uv_handle_t *)&sentinel->timer, on_timer_closed);
    }
    mem_free(watch);
}
