/* gateway/delivery/look_back.h - inside catch_up: the newest events that a client wants, of what
 * has passed or was logged before it came.
 *
 * Looks at events from the newest to older ones: first at the ring, from where it ended when the
 * client came, then at batches of the logs, until enough are found, nothing is left, or
 * LOOK_BACK_EVENTS logged events have been looked at. A deletion stands behind the post that it
 * removes, so who looks back knows of it first, and passes the post over.
 *
 * What is found is given to the client all at once, the oldest first; then it goes on in the ring
 * exactly where looking back began. Belongs to the thread of its loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/delivery/lane.h"
#include "gateway/delivery/log_cache.h"
#include "gateway/delivery/outbox.h"
#include "gateway/delivery/ring.h"

enum {
    LOOK_BACK_EVENTS = 10000,  /* logged ones, of all shards together */
    LOOK_BACK_BYTES = 4 << 20, /* of what is found; what is older is left out */
};

struct look_back;

enum looking {
    LOOKING,           /* there is more to look at, now */
    LOOKING_WAITS,     /* for a batch of the shard's log */
    LOOKING_HAS_ENDED, /* all is found, or nothing more can be */
    LOOKING_FAILED     /* out of memory */
};

/* Of everything that has passed until now, the `wanted` newest. `keeps_deletions`: deletions are
 * among them (who takes no posts), else they only count for the posts that they remove. NULL: out
 * of memory. */
struct look_back *look_back_new(const struct ring *ring, uint32_t wanted, bool keeps_deletions);
void look_back_free(struct look_back *look_back); /* NULL is fine */

/* Looks at one segment, or asks the log for a batch (`log` NULL: there is none). The lane is ready.
 * *ret_events: how many have been looked at. *ret_shard: of the log that is waited for. */
enum looking look_back_step(struct look_back *look_back, struct lane *lane, struct log_cache *log,
                            size_t *ret_events, uint32_t *ret_shard);
/* The batch that was asked for has come, or (NULL) will not. */
void look_back_batch(struct look_back *look_back, uint32_t shard, uint64_t before,
                     const struct cached_batch *batch);

/* Owes what was found to the one client of the outbox. 0; -ENOMEM. */
int look_back_give(const struct look_back *look_back, struct outbox *outbox);
