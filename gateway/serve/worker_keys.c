/* worker_keys.c - creates the parts, and passes each new policy to them.
 *
 * The policy and the sources belong to the front, which replaces both when the settings are
 * reloaded; nothing here refers to the old ones after that turn of the loop. */
#include "gateway/serve/worker_keys.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/front/key_board.h"
#include "gateway/serve/key_watch.h"
#include "gateway/serve/removed_keys.h"

struct worker_keys {
    struct worker_keys_settings settings;
    struct key_watch *watch;
    struct removed_keys *removed; /* NULL: there are no streams yet */
};

/* A fetched set may contain it by now. */
static void on_unknown_key(void *context, const char *issuer)
{
    const struct worker_keys *keys = context;
    const struct key_sources *sources = &keys->settings.front->sources;

    for (unsigned i = 0; i < sources->count; i++) {
        if (strcmp(sources->items[i].issuer, issuer) == 0)
            key_board_want(keys->settings.board, sources->items[i].id);
    }
}

static void watch_removed(struct worker_keys *keys)
{
    const struct config *config = keys->settings.config;
    const struct removed_keys_rules rules = {
        .policy = keys->settings.front->policy,
        .sources = &keys->settings.front->sources,
        .after_ms = config->keys_removed_after_ms,
        .ends = strcmp(config->keys_removed, "end") == 0,
    };

    if (keys->removed)
        removed_keys_set(keys->removed, &rules);
}

int worker_keys_renew(struct worker_keys *keys)
{
    const struct front_config *front = keys->settings.front;

    if (keys->settings.tells)
        health_set(keys->settings.metrics, HEALTH_KEYS,
                   front->sources.count > 0 ? HEALTH_UNKNOWN : HEALTH_OFF, NULL, clock_wall_ms());
    token_policy_set_unknown_key(front->policy, on_unknown_key, keys);
    watch_removed(keys);
    return key_watch_set(keys->watch, front->policy);
}

int worker_keys_watch_streams(struct worker_keys *keys, struct streams *streams)
{
    keys->removed =
        removed_keys_new(keys->settings.loop, streams, keys->settings.board, keys->settings.tells);
    watch_removed(keys);
    return keys->removed ? 0 : -ENOMEM;
}

struct worker_keys *worker_keys_new(const struct worker_keys_settings *settings)
{
    const struct key_watch_settings watch = {
        .loop = settings->loop, .metrics = settings->metrics, .tells = settings->tells};
    struct worker_keys *keys = mem_zalloc(sizeof(*keys));

    if (!keys)
        return NULL;
    keys->settings = *settings;
    keys->watch = key_watch_new(&watch);
    if (keys->watch)
        return keys;
    mem_free(keys);
    return NULL;
}

void worker_keys_free(struct worker_keys *keys)
{
    if (!keys)
        return;
    removed_keys_free(keys->removed);
    key_watch_free(keys->watch);
    mem_free(keys);
}
