/* http_waiting.c - a list of deadlines for each thing to wait for, and one timer.
 *
 * The timer is set for the earliest deadline and not changed when that only moves later: it then
 * fires early, finds nothing due, and is set again. So beginning and ending to wait, which each
 * request does, cost only a few pointers. */
#include "gateway/http/http_waiting.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"

static const struct {
    bool is_counted;
    enum metric gauge, dropped;
} rows[HTTP_WAIT_COUNT] = {
    [HTTP_WAIT_PENDING] = {true, METRIC_HANDSHAKES_PENDING, METRIC_HANDSHAKES_DROPPED},
    [HTTP_WAIT_IDLE] = {true, METRIC_CONNECTIONS_IDLE, METRIC_IDLE_DROPPED},
    [HTTP_WAIT_LINGERING] = {true, METRIC_CONNECTIONS_LINGERING, METRIC_LINGERING_DROPPED},
};

static uint64_t now_of(const struct http_waiting *waiting)
{
    return uv_now(waiting->settings.loop);
}

static void on_timer(uv_timer_t *timer);

static void arm(struct http_waiting *waiting, uint64_t due_ms)
{
    uint64_t now = now_of(waiting);

    waiting->timer_due_ms = due_ms;
    if (due_ms == UINT64_MAX)
        uv_timer_stop(waiting->timer);
    else
        uv_timer_start(waiting->timer, on_timer, due_ms > now ? due_ms - now : 0, 0);
}

static void note_count(struct http_waiting *waiting, enum http_wait wait)
{
    if (rows[wait].is_counted)
        metric_set(waiting->settings.metrics, rows[wait].gauge,
                   deadline_list_count(&waiting->lists[wait]));
}

static void stop_waiting(struct http_waiting *waiting, struct http_waiter *waiter)
{
    enum http_wait wait = waiter->wait;

    if (wait == HTTP_WAIT_NONE)
        return;
    waiter->wait = HTTP_WAIT_NONE;
    deadline_list_remove(&waiting->lists[wait], &waiter->deadline);
    note_count(waiting, wait);
}

static void drop_first(struct http_waiting *waiting, enum http_wait wait)
{
    struct deadline *first = deadline_list_first(&waiting->lists[wait]);
    struct http_waiter *waiter = DEADLINE_OWNER(first, struct http_waiter, deadline);

    metric_add(waiting->settings.metrics, rows[wait].dropped, 1);
    stop_waiting(waiting, waiter);
    waiting->settings.dropped(waiter);
}

void http_wait(struct http_waiting *waiting, struct http_waiter *waiter, enum http_wait wait)
{
    struct deadline_list *list = &waiting->lists[wait];

    if (waiter->wait == wait)
        return;
    stop_waiting(waiting, waiter);
    if (wait == HTTP_WAIT_NONE)
        return;
    waiter->wait = wait;
    deadline_list_add(list, &waiter->deadline, now_of(waiting));
    if (waiter->deadline.due_ms < waiting->timer_due_ms)
        arm(waiting, waiter->deadline.due_ms);
    if (deadline_list_count(list) > waiting->settings.waits[wait].most)
        drop_first(waiting, wait);
    note_count(waiting, wait);
}

static void take_due(struct http_waiting *waiting, enum http_wait wait)
{
    struct deadline *due;

    while ((due = deadline_list_take_due(&waiting->lists[wait], now_of(waiting)))) {
        struct http_waiter *waiter = DEADLINE_OWNER(due, struct http_waiter, deadline);

        waiter->wait = HTTP_WAIT_NONE;
        note_count(waiting, wait);
        waiting->settings.overdue(waiter, wait);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct http_waiting *waiting = timer->data;
    uint64_t due_ms = UINT64_MAX;

    for (enum http_wait i = HTTP_WAIT_PENDING; i < HTTP_WAIT_COUNT; i++)
        take_due(waiting, i);
    for (enum http_wait i = HTTP_WAIT_PENDING; i < HTTP_WAIT_COUNT; i++) {
        if (deadline_list_next_due_ms(&waiting->lists[i]) < due_ms)
            due_ms = deadline_list_next_due_ms(&waiting->lists[i]);
    }
    arm(waiting, due_ms);
}

int http_waiting_init(struct http_waiting *waiting, const struct http_waiting_settings *settings)
{
    waiting->settings = *settings;
    waiting->timer_due_ms = UINT64_MAX;
    for (enum http_wait i = HTTP_WAIT_PENDING; i < HTTP_WAIT_COUNT; i++)
        deadline_list_init(&waiting->lists[i], settings->waits[i].ms);
    waiting->timer = mem_zalloc(sizeof(*waiting->timer));
    if (!waiting->timer)
        return -ENOMEM;
    uv_timer_init(settings->loop, waiting->timer);
    waiting->timer->data = waiting;
    return 0;
}

static void free_timer(uv_handle_t *timer)
{
    mem_free(timer);
}

void http_waiting_done(struct http_waiting *waiting)
{
    if (!waiting->timer)
        return;
    for (enum http_wait i = HTTP_WAIT_PENDING; i < HTTP_WAIT_COUNT; i++)
        assert(deadline_list_is_empty(&waiting->lists[i]));
    uv_close((uv_handle_t *)waiting->timer, free_timer);
    waiting->timer = NULL;
}
