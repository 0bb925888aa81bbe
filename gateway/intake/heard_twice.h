/* gateway/intake/heard_twice.h - detects messages that were already received in another way.
 *
 * In a cluster a live channel can be reached in two ways, SPUBLISH and PUBLISH, and a producer
 * without the core may use both to reach all subscribers. PUBLISH is received at one node; when
 * another node takes its place, that may receive from the others what the first one has already
 * delivered: so each node is a way of its own. Messages of the core have an id, by which duplicates
 * are dropped (shard_order.h); those of other producers have only their bytes. So these are
 * remembered for HEARD_TWICE_MS, at most HEARD_TWICE_COUNT of them. A message that arrives twice in
 * the same way is two events, as on a single Redis. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "gateway/intake/live_message.h"

enum { HEARD_TWICE_COUNT = 256, HEARD_TWICE_MS = 10000 };

struct heard_twice {
    struct hash_key key;
    unsigned next; /* position of the next one, which replaces the oldest */
    struct heard_once {
        uint64_t hash;
        uint64_t until_us; /* 0: unused */
        uint32_t ways;     /* by which it has arrived, as bits */
    } once[HEARD_TWICE_COUNT];
};

/* `twice` must be zeroed. */
void heard_twice_init(struct heard_twice *twice);

/* A message without an id has arrived by SPUBLISH (0), or by PUBLISH at the `way`th node at which
 * that was subscribed. true: it has already arrived in another way. */
bool heard_twice_take(struct heard_twice *twice, const struct live_message *message, uint32_t way);
