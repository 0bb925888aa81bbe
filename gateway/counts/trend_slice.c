/* trend_slice.c - counters sorted by their values, and a hash table to find them.
 *
 * A value increases by one, so a counter only moves to the front of those with equal values, which
 * a binary search finds. A slice is closed in steps, each of which can be interrupted and resumed:
 * users are counted, the terms that are kept are selected (Hoare: "Find", 1961), and these are
 * copied to one block. No step frees thousands of small blocks, because these are in a pool. */
#include "gateway/counts/trend_slice.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
    FIRST_CAPACITY = 64,
    COUNT_WORK = 1, /* units of closing for each term: for counting its users, */
    ESTIMATE_WORK = 6,
    KEEP_WORK = 3
};

static_assert((TREND_TERMS & (TREND_TERMS - 1)) == 0, "capacities double up to it");

static uint32_t *head_of(const struct trend_slice *slice, uint64_t hash)
{
    return &slice->heads[hash & (slice->capacity - 1)];
}

static struct trend_cell *find(const struct trend_slice *slice, struct sl_slice term, uint64_t hash)
{
    uint32_t next = slice->capacity ? *head_of(slice, hash) : 0;

    for (; next; next = slice->cells[next - 1].next) {
        struct trend_cell *cell = &slice->cells[next - 1];

        if (cell->hash == hash && cell->size == term.size &&
            memcmp(cell->text, term.data, term.size) == 0)
            return cell;
    }
    return NULL;
}

static void chain(struct trend_slice *slice, struct trend_cell *cell)
{
    uint32_t *head = head_of(slice, cell->hash);

    cell->next = *head;
    *head = (uint32_t)(cell - slice->cells) + 1;
}

static void unchain(struct trend_slice *slice, const struct trend_cell *cell)
{
    uint32_t *link = head_of(slice, cell->hash);

    while (*link != (uint32_t)(cell - slice->cells) + 1)
        link = &slice->cells[*link - 1].next;
    *link = cell->next;
}

static int grow(struct trend_slice *slice)
{
    size_t capacity = slice->capacity ? slice->capacity * 2 : FIRST_CAPACITY;
    struct trend_cell *cells = mem_realloc(slice->cells, capacity * sizeof(*cells));
    uint32_t *order = NULL, *heads = NULL;

    if (cells)
        slice->cells = cells;
    if (cells)
        order = mem_realloc(slice->order, capacity * sizeof(*order));
    if (order)
        slice->order = order;
    if (order)
        heads = mem_zalloc(capacity * sizeof(*heads));
    if (!heads)
        return -ENOMEM;
    mem_free(slice->heads);
    slice->heads = heads;
    slice->capacity = capacity;
    for (size_t i = 0; i < slice->count; i++)
        chain(slice, &slice->cells[i]);
    return 0;
}

/* Counts another post of the term. */
static void count_post(struct trend_slice *slice, struct trend_cell *cell)
{
    uint32_t low = 0, high = cell->place, moved;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (slice->cells[slice->order[middle]].posts > cell->posts)
            low = middle + 1;
        else
            high = middle;
    }
    moved = slice->order[low];
    slice->order[cell->place] = moved;
    slice->cells[moved].place = cell->place;
    slice->order[low] = (uint32_t)(cell - slice->cells);
    cell->place = low;
    cell->posts++;
}

static void forget(struct trend_slice *slice, struct trend_cell *cell)
{
    pool_free(&slice->pool, cell->text, cell->size);
    people_done(&cell->people, &slice->pool);
}

static uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The term loses its counter. `users` of it were seen. */
static void leave_out(struct trend_slice *slice, const struct trend_cell *cell, uint32_t users)
{
    users += cell->unseen;
    slice->error = greater(slice->error, cell->posts);
    slice->unseen = greater(slice->unseen, users < cell->posts ? users : cell->posts);
}

/* A counter for a new term: an unused one, or that of the rarest term. NULL: out of memory. */
static struct trend_cell *take_cell(struct trend_slice *slice)
{
    struct trend_cell *cell;

    if (slice->count < TREND_TERMS) {
        if (slice->count == slice->capacity && grow(slice) < 0)
            return NULL;
        cell = &slice->cells[slice->count];
        *cell = (struct trend_cell){.place = (uint32_t)slice->count};
        slice->order[slice->count] = (uint32_t)slice->count;
        slice->count++;
        return cell;
    }
    cell = &slice->cells[slice->order[slice->count - 1]];
    leave_out(slice, cell, (uint32_t)people_count(&cell->people));
    unchain(slice, cell);
    forget(slice, cell);
    cell->error = slice->error;
    cell->unseen = slice->unseen;
    return cell;
}

int trend_slice_add(struct trend_slice *slice, struct sl_slice term, uint64_t hash, uint64_t post,
                    uint64_t user)
{
    struct trend_cell *cell = find(slice, term, hash);

    if (cell && cell->last == post)
        return 0;
    if (!cell) {
        cell = take_cell(slice);
        if (!cell)
            return -ENOMEM;
        cell->hash = hash;
        cell->size = (uint32_t)term.size;
        cell->text = pool_alloc(&slice->pool, term.size);
        chain(slice, cell);
        if (!cell->text) {
            cell->size = 0;
            return -ENOMEM;
        }
        memcpy(cell->text, term.data, term.size);
    }
    cell->last = post;
    count_post(slice, cell);
    return people_add(&cell->people, &slice->pool, user);
}

bool trend_slice_is_full(const struct trend_slice *slice)
{
    return slice->count == TREND_TERMS;
}

/* --- closing --- */

int trend_compare_terms(struct sl_slice a, struct sl_slice b)
{
    int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);

    return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* Each step begins with `at` = 0. */
struct trend_closing {
    unsigned step;
    size_t at;
    size_t low, high;           /* the part of `order` that is not partitioned yet, */
    size_t place;               /* and the index of the pivot */
    struct trend_cell *block;   /* for the closed slice; NULL: not yet */
    size_t block_bytes;         /* used bytes of it */
    uint64_t keys[TREND_TERMS]; /* by cell: users and posts, inverted */
};

static void spend(size_t *work, size_t units)
{
    *work -= units < *work ? units : *work;
}

static void closing_free(struct trend_closing *closing)
{
    if (!closing)
        return;
    mem_free(closing->block);
    mem_free(closing);
}

/* Cells with lower keys come first. */
static uint64_t key_of(const struct trend_cell *cell)
{
    return ~((uint64_t)cell->users << 32 | cell->posts);
}

/* No two are equal. */
static bool goes_before(const struct trend_slice *slice, uint32_t a, uint32_t b)
{
    const uint64_t *keys = slice->closing->keys;

    if (keys[a] != keys[b])
        return keys[a] < keys[b];
    return trend_compare_terms(trend_cell_term(&slice->cells[a]),
                               trend_cell_term(&slice->cells[b])) < 0;
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t was = *a;

    *a = *b;
    *b = was;
}

static size_t kept_count(const struct trend_slice *slice)
{
    return slice->count < TREND_KEPT ? slice->count : TREND_KEPT;
}

/* This step and the following ones return 0: finished; 1: no work left; -ENOMEM. */
static int count_users(struct trend_slice *slice, size_t *work)
{
    struct trend_closing *closing = slice->closing;

    for (; closing->at < slice->count && *work != 0; closing->at++) {
        struct trend_cell *cell = &slice->cells[closing->at];

        cell->users = (uint32_t)people_count(&cell->people);
        closing->keys[closing->at] = key_of(cell);
        spend(work, cell->people.is_estimated ? ESTIMATE_WORK : COUNT_WORK);
    }
    closing->high = slice->count;
    return closing->at < slice->count;
}

/* Partitions [low, high) of `order` by a pivot: the cells that come before it precede its place. */
static int divide(struct trend_slice *slice, size_t *work)
{
    struct trend_closing *closing = slice->closing;
    uint32_t *order = slice->order;
    size_t last = closing->high - 1;

    if (closing->at == 0) {
        swap(&order[closing->low + (last - closing->low) / 2], &order[last]);
        closing->at = closing->place = closing->low;
    }
    for (; closing->at < last && *work != 0; closing->at++, --*work) {
        if (goes_before(slice, order[closing->at], order[last]))
            swap(&order[closing->at], &order[closing->place++]);
    }
    if (closing->at < last)
        return 1;
    swap(&order[closing->place], &order[last]);
    return 0;
}
/* Moves the TREND_KEPT first cells, in the order of goes_before(), to the front of `order`. */
static int select_kept(struct trend_slice *slice, size_t *work)
{
    struct trend_closing *closing = slice->closing;

    while (slice->count > TREND_KEPT && closing->low < closing->high) {
        if (divide(slice, work) != 0)
            return 1;
        if (closing->place < TREND_KEPT)
            closing->low = closing->place + 1;
        else
            closing->high = closing->place;
        closing->at = 0;
    }
    return 0;
}

static int leave_out_others(struct trend_slice *slice, size_t *work)
{
    size_t kept = kept_count(slice), *at = &slice->closing->at;

    for (; *at < slice->count - kept && *work != 0; ++*at, --*work) {
        const struct trend_cell *cell = &slice->cells[slice->order[kept + *at]];

        leave_out(slice, cell, cell->users);
    }
    return *at < slice->count - kept;
}

/* The size of a term's users and text, which follow the cells in the block; aligned. */
static size_t bytes_of(const struct trend_cell *cell)
{
    const size_t unit = sizeof(uint32_t);

    return people_bytes(&cell->people) + (cell->size + unit - 1) / unit * unit;
}

static int make_block(struct trend_slice *slice, size_t *work)
{
    struct trend_closing *closing = slice->closing;
    size_t kept = kept_count(slice);

    for (; closing->at < kept && *work != 0; closing->at++, --*work)
        closing->block_bytes += bytes_of(&slice->cells[slice->order[closing->at]]);
    if (closing->at < kept)
        return 1;
    closing->block = mem_alloc(kept * sizeof(*closing->block) + closing->block_bytes);
    closing->block_bytes = kept * sizeof(*closing->block);
    return closing->block ? 0 : -ENOMEM;
}

static void keep(struct trend_closing *closing, const struct trend_cell *cell)
{
    struct trend_cell *kept = &closing->block[closing->at];
    char *room = (char *)closing->block + closing->block_bytes;

    closing->block_bytes += bytes_of(cell);
    *kept = *cell;
    people_copy(&cell->people, room, &kept->people);
    kept->text = memcpy(room + people_bytes(&cell->people), cell->text, cell->size);
}

static int fill_block(struct trend_slice *slice, size_t *work)
{
    struct trend_closing *closing = slice->closing;
    size_t kept = kept_count(slice);

    for (; closing->at < kept && *work != 0; closing->at++) {
        keep(closing, &slice->cells[slice->order[closing->at]]);
        spend(work, KEEP_WORK);
    }
    return closing->at < kept;
}

static void end_closing(struct trend_slice *slice)
{
    struct trend_slice closed = {.cells = slice->closing->block,
                                 .count = kept_count(slice),
                                 .posts = slice->posts,
                                 .error = slice->error,
                                 .unseen = slice->unseen};

    slice->closing->block = NULL;
    trend_slice_done(slice);
    *slice = closed;
}

int trend_slice_close(struct trend_slice *slice, size_t *work)
{
    static int (*const steps[])(struct trend_slice *, size_t *) = {
        count_users, select_kept, leave_out_others, make_block, fill_block};

    if (!slice->order)
        return 0;
    if (!slice->closing)
        slice->closing = mem_zalloc(sizeof(*slice->closing));
    if (!slice->closing)
        return -ENOMEM;
    for (; slice->closing->step < sizeof(steps) / sizeof(steps[0]); slice->closing->step++) {
        int r = steps[slice->closing->step](slice, work);

        if (r != 0)
            return r;
        slice->closing->at = 0;
    }
    end_closing(slice);
    return 0;
}

void trend_slice_done(struct trend_slice *slice)
{
    closing_free(slice->closing);
    pool_done(&slice->pool);
    mem_free(slice->cells);
    mem_free(slice->order);
    mem_free(slice->heads);
    *slice = (struct trend_slice){0};
}
