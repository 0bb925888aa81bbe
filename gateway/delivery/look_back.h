/* gateway/delivery/look_back.h - internal to catch_up: finds the newest events that a client wants
 * among those that passed or were logged before it came.
 *
 * It reads from the newest to older events: first the ring, from its end at the time when the
 * client came, then batches of the logs, until enough events are found, none are left, or
 * LOOK_BACK_EVENTS logged events have been read. A deletion comes after its post, so when reading
 * backwards it is known before the post is reached, which is then skipped.
 *
 * The found events are given to the client at once, oldest first; then it continues in the ring
 * exactly where the search began. Belongs to the thread of its loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/delivery/lane.h"
#include "gateway/delivery/log_cache.h"
#include "gateway/delivery/outbox.h"
#include "gateway/delivery/ring.h"

enum {
    LOOK_BACK_EVENTS = 10000,  /* of all shards together */
    LOOK_BACK_BYTES = 4 << 20, /* of the found events; older ones are left out */
};

struct look_back;

enum looking {
    LOOKING,           /* there is more to read now */
    LOOKING_WAITS,     /* for a batch of the shard's log */
    LOOKING_HAS_ENDED, /* complete, or no more can be found */
    LOOKING_FAILED     /* out of memory */
};

/* The newest `wanted` events of everything that has passed until now. `keeps_deletions`: deletions
 * are among them (for clients without posts); otherwise they only remove their posts. NULL: out of
 * memory. */
struct look_back *look_back_new(const struct ring *ring, uint32_t wanted, bool keeps_deletions);
void look_back_free(struct look_back *look_back); /* NULL is allowed */

/* Reads one segment, or requests a batch of the log (`log` NULL: there is none). The lane must be
 * ready. *ret_events: the number of events read. *ret_shard: the log that it waits for. */
enum looking look_back_step(struct look_back *look_back, struct lane *lane, struct log_cache *log,
                            size_t *ret_events, uint32_t *ret_shard);
/* The requested batch has arrived, or (NULL) will not. */
void look_back_batch(struct look_back *look_back, uint32_t shard, uint64_t before,
                     const struct cached_batch *batch);

/* Owes the found events to the only client of the outbox. 0; -ENOMEM. */
int look_back_give(const struct look_back *look_back, struct outbox *outbox);
