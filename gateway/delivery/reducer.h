/* gateway/delivery/reducer.h - events with fewer members, made once for all lanes.
 *
 * A reduction is an event of its own, whose frames are built and kept like those of any other. It
 * exists as long as a client is owed it, and after that until REDUCER_KEPT_BYTES are used: so
 * clients that resume together after a restart share reductions. Apart from what clients are owed,
 * the memory is limited, whatever sets of members are requested. One per worker. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/front/dialect.h"
#include "gateway/intake/event.h"

enum { REDUCER_KEPT_BYTES = 8 << 20, REDUCER_KEPT_MAX = 4096 /* events */ };

/* Initialize with zeros. */
struct reducer {
    dialect_table *dialects; /* NULL: none */
    struct buffer scratch, json;
    struct event **kept; /* a ring of REDUCER_KEPT_MAX; allocated on first use */
    size_t first_kept, kept_count;
    size_t bytes;  /* of all existing reductions */
    uint64_t made; /* number of reductions made */
};

/* Nobody may be owed any of them. */
void reducer_done(struct reducer *reducer);

/* The event with these members only (front/event_fields.h; not all of them); messages of ours are
 * returned unchanged, and so are reductions. For a dialect, both are rendered by the dialect; the
 * result is empty if it does not send them. The caller owns a reference; NULL: out of memory. */
struct event *reducer_reduce(struct reducer *reducer, struct event *event, uint64_t fields);

/* The `fields` for a second message, if a dialect renders the event as two; 0: only one. */
uint64_t reducer_second(const struct reducer *reducer, const struct event *event, uint64_t fields);
