/* round.c - idle -> TIME is asked -> PING is asked -> idle.
 *
 * The subscribed connection is asked for nothing else that is answered with a number, so a pong is
 * known by it; and when hearing ends the round does, so that no pong of a new connection ends it. A
 * TIME that was asked before hearing began is waited for, and counts for nothing. */
#include "gateway/intake/round.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "src/call/call_build.h"
#include "src/call/reply.h"
#include "src/model/id.h"

enum state { STATE_IDLE, STATE_TIME, STATE_PING };

struct round {
    struct redis_commands *commands;
    struct metrics *metrics;
    struct round_callbacks callbacks;
    void *context;
    uv_timer_t timer; /* begins the next one */
    enum state state;
    bool is_hearing;
    bool is_void;      /* hearing has ended since TIME was asked */
    uint64_t number;   /* of the last PING */
    uint64_t began_us; /* the last one */
    uint64_t ids_ms;   /* ids are minted by this time since TIME, or a later one */
};

static void begin(struct round *round);

static void on_timer(uv_timer_t *timer)
{
    begin(timer->data);
}

static void begin_later(struct round *round, uint64_t delay_ms)
{
    round->state = STATE_IDLE;
    if (round->is_hearing)
        uv_timer_start(&round->timer, on_timer, delay_ms, 0);
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

static void on_time(void *owner, const redisReply *reply, const char *why)
{
    struct round *round = owner;
    bool was_void = round->is_void;
    uint64_t time_us;

    (void)why;
    round->is_void = false;
    if (was_void) {
        begin_later(round, 0);
        return;
    }
    if (!reply || !read_time_us(reply, &time_us)) {
        begin_later(round, ROUND_RETRY_MS);
        return;
    }
    note_skew(round, time_us);
    round->ids_ms = round->callbacks.ids_ms(round->context, time_us / 1000);
    round->state = STATE_PING;
    if (round->callbacks.ping(round->context, ++round->number) < 0)
        begin_later(round, ROUND_RETRY_MS);
}

static void begin(struct round *round)
{
    struct sl_call call = SL_CALL_INIT;

    uv_timer_stop(&round->timer);
    round->began_us = clock_monotonic_us();
    sl_call_begin(&call, 0, true);
    sl_call_add_str(&call, "TIME");
    round->state = STATE_TIME;
    if (sl_call_finish(&call, NULL) < 0) {
        sl_call_done(&call);
        begin_later(round, ROUND_RETRY_MS);
    } else if (redis_commands_run_take(round->commands, &call, on_time, round) < 0) {
        begin_later(round, ROUND_RETRY_MS);
    }
}

void round_want(struct round *round, uint64_t pause_ms)
{
    uint64_t elapsed_ms = (clock_monotonic_us() - round->began_us) / 1000;
    uint64_t delay_ms = elapsed_ms < pause_ms ? pause_ms - elapsed_ms : 0;

    if (!round->is_hearing || round->state != STATE_IDLE)
        return;
    if (delay_ms == 0)
        begin(round);
    else if (!uv_is_active((uv_handle_t *)&round->timer) ||
             uv_timer_get_due_in(&round->timer) > delay_ms)
        begin_later(round, delay_ms);
}

void round_pong(struct round *round, uint64_t number)
{
    if (round->state != STATE_PING || number != round->number)
        return;
    round->state = STATE_IDLE;
    if (round->ids_ms > SL_ID_EPOCH_MS)
        round->callbacks.over(round->context, sl_id_first_at(round->ids_ms) - 1);
}

void round_set_hearing(struct round *round, bool is_hearing)
{
    round->is_hearing = is_hearing;
    if (is_hearing)
        return;
    uv_timer_stop(&round->timer);
    if (round->state == STATE_TIME)
        round->is_void = true;
    else
        round->state = STATE_IDLE;
}

struct round *round_new(uv_loop_t *loop, struct redis_commands *commands, struct metrics *metrics,
                        const struct round_callbacks *callbacks, void *context)
{
    struct round *round = mem_zalloc(sizeof(*round));

    if (!round)
        return NULL;
    round->commands = commands;
    round->metrics = metrics;
    round->callbacks = *callbacks;
    round->context = context;
    uv_timer_init(loop, &round->timer);
    round->timer.data = round;
    return round;
}

static void release(uv_handle_t *timer)
{
    mem_free(timer->data);
}

void round_free(struct round *round)
{
    if (round)
        uv_close((uv_handle_t *)&round->timer, release);
}
