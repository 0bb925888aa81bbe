/* redis_health.c - combines the state of the subscriber and two pulses into one readiness and three
 * parts.
 *
 * Every change is evaluated at once; nothing is polled here. One worker checks with write_watch.c
 * whether writes are accepted; the others learn it from the answers that the API gets. Only the
 * last refusal is stored. */
#include "gateway/redis/redis_health.h"

#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/metrics/health.h"
#include "gateway/redis/redis_pulse.h"

struct redis_health {
    struct redis_health_settings settings;
    struct redis_pulse *streams_pulse, *api_pulse;
    bool is_hearing, streams_are_answered, api_is_answered;
    bool access_is_known;
    bool is_ready;
    bool has_database;             /* by the last check of what writes need */
    char refusal[HEALTH_WHY_SIZE]; /* of writes; empty: Redis accepts them */
    char unheard[HEALTH_WHY_SIZE]; /* a message for the parts; the log has the reason already */
};

static const char not_heard[] = "the live channels are not heard";

static const char *what_streams_lack(const struct redis_health *health)
{
    if (!health->is_hearing)
        return not_heard;
    if (!health->streams_are_answered)
        return "Redis does not answer the streams";
    if (!health->access_is_known)
        return "the revocations of tokens have not been read";
    return NULL;
}

static const char *what_the_api_lacks(const struct redis_health *health)
{
    return health->api_is_answered ? NULL : "Redis does not answer the API";
}

/* NULL: nothing is missing. */
static const char *what_it_lacks(const struct redis_health *health)
{
    const char *streams = what_streams_lack(health);

    return streams ? streams : what_the_api_lacks(health);
}

static void note(const struct redis_health *health, enum health_part part, const char *lacks)
{
    health_set(health->settings.metrics, part, lacks ? HEALTH_FAILING : HEALTH_OK, lacks,
               clock_wall_ms());
}

static void note_parts(const struct redis_health *health)
{
    const char *api = what_the_api_lacks(health);
    const char *refusal = health->refusal[0] ? health->refusal : NULL;

    note(health, HEALTH_STREAMS, health->is_hearing ? what_streams_lack(health) : health->unheard);
    note(health, HEALTH_READS, api || health->has_database ? api : refusal);
    note(health, HEALTH_WRITES, api ? api : refusal);
}

static void decide(struct redis_health *health)
{
    const char *lacks = what_it_lacks(health);

    note_parts(health);
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

void redis_health_set_access(struct redis_health *health, bool is_known)
{
    health->access_is_known = is_known;
    decide(health);
}

void redis_health_set_unheard(struct redis_health *health, const char *why)
{
    snprintf(health->unheard, sizeof(health->unheard), "%s: %s", not_heard, why);
    note_parts(health);
}

void redis_health_set_writes(struct redis_health *health, int r, const char *why)
{
    bool were_refused = health->refusal[0];
    char room[LOG_QUOTE_SIZE];

    health->has_database = r != -ENODATA && r != -ESTALE;
    snprintf(health->refusal, sizeof(health->refusal), "%s", r < 0 ? why : "");
    note_parts(health);
    if (r < 0 && !were_refused)
        log_warn("writes_refused", "why=%s", log_quote(sl_slice_str(health->refusal), room));
    else if (r == 0 && were_refused)
        log_info("writes_accepted", "refused=no");
}

struct redis_health *redis_health_new(const struct redis_health_settings *settings)
{
    struct redis_health *health = mem_zalloc(sizeof(*health));

    if (!health)
        return NULL;
    health->settings = *settings;
    health->has_database = true;
    snprintf(health->unheard, sizeof(health->unheard), "%s", not_heard);
    note_parts(health);
    health->streams_pulse =
        redis_pulse_new(settings->loop, settings->streams, settings->metrics,
                        METRIC_REDIS_UNANSWERED, settings->late_ms, on_streams, health);
    health->api_pulse =
        redis_pulse_new(settings->loop, settings->api, settings->metrics,
                        METRIC_REDIS_UNANSWERED_API, settings->late_ms, on_api, health);
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
