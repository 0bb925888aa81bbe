/* gateway/counts/trend_slice.h - how often each term was posted in a slice of time, and by how many
 * users.
 *
 * Space-Saving (Metwally, Agrawal, El Abbadi: "Efficient computation of frequent and top-k elements
 * in data streams", ICDT 2005) with TREND_TERMS counters: while there are no more terms than that,
 * all is exact; then a new term takes the place of the rarest one, and goes on from its number. Of
 * N posts of terms, a number is too large by N / TREND_TERMS at most, by `error` of the term in
 * fact, and never too small; and a term that is not there was in no more posts than the rarest that
 * is. A post has a term once. Users are a small set for each term (people.h), of those posts only
 * that were seen since it came; `unseen` bounds how many others there may be.
 *
 * A slice that is over is closed, in steps: it keeps the TREND_KEPT terms with the most users,
 * those with more posts first, and then by their bytes, in one block of memory and in no order. All
 * of it is a function of the posts in their order, and of their order only where there were more
 * than TREND_TERMS terms.
 *
 * Takes up to 2 MiB while it is open, and 0.5 MiB when it is closed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "gateway/counts/people.h"

enum {
    TREND_TERMS = 4096,
    TREND_KEPT = 1000,
    TREND_TERM_BYTES = 100 /* a longer term is not counted */
};

struct trend_cell {
    uint64_t hash; /* as it was added */
    uint64_t last; /* the post in which it was counted last */
    uint32_t posts, error;
    uint32_t unseen; /* the most users it can have had before it was counted */
    uint32_t place;  /* in `order` */
    uint32_t next;   /* of the same head, + 1; 0: none */
    uint32_t users;  /* when it was counted last: when the slice is closed, or surveyed */
    uint32_t size;
    struct people people;
    char *text;
};

struct trend_slice {
    struct trend_cell *cells; /* of a closed one with what they point to behind them, in a block */
    uint32_t *order; /* of the cells, those with the most posts first; NULL: it is closed */
    uint32_t *heads; /* of chains, by hash: a cell's number + 1 */
    size_t count, capacity;
    struct pool pool;              /* what the cells of an open one point to */
    struct trend_closing *closing; /* how far that is; NULL: not begun, or done */
    uint64_t posts;                /* all that have been told of */
    uint32_t error;  /* the most posts that a term which is not there can have been in, */
    uint32_t unseen; /* and the most users who can have written them: `error` at most */
};

/* Begins as {0}. */
void trend_slice_done(struct trend_slice *slice);
/* The term is in the post of this id by the user of this hash (distinct_hash). Equal terms have
 * equal hashes. 0; -ENOMEM: the slice is no good any more. */
int trend_slice_add(struct trend_slice *slice, struct sl_slice term, uint64_t hash, uint64_t post,
                    uint64_t user);
/* Does what is in it depend on the order of what comes? */
bool trend_slice_is_full(const struct trend_slice *slice);
/* The slice is over, and nothing is added any more. Does no more than `*work` (trends.h), which is
 * lessened. 0: it is closed; 1: not yet, call it again; -ENOMEM: the same. */
int trend_slice_close(struct trend_slice *slice, size_t *work);

static inline struct sl_slice trend_cell_term(const struct trend_cell *cell)
{
    return sl_slice(cell->text, cell->size);
}

/* By their bytes. */
int trend_compare_terms(struct sl_slice a, struct sl_slice b);
