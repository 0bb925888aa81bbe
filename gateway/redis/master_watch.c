/* master_watch.c - a line and a timer for each sentinel; the timer is when to try again, how long
 * the sentinel may take to answer, or when to ask whether it is still there. */
#include "gateway/redis/master_watch.h"

#include <assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/failure.h"
#include "base/hash.h"
#include "base/log.h"
#include "gateway/redis/sentinel_line.h"

enum { ANSWER_MS = 2000, PING_MS = 5000, RETRY_MIN_MS = 100, RETRY_MAX_MS = 5000 };

enum post_state { POST_DOWN, POST_ASKED, POST_HEARD };

/* Where one sentinel is listened to. */
struct post {
    uv_timer_t timer;
    struct master_watch *watch;
    uint32_t number;
    struct sentinel_line *line;
    enum post_state state;
    bool owes_pong;
    uint32_t retry_ms;
    char logged_reason[FAILURE_TEXT_SIZE]; /* why it is down, as logged last; empty: it was not */
};

struct master_watch {
    struct sl_redis_address address;
    struct metrics *metrics;
    struct master_watch_callbacks callbacks;
    void *context;
    struct post *posts[SL_REDIS_SENTINELS_MAX];
};

static void on_timer(uv_timer_t *timer);

static void set_state(struct post *post, enum post_state state, uint64_t timer_ms)
{
    if ((state == POST_HEARD) != (post->state == POST_HEARD))
        (state == POST_HEARD ? metric_add : metric_sub)(post->watch->metrics,
                                                        METRIC_SENTINELS_HEARD, 1);
    post->state = state;
    post->owes_pong = false;
    uv_timer_start(&post->timer, on_timer, timer_ms, 0);
}

static void go_down(struct post *post, const char *reason)
{
    uint32_t half = post->retry_ms / 2;
    uint32_t delay_ms = half + (uint32_t)(hash_key_random().k0 % (half + 1));
    char place[SL_REDIS_PLACE_TEXT_SIZE], room[LOG_QUOTE_SIZE];

    sentinel_line_close(post->line);
    set_state(post, POST_DOWN, delay_ms);
    post->retry_ms = post->retry_ms * 2 < RETRY_MAX_MS ? post->retry_ms * 2 : RETRY_MAX_MS;
    if (strcmp(reason, post->logged_reason) == 0)
        return;
    sl_redis_place_print(&post->watch->address.sentinels[post->number], place, sizeof(place));
    log_warn("sentinel_not_heard", "sentinel=%s reason=%s retry_ms=%u", place,
             log_quote(sl_slice_str(reason), room), delay_ms);
    snprintf(post->logged_reason, sizeof(post->logged_reason), "%s", reason);
}

static void on_answer(void *context, const struct sl_redis_place *master)
{
    struct post *post = context;

    set_state(post, POST_HEARD, PING_MS);
    post->retry_ms = RETRY_MIN_MS;
    post->logged_reason[0] = '\0';
    post->watch->callbacks.named(post->watch->context, master);
}

static void on_news(void *context, const struct sl_sentinel_news *news)
{
    struct post *post = context;

    post->watch->callbacks.news(post->watch->context, news);
}

static void on_pong(void *context)
{
    ((struct post *)context)->owes_pong = false;
}

static void on_lost(void *context, const char *reason)
{
    go_down(context, reason);
}

static void on_timer(uv_timer_t *timer)
{
    struct post *post = timer->data;

    if (post->state == POST_ASKED) {
        go_down(post, "it does not answer");
    } else if (post->state == POST_DOWN) {
        int r = sentinel_line_open(post->line, post->number);

        set_state(post, POST_ASKED, r < 0 ? 0 : ANSWER_MS);
    } else if (post->owes_pong) {
        go_down(post, "it is silent");
    } else {
        sentinel_line_ping(post->line);
        set_state(post, POST_HEARD, PING_MS);
        post->owes_pong = true;
    }
}

static struct post *post_new(uv_loop_t *loop, struct master_watch *watch, uint32_t number)
{
    static const struct sentinel_line_callbacks callbacks = {
        .on_answer = on_answer,
        .on_news = on_news,
        .on_pong = on_pong,
        .on_lost = on_lost,
    };
    struct post *post = mem_zalloc(sizeof(*post));

    if (!post)
        return NULL;
    post->line = sentinel_line_new(loop, &watch->address, true, &callbacks, post);
    if (!post->line) {
        mem_free(post);
        return NULL;
    }
    post->watch = watch;
    post->number = number;
    post->retry_ms = RETRY_MIN_MS;
    uv_timer_init(loop, &post->timer);
    post->timer.data = post;
    uv_timer_start(&post->timer, on_timer, 0, 0);
    return post;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct post *post = handle->data;

    sentinel_line_free(post->line);
    mem_free(post);
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
        watch->posts[i] = post_new(loop, watch, i);
        if (!watch->posts[i]) {
            master_watch_free(watch);
            return NULL;
        }
    }
    return watch;
}

/* A post may be what calls back just now: it stays until the loop comes round. */
void master_watch_free(struct master_watch *watch)
{
    if (!watch)
        return;
    for (uint32_t i = 0; i < watch->address.sentinel_count && watch->posts[i]; i++) {
        struct post *post = watch->posts[i];

        if (post->state == POST_HEARD)
            metric_sub(watch->metrics, METRIC_SENTINELS_HEARD, 1);
        sentinel_line_close(post->line);
        uv_close((uv_handle_t *)&post->timer, on_timer_closed);
    }
    mem_free(watch);
}
