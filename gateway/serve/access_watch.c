/* access_watch.c - a list of revocations, which is asked about each token, and a walk over the
 * streams.
 *
 * Requests are checked when they arrive, by the policy of tokens, which asks the list. When the
 * list has changed all streams are checked, some in each turn: so a revocation costs a look-up for
 * each stream, however many streams it concerns. */
#include "gateway/serve/access_watch.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/access/revocation_list.h"
#include "gateway/api/api.h"
#include "gateway/redis/redis_health.h"
#include "gateway/streams/stream_walk.h"

enum { DRAIN_POLL_MS = 250 };

struct access_watch {
    struct access_watch_settings settings;
    struct revocation_list *revocations;
    struct stream_walk *walk; /* NULL: streams are no longer ended */
    uint32_t shards;
};

static bool is_revoked(void *context, const struct token *token)
{
    const struct access_watch *watch = context;

    return revocation_list_has(watch->revocations, token, clock_wall_ms());
}

static void on_asked(void *context, size_t ended)
{
    (void)context;
    if (ended > 0)
        log_info("streams_revoked", "streams=%zu", ended);
}

static void on_changed(void *context)
{
    struct access_watch *watch = context;

    if (watch->walk)
        stream_walk_begin(watch->walk);
}

static void on_known(void *context, bool is_known)
{
    struct access_watch *watch = context;

    if (is_known)
        api_redis_found(watch->settings.api, watch->shards);
    redis_health_set_access(watch->settings.health, is_known);
}

void access_watch_set_policy(struct access_watch *watch, struct token_policy *policy)
{
    token_policy_set_revoked(policy, revocation_list_has, watch->revocations);
}

void access_watch_hear(struct access_watch *watch, uint32_t shards)
{
    watch->shards = shards;
    revocation_list_begin(watch->revocations);
}

void access_watch_miss(struct access_watch *watch, uint32_t shard)
{
    if (shard == 0) /* which has the revocations */
        revocation_list_read(watch->revocations);
}

void access_watch_take(struct access_watch *watch, const struct event *event)
{
    revocation_list_take(watch->revocations, event);
}

void access_watch_drain(struct access_watch *watch)
{
    revocation_list_poll(watch->revocations, DRAIN_POLL_MS);
}

static int start(struct access_watch *watch)
{
    const struct revocation_list_settings list = {
        .loop = watch->settings.loop,
        .commands = watch->settings.commands,
        .metrics = watch->settings.metrics,
        .changed = on_changed,
        .known = on_known,
        .context = watch,
    };
    const struct stream_question question = {
        .reason = DISCONNECT_TOKEN_REVOKED,
        .ask = is_revoked,
        .done = on_asked,
        .context = watch,
    };

    watch->revocations = revocation_list_new(&list);
    watch->walk = stream_walk_new(watch->settings.streams, &question);
    return watch->revocations && watch->walk ? 0 : -1;
}

struct access_watch *access_watch_new(const struct access_watch_settings *settings)
{
    struct access_watch *watch = mem_zalloc(sizeof(*watch));

    if (!watch)
        return NULL;
    watch->settings = *settings;
    if (start(watch) == 0)
        return watch;
    access_watch_stop(watch);
    access_watch_free(watch);
    return NULL;
}

void access_watch_stop(struct access_watch *watch)
{
    stream_walk_free(watch->walk);
    watch->walk = NULL;
}

void access_watch_free(struct access_watch *watch)
{
    revocation_list_free(watch->revocations);
    mem_free(watch);
}
