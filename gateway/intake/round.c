/* round.c - idle -> TIME is asked -> PING is asked -> idle.
 *
 * The subscribed connection is asked for nothing else that is answered with a number, so a pong is
 * known by it; and when hearing ends the round does, so that no pong of a new connection ends it. A
 * TIME that was asked before hearing began is waited for, and counts for nothing.
 *
 * What is waited for is the end of a millisecond by the clock of Redis. What that said last, and
 * how long ago the answer came, says that it is at least so late by now; so a round begins as soon
 * as it cannot come too early. The loop's own timers count whole milliseconds: hence a timerfd. */
#include "gateway/intake/round.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/close_fd.h"
#include "gateway/redis/redis_commands.h"
#include "src/call/call_build.h"
#include "src/call/reply.h"
#include "src/model/id.h"

enum {
    PAUSE_US = 800,          /* from one to the next, at least: they are a millisecond apart */
    RETRY_PAUSE_US = 100000, /* when Redis has not told its time, or cannot be asked for a pong */
    FORESEEN_US = 10000,     /* what lies further ahead is no matter of this clock alone */
    CLOCK_AGE_US = 1000000   /* clocks drift apart: for so long they are taken to be alike */
};

enum state { STATE_IDLE, STATE_TIME, STATE_PING };

/* Who was asked for the time. */
struct node {
    struct round *round;
    uint64_t shards; /* that it has, by bit */
};

struct round {
    struct redis_commands *commands;
    struct subscriber *subscriber;
    struct metrics *metrics;
    struct round_callbacks callbacks;
    void *context;
    int timer_fd;
    uv_poll_t timer; /* begins the next one */
    enum state state;
    bool is_hearing;
    bool is_void;     /* hearing has ended since TIME was asked */
    bool has_failed;  /* a node has not told its time */
    uint32_t awaited; /* answers to TIME */
    uint64_t heard;   /* the shards that were when it began */
    struct node nodes[SL_SHARDS_MAX];
    uint64_t number;           /* of the last PING */
    uint64_t due_us;           /* the next one; 0: none is */
    uint64_t began_us;         /* the last one */
    uint64_t time_us, told_us; /* the earliest that Redis said last, and when that came */
    uint64_t ids_ms;           /* ids are minted by this time since TIME, or a later one */
};

static void begin(struct round *round);

/* 0: not at all. */
static void set_timer(struct round *round, uint64_t due_us)
{
    struct itimerspec at = {.it_value = {.tv_sec = (time_t)(due_us / 1000000),
                                         .tv_nsec = (long)(due_us % 1000000) * 1000}};

    round->due_us = due_us;
    timerfd_settime(round->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

static void on_timer(uv_poll_t *timer, int status, int events)
{
    struct round *round = timer->data;
    uint64_t expirations;

    (void)status;
    (void)events;
    if (read(round->timer_fd, &expirations, sizeof(expirations)) == sizeof(expirations))
        begin(round);
}

static void begin_at(struct round *round, uint64_t due_us)
{
    round->state = STATE_IDLE;
    if (!round->is_hearing || (round->due_us && round->due_us <= due_us))
        return;
    if (due_us <= clock_monotonic_us())
        begin(round);
    else
        set_timer(round, due_us);
}

static void retry(struct round *round)
{
    begin_at(round, clock_monotonic_us() + RETRY_PAUSE_US);
}

static bool read_time_us(const redisReply *reply, uint64_t *ret_us)
{
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_STRING)
        return false;
    *ret_us = strtoull(reply->element[0]->str, NULL, 10) * 1000000 +
              strtoull(reply->element[1]->str, NULL, 10);
    return true;
}

/* Redis read its clock about half way between the question and the answer. */
static void note_skew(struct round *round, uint64_t redis_us)
{
    uint64_t here_us = clock_wall_ms() * 1000 - (clock_monotonic_us() - round->began_us) / 2;

    metric_set(round->metrics, METRIC_REDIS_CLOCK_SKEW,
               here_us > redis_us ? here_us - redis_us : redis_us - here_us);
}

/* All nodes have answered, one way or another. */
static void end_times(struct round *round)
{
    bool was_void = round->is_void;

    round->is_void = false;
    if (was_void) {
        begin_at(round, 0);
    } else if (round->has_failed) {
        retry(round);
    } else {
        round->state = STATE_PING;
        if (subscriber_ping(round->subscriber, ++round->number) < 0)
            retry(round);
    }
}

static void take_time(struct round *round, uint64_t shards, uint64_t time_us)
{
    uint64_t ids_ms = round->callbacks.ids_ms(round->context, shards, time_us / 1000);

    note_skew(round, time_us);
    if (round->ids_ms == UINT64_MAX || time_us < round->time_us) {
        round->time_us = time_us;
        round->told_us = clock_monotonic_us();
    }
    if (ids_ms < round->ids_ms)
        round->ids_ms = ids_ms;
}

static void on_time(void *owner, const redisReply *reply, const char *why)
{
    const struct node *node = owner;
    struct round *round = node->round;
    uint64_t time_us;

    (void)why;
    if (!reply || !read_time_us(reply, &time_us))
        round->has_failed = true;
    else if (!round->is_void)
        take_time(round, node->shards, time_us);
    if (--round->awaited == 0)
        end_times(round);
}

/* A node that goes away meanwhile is not waited for. */
static int ask_time(struct round *round, struct node *node)
{
    struct sl_call call = SL_CALL_INIT;

    node->round = round;
    sl_call_begin(&call, (uint32_t)__builtin_ctzll(node->shards), false);
    sl_call_add_str(&call, "TIME");
    if (sl_call_finish(&call, NULL) < 0) {
        sl_call_done(&call);
        return -ENOMEM;
    }
    return redis_commands_run_take(round->commands, &call, on_time, node);
}

static void begin(struct round *round)
{
    uint64_t nodes[SL_SHARDS_MAX];
    uint32_t count;

    round->heard = subscriber_heard(round->subscriber);
    count = redis_commands_nodes(round->commands, round->heard, nodes);
    if (round->due_us)
        set_timer(round, 0);
    round->began_us = clock_monotonic_us();
    round->state = STATE_TIME;
    round->has_failed = count == 0;
    round->ids_ms = UINT64_MAX;
    round->awaited = 1; /* so that the end does not come before all are asked */
    for (uint32_t i = 0; i < count; i++) {
        round->nodes[i].shards = nodes[i];
        if (ask_time(round, &round->nodes[i]) == 0)
            round->awaited++;
        else
            round->has_failed = true;
    }
    if (--round->awaited == 0)
        end_times(round);
}

/* When the clock of Redis will surely have come to `time_us`; 0: nobody knows. */
static uint64_t when_redis_has(const struct round *round, uint64_t time_us)
{
    if (clock_monotonic_us() - round->told_us > CLOCK_AGE_US)
        return 0;
    return round->told_us + (time_us > round->time_us ? time_us - round->time_us : 0);
}

void round_want(struct round *round, uint64_t time_ms)
{
    uint64_t earliest_us = round->began_us + PAUSE_US, due_us;

    if (!round->is_hearing || round->state != STATE_IDLE)
        return;
    due_us = when_redis_has(round, time_ms * 1000);
    if (due_us > clock_monotonic_us() + FORESEEN_US)
        due_us = 0;
    begin_at(round, due_us > earliest_us ? due_us : earliest_us);
}

void round_want_later(struct round *round, uint64_t pause_ms)
{
    if (round->is_hearing && round->state == STATE_IDLE)
        begin_at(round, round->began_us + pause_ms * 1000);
}

void round_pong(struct round *round, uint64_t number)
{
    if (round->state != STATE_PING || number != round->number)
        return;
    round->state = STATE_IDLE;
    if (round->ids_ms > SL_ID_EPOCH_MS)
        round->callbacks.over(round->context, sl_id_first_at(round->ids_ms) - 1,
                              round->heard & subscriber_heard(round->subscriber));
}

void round_set_hearing(struct round *round, bool is_hearing)
{
    round->is_hearing = is_hearing;
    if (is_hearing)
        return;
    set_timer(round, 0);
    if (round->state == STATE_TIME)
        round->is_void = true;
    else
        round->state = STATE_IDLE;
}

struct round *round_new(const struct subscriber_settings *settings, struct subscriber *subscriber,
                        const struct round_callbacks *callbacks, void *context)
{
    struct round *round = mem_zalloc(sizeof(*round));

    if (!round)
        return NULL;
    round->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (round->timer_fd < 0 || uv_poll_init(settings->loop, &round->timer, round->timer_fd) < 0) {
        close_fd(&round->timer_fd);
        mem_free(round);
        return NULL;
    }
    round->commands = settings->commands;
    round->subscriber = subscriber;
    round->metrics = settings->metrics;
    round->callbacks = *callbacks;
    round->context = context;
    round->timer.data = round;
    uv_poll_start(&round->timer, UV_READABLE, on_timer);
    return round;
}

static void release(uv_handle_t *timer)
{
    struct round *round = timer->data;

    close(round->timer_fd);
    mem_free(round);
}

void round_free(struct round *round)
{
    if (round)
        uv_close((uv_handle_t *)&round->timer, release);
}
