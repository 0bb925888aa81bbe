#include "gateway/redis/redis_pulse.h"

#include "base/alloc.h"
#include "src/call/call_build.h"

struct redis_pulse {
    struct redis_commands *commands;
    struct metrics *metrics;
    uv_timer_t timer;
    uint64_t asked_ns; /* 0: no answer is awaited */
};

static void on_reply(void *owner, const redisReply *reply, const char *why)
{
    struct redis_pulse *pulse = owner;

    (void)why;
    if (reply)
        metric_observe(pulse->metrics, METRIC_HISTOGRAM_REDIS_ROUND_TRIP,
                       (uv_hrtime() - pulse->asked_ns) / 1000, 1);
    pulse->asked_ns = 0;
}

static void ask(uv_timer_t *timer)
{
    struct redis_pulse *pulse = timer->data;
    struct sl_call call = SL_CALL_INIT;

    if (pulse->asked_ns)
        return; /* one at a time: a Redis that is away costs one waiting command */
    sl_call_begin(&call, 0, true);
    sl_call_add_str(&call, "PING");
    if (sl_call_finish(&call, NULL) < 0) {
        sl_call_done(&call);
        return;
    }
    pulse->asked_ns = uv_hrtime();
    if (redis_commands_run_take(pulse->commands, &call, on_reply, pulse) < 0)
        pulse->asked_ns = 0;
}

struct redis_pulse *redis_pulse_new(uv_loop_t *loop, struct redis_commands *commands,
                                    struct metrics *metrics)
{
    struct redis_pulse *pulse = mem_zalloc(sizeof(*pulse));

    if (!pulse)
        return NULL;
    pulse->commands = commands;
    pulse->metrics = metrics;
    uv_timer_init(loop, &pulse->timer);
    pulse->timer.data = pulse;
    uv_timer_start(&pulse->timer, ask, REDIS_PULSE_MS, REDIS_PULSE_MS);
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
