/* removed_keys.c - checks the keys once a second, or more often if keys count as removed after a
 * short time; while keys are removed, every 200 ms, together with a walk over the streams.
 *
 * The address of a stream's token in memory decides when within REMOVED_KEYS_SPREAD_MS the stream
 * is ended. The walk that begins after this time ends all that are left; then the keys are
 * forgotten. While no key is removed only the check costs time. */
#include "gateway/serve/removed_keys.h"

#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/stable_hash.h"
#include "gateway/front/key_presence.h"
#include "gateway/front/token_name.h"
#include "gateway/streams/stream_walk.h"

enum { LOOK_MS = 1000, LOOKS = 4, LEAST_MS = 50, ENDING_MS = 200 };

struct removed_keys {
    uv_timer_t timer;
    struct removed_keys_rules rules; /* without a policy: not yet set */
    struct key_board *board;
    struct key_presence *presence;
    struct stream_walk *walk;
    bool tells;
    unsigned gone;
    uint64_t walk_ms; /* when the current walk began; 0: there is none */
};

/* --- when keys were last known ------------------------------------------------------------- */

static bool is_of(const struct key_source *source, const char *issuer)
{
    char name[TOKEN_NAME_SIZE];

    token_name(sl_slice_str(source->issuer), name);
    return strcmp(name, issuer) == 0;
}

/* If there are several sets all must have been received. */
static uint64_t known_ms(void *context, const char *issuer, uint64_t now_ms)
{
    const struct removed_keys *removed = context;
    uint64_t least_ms = now_ms;

    for (unsigned i = 0; removed->board && i < removed->rules.sources->count; i++) {
        const struct key_source *source = &removed->rules.sources->items[i];
        uint64_t good_ms = key_board_good_ms(removed->board, source->id);

        if (good_ms < least_ms && is_of(source, issuer))
            least_ms = good_ms;
    }
    return least_ms;
}

static void want(void *context, const char *issuer)
{
    const struct removed_keys *removed = context;

    for (unsigned i = 0; removed->board && i < removed->rules.sources->count; i++) {
        if (is_of(&removed->rules.sources->items[i], issuer))
            key_board_want(removed->board, removed->rules.sources->items[i].id);
    }
}

/* --- ending streams ------------------------------------------------------------------------ */

static bool is_to_end(void *context, const struct token *token)
{
    const struct removed_keys *removed = context;
    const struct key_presence_key key = {token->issuer, token->kid, token->key_number};
    uint64_t turn_ms = stable_hash((uintptr_t)token) % REMOVED_KEYS_SPREAD_MS, since_ms;

    return key_presence_is_gone(removed->presence, &key, &since_ms) &&
           removed->walk_ms >= since_ms + turn_ms;
}

static void on_walked(void *context, size_t ended)
{
    struct removed_keys *removed = context;

    if (ended > 0)
        log_info("removed_key_streams", "ended=%zu", ended);
    if (removed->walk_ms > REMOVED_KEYS_SPREAD_MS)
        key_presence_forget(removed->presence, removed->walk_ms - REMOVED_KEYS_SPREAD_MS);
    removed->walk_ms = 0;
}

/* --- checking ------------------------------------------------------------------------------ */

static unsigned look(struct removed_keys *removed, uint64_t now_ms)
{
    const struct key_presence_now now = {
        .ms = now_ms,
        .after_ms = removed->rules.after_ms,
        .known_ms = known_ms,
        .want = want,
        .context = removed,
    };
    struct token_key_id id;

    key_presence_begin(removed->presence);
    for (unsigned i = 0; token_policy_key(removed->rules.policy, i, &id); i++)
        key_presence_see(removed->presence,
                         &(struct key_presence_key){id.issuer, id.kid, id.number});
    return removed->rules.ends ? key_presence_end(removed->presence, &now) : 0;
}

static uint64_t rest_ms(const struct removed_keys *removed)
{
    uint64_t ms = removed->rules.after_ms / LOOKS;

    if (removed->gone > 0)
        return ENDING_MS;
    return ms > LOOK_MS ? LOOK_MS : ms < LEAST_MS ? LEAST_MS : ms;
}

static void on_timer(uv_timer_t *timer)
{
    struct removed_keys *removed = timer->data;
    uint64_t now_ms = clock_monotonic_ms();
    unsigned gone = look(removed, now_ms);

    if (gone > removed->gone && removed->tells)
        log_info("keys_removed", "keys=%u", gone - removed->gone);
    removed->gone = gone;
    if (gone > 0 && removed->walk_ms == 0) {
        removed->walk_ms = now_ms;
        stream_walk_begin(removed->walk);
    }
    uv_timer_start(timer, on_timer, rest_ms(removed), 0);
}

/* --- creating and freeing ------------------------------------------------------------------ */

struct removed_keys *removed_keys_new(uv_loop_t *loop, struct streams *streams,
                                      struct key_board *board, bool tells)
{
    struct removed_keys *removed = mem_zalloc(sizeof(*removed));
    const struct stream_question question = {
        .reason = DISCONNECT_TOKEN_REVOKED,
        .ask = is_to_end,
        .done = on_walked,
        .context = removed,
    };

    if (!removed)
        return NULL;
    removed->board = board;
    removed->tells = tells;
    removed->presence = key_presence_new();
    removed->walk = removed->presence ? stream_walk_new(streams, &question) : NULL;
    if (!removed->walk) {
        key_presence_free(removed->presence);
        mem_free(removed);
        return NULL;
    }
    uv_timer_init(loop, &removed->timer);
    removed->timer.data = removed;
    return removed;
}

void removed_keys_set(struct removed_keys *removed, const struct removed_keys_rules *rules)
{
    removed->rules = *rules;
    uv_timer_start(&removed->timer, on_timer, 0, 0);
}

static void on_closed(uv_handle_t *handle)
{
    struct removed_keys *removed = handle->data;

    key_presence_free(removed->presence);
    mem_free(removed);
}

void removed_keys_free(struct removed_keys *removed)
{
    if (!removed)
        return;
    stream_walk_free(removed->walk);
    uv_close((uv_handle_t *)&removed->timer, on_closed);
}
