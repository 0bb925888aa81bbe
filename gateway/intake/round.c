/* round.c - for each node: idle -> TIME outstanding -> PING outstanding -> idle.
 *
 * On the subscribed connections nothing else is answered with a number, so a pong is identified by
 * it. When the subscription ends the rounds end, too, so that a pong of a new connection cannot end
 * one. A TIME that was sent before the subscription began is waited for and ignored.
 *
 * A round waits for the end of a millisecond by the clocks of all nodes. The last time reported by
 * a node, and how long ago its answer arrived, give a lower bound of its current time; so a round
 * begins as soon as it cannot be too early. All idle nodes begin together, so that those which
 * answer equally fast stay in step, and their rounds cost one wake-up. The loop's own timers have a
 * resolution of milliseconds; therefore a timerfd is used. */
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
    PAUSE_US = 800,          /* minimum time between rounds, which are a millisecond apart */
    RETRY_PAUSE_US = 100000, /* when Redis has not reported its time, or no ping can be sent */
    FORESEEN_US = 10000,     /* an id farther ahead cannot be explained by this clock alone */
    CLOCK_AGE_US = 1000000,  /* clocks drift: for this time they are assumed to run alike */
    SECOND_US = 1000000
};

enum state { STATE_IDLE, STATE_TIME, STATE_PING };

struct node {
    struct round *round;
    uint64_t shards; /* its shards that are received, as bits; 0: unused */
    enum state state;
    bool is_void;              /* the subscription has ended since TIME was sent */
    uint64_t number;           /* of the PING */
    uint64_t ids_ms;           /* ids minted since TIME have this time or a later one */
    uint64_t asked_us;         /* when it was sent */
    uint64_t retry_us;         /* do not ask before this */
    uint64_t time_us, told_us; /* its last reported time, and when that arrived */
};

struct round {
    struct redis_commands *commands;
    struct subscriber *subscriber;
    struct metrics *metrics;
    struct round_callbacks callbacks;
    void *context;
    int timer_fd;
    uv_poll_t timer; /* starts the next rounds */
    bool is_hearing;
    struct node nodes[SL_SHARDS_MAX];
    uint64_t number;   /* of the last PING */
    uint64_t due_us;   /* the next rounds; 0: none */
    uint64_t began_us; /* the last rounds */
};

static void begin(struct round *round);

/* 0: disarms it. */
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
    if (!round->is_hearing || (round->due_us && round->due_us <= due_us))
        return;
    if (due_us <= clock_monotonic_us())
        begin(round);
    else
        set_timer(round, due_us);
}

static void retry(struct node *node)
{
    node->state = STATE_IDLE;
    node->retry_us = clock_monotonic_us() + RETRY_PAUSE_US;
    begin_at(node->round, node->retry_us);
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

/* Assumes that Redis read its clock half-way between question and answer. */
static void note_skew(const struct node *node, uint64_t redis_us)
{
    uint64_t here_us = clock_wall_ms() * 1000 - (clock_monotonic_us() - node->asked_us) / 2;

    metric_set(node->round->metrics, METRIC_REDIS_CLOCK_SKEW,
               here_us > redis_us ? here_us - redis_us : redis_us - here_us);
}

/* Shards that another connection delivers by now belong to another round. */
static void ping(struct node *node)
{
    struct round *round = node->round;
    uint64_t shards;

    node->state = STATE_PING;
    node->number = ++round->number;
    shards = subscriber_ping(round->subscriber, node->shards, node->number);
    if (shards)
        node->shards = shards;
    else
        retry(node);
}

static void on_time(void *owner, const redisReply *reply, const char *why)
{
    struct node *node = owner;
    struct round *round = node->round;
    uint64_t time_us;

    (void)why;
    node->state = STATE_IDLE;
    if (node->is_void) {
        node->is_void = false;
        begin_at(round, 0);
    } else if (!reply || !read_time_us(reply, &time_us)) {
        retry(node);
    } else {
        node->ids_ms = round->callbacks.ids_ms(round->context, node->shards, time_us / 1000);
        node->time_us = time_us;
        node->told_us = clock_monotonic_us();
        note_skew(node, time_us);
        ping(node);
    }
}

static void ask_time(struct node *node)
{
    struct sl_call call = SL_CALL_INIT;

    node->state = STATE_TIME;
    node->asked_us = clock_monotonic_us();
    sl_call_begin(&call, (uint32_t)__builtin_ctzll(node->shards), false);
    sl_call_add_str(&call, "TIME");
    if (sl_call_finish(&call, NULL) < 0) {
        sl_call_done(&call);
        retry(node);
    } else if (redis_commands_run_take(node->round->commands, &call, on_time, node) < 0) {
        retry(node);
    }
}

/* Finds a node that is not asked yet: the one that had some of these shards, or an unused one.
 * NULL: all are asked. */
static struct node *find_node(struct round *round, uint64_t shards)
{
    struct node *fresh = NULL;

    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        struct node *node = &round->nodes[i];

        if (node->state != STATE_IDLE)
            continue;
        if (node->shards & shards)
            return node;
        if (node->shards == 0 && !fresh)
            fresh = node;
    }
    return fresh;
}

/* A shard belongs to one node. */
static void give_shards(struct node *node, uint64_t shards)
{
    struct round *round = node->round;

    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++)
        round->nodes[i].shards &= ~shards;
    node->shards = shards;
}

/* The shards without an outstanding round. */
static uint64_t idle_shards(const struct round *round)
{
    uint64_t shards = subscriber_heard(round->subscriber);

    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        if (round->nodes[i].state != STATE_IDLE)
            shards &= ~round->nodes[i].shards;
    }
    return shards;
}

static void begin_node(struct round *round, uint64_t shards)
{
    struct node *node = find_node(round, shards);

    if (!node)
        return;
    give_shards(node, shards);
    if (node->retry_us > round->began_us)
        begin_at(round, node->retry_us);
    else
        ask_time(node);
}

static void begin(struct round *round)
{
    uint64_t nodes[SL_SHARDS_MAX];
    uint32_t count = redis_commands_nodes(round->commands, idle_shards(round), nodes);

    if (round->due_us)
        set_timer(round, 0);
    round->began_us = clock_monotonic_us();
    for (uint32_t i = 0; i < count; i++)
        begin_node(round, nodes[i]);
    if (count == 0)
        begin_at(round, round->began_us + RETRY_PAUSE_US);
}

/* When the clocks of all nodes that can be asked will certainly have reached `time_us`; 0:
 * unknown. */
static uint64_t when_redis_has(const struct round *round, uint64_t time_us)
{
    uint64_t now_us = clock_monotonic_us(), at_us = 0;

    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        const struct node *node = &round->nodes[i];
        uint64_t has_us = node->told_us + (time_us > node->time_us ? time_us - node->time_us : 0);

        if (node->shards && node->state == STATE_IDLE && now_us - node->told_us <= CLOCK_AGE_US &&
            has_us > at_us)
            at_us = has_us;
    }
    return at_us;
}

void round_want(struct round *round, uint64_t time_ms)
{
    uint64_t earliest_us = round->began_us + PAUSE_US, due_us;

    if (!round->is_hearing || !idle_shards(round))
        return;
    due_us = when_redis_has(round, time_ms * 1000);
    if (due_us > clock_monotonic_us() + FORESEEN_US)
        due_us = 0;
    begin_at(round, due_us > earliest_us ? due_us : earliest_us);
}

void round_want_later(struct round *round, uint64_t pause_ms)
{
    if (round->is_hearing && idle_shards(round))
        begin_at(round, round->began_us + pause_ms * 1000);
}

/* By the clock that is farthest ahead; 0: unknown. */
static uint64_t next_second_us(const struct round *round)
{
    uint64_t now_us = clock_monotonic_us(), latest_us = 0;

    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        const struct node *node = &round->nodes[i];
        uint64_t time_us = node->time_us + (now_us - node->told_us);

        if (node->shards && node->told_us && time_us > latest_us)
            latest_us = time_us;
    }
    return latest_us ? (latest_us / SECOND_US + 1) * SECOND_US : 0;
}

void round_want_second(struct round *round)
{
    uint64_t second_us = next_second_us(round), due_us;

    if (!round->is_hearing || !idle_shards(round))
        return;
    due_us = second_us ? when_redis_has(round, second_us) : 0;
    begin_at(round, due_us ? due_us : round->began_us + PAUSE_US);
}

void round_pong(struct round *round, uint64_t number)
{
    uint64_t heard = subscriber_heard(round->subscriber);

    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        struct node *node = &round->nodes[i];

        if (node->state != STATE_PING || node->number != number)
            continue;
        node->state = STATE_IDLE;
        if ((node->shards & heard) && node->ids_ms > SL_ID_EPOCH_MS)
            round->callbacks.over(round->context, sl_id_first_at(node->ids_ms) - 1,
                                  node->shards & heard);
        else
            retry(node);
        return;
    }
}

void round_set_hearing(struct round *round, bool is_hearing)
{
    round->is_hearing = is_hearing;
    if (is_hearing)
        return;
    set_timer(round, 0);
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        struct node *node = &round->nodes[i];

        node->is_void = node->state == STATE_TIME;
        node->state = node->is_void ? STATE_TIME : STATE_IDLE;
    }
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
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++)
        round->nodes[i].round = round;
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
