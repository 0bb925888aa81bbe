/* tests/support/unlogged.h - what a client of a random history (history.h) was sent of the posts
 * that were published without the log.
 *
 * They are live only: a client that is connected when one passes, and wants it, is sent it once, or
 * told about a gap. Nobody is sent one that passed before; except on a home stream, where it may
 * have waited for the relations of the reader. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "tests/support/history.h"
#include "tests/support/wish.h"

struct unlogged_taken {
    uint64_t came_at; /* `now`; its connection */
    uint64_t gap_at;  /* of the last gap on this connection; 0: none */
    bool has_had[HISTORY_UNLOGGED];
    uint64_t judged_at[HISTORY_UNLOGGED]; /* it was sent something newer; 0: not yet */
    uint64_t skipped;                     /* on this connection, with a pace */
};

/* It begins another connection. */
void unlogged_come(struct unlogged_taken *taken);
/* It was told about a gap of unlogged events. */
void unlogged_take_gap(struct unlogged_taken *taken);
/* It was sent this one. NULL, or what is wrong with that. */
const char *unlogged_take(struct unlogged_taken *taken, const struct wish *wish,
                          const struct fact *fact);
/* It was live, and was sent one of the log. */
void unlogged_pass_by(struct unlogged_taken *taken, const struct fact *fact);

/* In the end: one that it should have been sent; NULL: none. */
const struct fact *unlogged_missing(const struct unlogged_taken *taken, const struct wish *wish);
/* With a pace: whether as many as it wanted were skipped on its last connection. */
bool unlogged_were_skipped(const struct unlogged_taken *taken, const struct wish *wish);
