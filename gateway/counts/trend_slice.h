/* gateway/counts/trend_slice.h - counts how often each term was posted in a slice of time, and by
 * how many users.
 *
 * The algorithm is Space-Saving (Metwally, Agrawal, El Abbadi: "Efficient computation of frequent
 * and top-k elements in data streams", ICDT 2005) with TREND_TERMS counters. Up to that number of
 * terms, counts are exact. Then a new term takes over the counter of the rarest term, and continues
 * from its value. After N posts of terms, a count is never too low, and at most N / TREND_TERMS too
 * high; `error` is the bound for a single term. A term without a counter was in no more posts than
 * the rarest term that has one. A post counts once for each term. The users of a term are a small
 * set (people.h) of those seen since it got its counter; `unseen` is the maximum number of others.
 *
 * A slice that has ended is closed, in steps: it keeps the TREND_KEPT terms with the most users;
 * equal ones are selected by posts, then by their bytes. They are in one block of memory, in no
 * order. The result is a function of the posts, and of their order only if there were more than
 * TREND_TERMS terms.
 *
 * Uses up to 2 MiB while open, and 0.5 MiB when closed. Belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "gateway/counts/people.h"

enum {
    TREND_TERMS = 4096,
    TREND_KEPT = 1000,
    TREND_TERM_BYTES = 100 /* longer terms are not counted */
};

struct trend_cell {
    uint64_t hash; /* as passed to trend_slice_add() */
    uint64_t last; /* id of the last post that was counted */
    uint32_t posts, error;
    uint32_t unseen; /* the maximum number of users before it was counted */
    uint32_t place;  /* index in `order` */
    uint32_t next;   /* in the same chain, + 1; 0: none */
    uint32_t users;  /* as counted when the slice was last closed or surveyed */
    uint32_t size;
    struct people people;
    char *text;
};

struct trend_slice {
    struct trend_cell *cells; /* when closed, one block that ends with what they point to */
    uint32_t *order;          /* indices of cells, descending by posts; NULL: closed */
    uint32_t *heads;          /* hash table of chains: index of a cell + 1 */
    size_t count, capacity;
    struct pool pool;              /* what the cells point to while the slice is open */
    struct trend_closing *closing; /* the state of closing; NULL: not begun, or done */
    uint64_t posts;                /* all posts that were added */
    uint32_t error;                /* the maximum number of posts of a term without a counter, */
    uint32_t unseen;               /* and of users who wrote them: at most `error` */
};

/* Initialize with {0}. */
void trend_slice_done(struct trend_slice *slice);
/* The term is in the post with this id, by the user with this hash (distinct_hash). Equal terms
 * must have equal hashes. 0; -ENOMEM: the slice can no longer be used. */
int trend_slice_add(struct trend_slice *slice, struct sl_slice term, uint64_t hash, uint64_t post,
                    uint64_t user);
/* Whether the contents depend on the order of posts. */
bool trend_slice_is_full(const struct trend_slice *slice);
/* Closes the slice, to which nothing may be added any more. Does at most `*work` units (trends.h)
 * and subtracts them. 0: closed; 1: call again; -ENOMEM: not closed yet either. */
int trend_slice_close(struct trend_slice *slice, size_t *work);

static inline struct sl_slice trend_cell_term(const struct trend_cell *cell)
{
    return sl_slice(cell->text, cell->size);
}

/* By their bytes, like memcmp(). */
int trend_compare_terms(struct sl_slice a, struct sl_slice b);
