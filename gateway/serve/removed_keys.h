/* gateway/serve/removed_keys.h - ends the streams of a worker whose key was removed.
 *
 * When a key is missing in a fetched set, a watched file, or the reloaded settings,
 * front/key_presence.h decides when it counts as removed. Then the streams whose tokens it signed
 * end with token_revoked, spread over REMOVED_KEYS_SPREAD_MS, so that their clients do not
 * reconnect at the same moment. */
#pragma once

#include <uv.h>

#include "gateway/front/key_board.h"
#include "gateway/front/key_source.h"
#include "gateway/front/token.h"

struct streams;
struct removed_keys;

enum { REMOVED_KEYS_SPREAD_MS = 5000 };

/* `board` NULL: nothing is fetched. `tells`: logs; one worker is enough. NULL: out of memory. */
struct removed_keys *removed_keys_new(uv_loop_t *loop, struct streams *streams,
                                      struct key_board *board, bool tells);

struct removed_keys_rules {
    const struct token_policy *policy;
    const struct key_sources *sources;
    uint64_t after_ms;
    bool ends; /* false: the keys are tracked, but no stream is ended */
};

/* Applies from now on; what the rules point to must exist until the next call. */
void removed_keys_set(struct removed_keys *removed, const struct removed_keys_rules *rules);

/* Call it before the streams are closed. The loop must run once more to close the handles. */
void removed_keys_free(struct removed_keys *removed);
