/* gateway/delivery/reducer.h - events with some of their members, made once for all lanes.
 *
 * A reduction is an event of its own, whose frames are built and kept as those of any other. It
 * lives as long as somebody is owed it, and after that until REDUCER_KEPT_BYTES are taken: so those
 * who come back together after a restart share what one of them has had made. Whatever sets are
 * asked for, no more memory than that goes beyond what clients are owed. One per worker. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/front/dialect.h"
#include "gateway/intake/event.h"

enum { REDUCER_KEPT_BYTES = 8 << 20, REDUCER_KEPT_MAX = 4096 /* events */ };

/* Zeroed: a new one, which needs no memory. */
struct reducer {
    dialect_table *dialects; /* NULL: there are none */
    struct buffer scratch, json;
    struct event **kept; /* a ring of REDUCER_KEPT_MAX; NULL until there is one */
    size_t first_kept, kept_count;
    size_t bytes;  /* of all reductions that are alive */
    uint64_t made; /* so far */
};

/* Nobody is owed any of them. */
void reducer_done(struct reducer *reducer);

/* The event with these members only (front/event_fields.h; not all of them), and a message of ours
 * as it is; or both as a dialect says them, without a byte if it does not. What is a reduction
 * already stays as it is. The caller owns one reference; NULL: out of memory. */
struct event *reducer_reduce(struct reducer *reducer, struct event *event, uint64_t fields);

/* What to reduce it to once more, for a dialect that may say it as two messages; 0: it does not. */
uint64_t reducer_second(const struct reducer *reducer, const struct event *event, uint64_t fields);
