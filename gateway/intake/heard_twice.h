/* gateway/intake/heard_twice.h - has this message come by another way already?
 *
 * In a cluster there are two ways to a live channel, SPUBLISH and PUBLISH, and a producer without
 * the core may take both, so that it is heard whoever listens. What is said by PUBLISH is heard at
 * one node; when another one takes its place, that may get from the others what the first has told
 * already: so each is a way of its own. Messages of the core have an id, by which a second one is
 * dropped (shard_order.h); those of other producers have only their bytes. So here each is kept in
 * mind for HEARD_TWICE_MS, and HEARD_TWICE_COUNT of them. What comes twice by one way is two
 * events, as on a single Redis. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "gateway/intake/live_message.h"

enum { HEARD_TWICE_COUNT = 256, HEARD_TWICE_MS = 10000 };

struct heard_twice {
    struct hash_key key;
    unsigned next; /* where the next one is kept: in place of the oldest */
    struct heard_once {
        uint64_t hash;
        uint64_t until_us; /* 0: nothing is kept here */
        uint32_t ways;     /* that it has come by: a bit for each */
    } once[HEARD_TWICE_COUNT];
};

/* `twice` is zeroed before. */
void heard_twice_init(struct heard_twice *twice);

/* The message, which has no id, has come by SPUBLISH (0), or by PUBLISH at the `way`th node that
 * was subscribed at for that. true: it has by another way. */
bool heard_twice_take(struct heard_twice *twice, const struct live_message *message, uint32_t way);
