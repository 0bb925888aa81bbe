/* gateway/serve/removed_keys.h - ends the streams of a worker whose key is gone.
 *
 * Of a key that is missing, in a set that was fetched, a file that is watched, or the settings that
 * were read again, front/key_roll.h says when it is gone. Then the streams whose tokens it signed
 * end with token_revoked, not all at once: spread over REMOVED_KEYS_SPREAD_MS, so that who comes
 * back with another token does not come with all others. */
#pragma once

#include <uv.h>

#include "gateway/front/key_board.h"
#include "gateway/front/key_source.h"
#include "gateway/front/token.h"

struct streams;
struct removed_keys;

enum { REMOVED_KEYS_SPREAD_MS = 5000 };

/* `board` NULL: nothing is fetched. `tells`: in the log; one worker is enough. NULL: out of memory. */
struct removed_keys *removed_keys_new(uv_loop_t *loop, struct streams *streams,
                                      struct key_board *board, bool tells);

struct removed_keys_rules {
    const struct token_policy *policy;
    const struct key_sources *sources;
    uint64_t after_ms;
    bool ends; /* no: the keys are seen, and no stream ends */
};

/* From now on; what they point to must live until the next. */
void removed_keys_set(struct removed_keys *removed, const struct removed_keys_rules *rules);

/* Before the streams are closed. The loop must run once more to let go of the handles. */
void removed_keys_free(struct removed_keys *removed);
