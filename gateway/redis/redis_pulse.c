/* redis_pulse.c - one PING at a time, on a timer and after each failure.
 *
 * A PING is a command like others: while Redis is down it waits for a connection, and is answered
 * as soon as there is one. What counts is the time since the first PING without an answer, not the
 * number of failures. So a Redis that is down costs a single command. In a cluster, a node that
 * hangs is not the whole cluster: while its answer is outstanding another node is asked. */
#include "gateway/redis/redis_pulse.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "src/call/call_build.h"
#include "src/call/reply.h"

struct redis_pulse {
    struct redis_commands *commands;
    struct metrics *metrics;
    enum metric unanswered; /* a row of the family of METRIC_REDIS_UNANSWERED */
    redis_pulse_fn changed;
    void *context;
    uv_timer_t timer;
    uint32_t late_ms;
    uint64_t asked_ns;      /* when the last PING was sent */
    uint32_t awaited;       /* outstanding answers */
    uint32_t shard;         /* of the node that was asked last */
    uint64_t unanswered_ms; /* since when, possibly over several nodes; 0: the last PING was
                               answered */
    bool is_answered;
};

static void set_answered(struct redis_pulse *pulse, bool is_answered)
{
    if (is_answered == pulse->is_answered)
        return;
    pulse->is_answered = is_answered;
    pulse->changed(pulse->context, is_answered);
}

static void judge(struct redis_pulse *pulse)
{
    uint64_t now_ms = uv_now(pulse->timer.loop);

    if (pulse->unanswered_ms && now_ms - pulse->unanswered_ms >= pulse->late_ms)
        set_answered(pulse, false);
}

static void ask(struct redis_pulse *pulse);

static void on_reply(void *owner, const redisReply *reply, const char *why)
{
    struct redis_pulse *pulse = owner;
    uint64_t took_ns = uv_hrtime() - pulse->asked_ns;

    (void)why;
    pulse->awaited--;
    if (!reply || sl_reply_is_not_yet(reply)) {
        judge(pulse);
        if (pulse->awaited == 0)
            ask(pulse); /* so that there is always one that waits for Redis to return */
        return;
    }
    if (pulse->awaited == 0)
        metric_observe(pulse->metrics, METRIC_HISTOGRAM_REDIS_ROUND_TRIP, took_ns / 1000, 1);
    pulse->unanswered_ms = 0;
    metric_set(pulse->metrics, pulse->unanswered, 0);
    set_answered(pulse, true);
}

static void ask(struct redis_pulse *pulse)
{
    struct sl_call call = SL_CALL_INIT;

    pulse->shard = redis_commands_reached(pulse->commands);
    sl_call_begin(&call, pulse->shard, true);
    sl_call_add_str(&call, "PING");
    if (sl_call_finish(&call, NULL) < 0) {
        sl_call_done(&call);
        return;
    }
    if (!pulse->unanswered_ms) {
        pulse->unanswered_ms = uv_now(pulse->timer.loop);
        metric_set(pulse->metrics, pulse->unanswered, clock_wall_ms() * 1000);
    }
    pulse->asked_ns = uv_hrtime();
    if (redis_commands_run_take(pulse->commands, &call, on_reply, pulse) == 0)
        pulse->awaited++;
}

static void on_period(uv_timer_t *timer)
{
    struct redis_pulse *pulse = timer->data;

    judge(pulse);
    if (pulse->awaited == 0 || pulse->shard != redis_commands_reached(pulse->commands))
        ask(pulse);
}

struct redis_pulse *redis_pulse_new(uv_loop_t *loop, struct redis_commands *commands,
                                    struct metrics *metrics, enum metric unanswered,
                                    uint32_t late_ms, redis_pulse_fn changed, void *context)
{
    struct redis_pulse *pulse = mem_zalloc(sizeof(*pulse));

    if (!pulse)
        return NULL;
    pulse->commands = commands;
    pulse->metrics = metrics;
    pulse->unanswered = unanswered;
    pulse->late_ms = late_ms;
    pulse->changed = changed;
    pulse->context = context;
    uv_timer_init(loop, &pulse->timer);
    pulse->timer.data = pulse;
    uv_timer_start(&pulse->timer, on_period, 0, REDIS_PULSE_MS);
    return pulse;
}

static void release(uv_handle_t *timer)
{
    mem_free(timer->data);
}

void redis_pulse_free(struct redis_pulse *pulse)
{
    if (pulse)
        uv_close((uv_handle_t *)&pulse->timer, release);
}
