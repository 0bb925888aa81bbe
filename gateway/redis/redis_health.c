#include "gateway/redis/redis_health.h"

#include "base/alloc.h"
#include "base/log.h"
#include "gateway/redis/redis_pulse.h"

struct redis_health {
    struct redis_health_settings settings;
    struct redis_pulse *streams_pulse, *api_pulse;
    bool is_hearing, streams_are_answered, api_is_answered;
    bool is_ready;
};

/* NULL: there is nothing that it lacks. */
static const char *what_it_lacks(const struct redis_health *health)
{
    if (!health->is_hearing)
        return "the live channels are not heard";
    if (!health->streams_are_answered)
        return "Redis does not answer the streams";
    if (!health->api_is_answered)
        return "Redis does not answer the API";
    return NULL;
}

static void decide(struct redis_health *health)
{
    const char *lacks = what_it_lacks(health);

    if (health->is_ready == !lacks)
        return;
    health->is_ready = !lacks;
    metric_set(health->settings.metrics, METRIC_READY, health->is_ready);
    if (lacks)
        log_warn("redis_unusable", "why=\"%s\"", lacks);
    else
        log_info("redis_usable", "heard=yes answers=yes");
    health->settings.changed(health->settings.context, health->is_ready);
}

static void on_streams(void *context, bool is_answered)
{
    struct redis_health *health = context;

    health->streams_are_answered = is_answered;
    decide(health);
}

static void on_api(void *context, bool is_answered)
{
    struct redis_health *health = context;

    health->api_is_answered = is_answered;
    decide(health);
}

void redis_health_set_hearing(struct redis_health *health, bool is_hearing)
{
    health->is_hearing = is_hearing;
    decide(health);
}

struct redis_health *redis_health_new(const struct redis_health_settings *settings)
{
    struct redis_health *health = mem_zalloc(sizeof(*health));

    if (!health)
        return NULL;
    health->settings = *settings;
    health->streams_pulse = redis_pulse_new(settings->loop, settings->streams, settings->metrics,
                                            settings->late_ms, on_streams, health);
    health->api_pulse = redis_pulse_new(settings->loop, settings->api, settings->metrics,
                                        settings->late_ms, on_api, health);
    if (!health->streams_pulse || !health->api_pulse) {
        redis_health_free(health);
        return NULL;
    }
    return health;
}

void redis_health_free(struct redis_health *health)
{
    if (!health)
        return;
    redis_pulse_free(health->streams_pulse);
    redis_pulse_free(health->api_pulse);
    mem_free(health);
}
