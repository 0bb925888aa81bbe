/* trend_slice.c - counters in the order of their numbers, and a table that finds them.
 *
 * A number grows by one, so a counter moves no further than to the front of those that it was equal
 * to, which a binary search finds. Those that are kept in the end are selected (Hoare: "Find",
 * 1961) before they are sorted: it is all one step. */
#include "gateway/counts/trend_slice.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { FIRST_CAPACITY = 64 };

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

/* One more post. */
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

static void forget(struct trend_cell *cell)
{
    mem_free(cell->text);
    people_done(&cell->people);
}

static uint32_t greater(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* The term is not there any more. `users` of it have been seen. */
static void leave_out(struct trend_slice *slice, const struct trend_cell *cell, uint32_t users)
{
    users += cell->unseen;
    slice->error = greater(slice->error, cell->posts);
    slice->unseen = greater(slice->unseen, users < cell->posts ? users : cell->posts);
}

/* A counter for a new term: another one, or that of the rarest. NULL: out of memory. */
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
    forget(cell);
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
        cell->text = mem_strndup(term.data, term.size);
        chain(slice, cell);
        if (!cell->text) {
            cell->size = 0;
            return -ENOMEM;
        }
    }
    cell->last = post;
    count_post(slice, cell);
    return people_add(&cell->people, user);
}

bool trend_slice_is_full(const struct trend_slice *slice)
{
    return slice->count == TREND_TERMS;
}

/* --- it is over --- */

int trend_compare_terms(struct sl_slice a, struct sl_slice b)
{
    int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);

    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int compare_cells(const void *left, const void *right)
{
    const struct trend_cell *a = left, *b = right;

    if (a->users != b->users)
        return a->users < b->users ? 1 : -1;
    if (a->posts != b->posts)
        return a->posts < b->posts ? 1 : -1;
    return trend_compare_terms(trend_cell_term(a), trend_cell_term(b));
}

static bool goes_before(const struct trend_slice *slice, uint32_t a, uint32_t b)
{
    return compare_cells(&slice->cells[a], &slice->cells[b]) < 0;
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t was = *a;

    *a = *b;
    *b = was;
}

/* The first TREND_KEPT of `order` are those that go before all others. No two are equal. */
static void select_kept(struct trend_slice *slice)
{
    uint32_t *order = slice->order;
    long low = 0, high = (long)slice->count - 1;

    while (low < high) {
        uint32_t pivot = order[low + (high - low) / 2];
        long i = low, j = high;

        while (i <= j) {
            while (goes_before(slice, order[i], pivot))
                i++;
            while (goes_before(slice, pivot, order[j]))
                j--;
            if (i <= j)
                swap(&order[i++], &order[j--]);
        }
        if (TREND_KEPT <= j)
            high = j;
        else if (TREND_KEPT >= i)
            low = i;
        else
            return;
    }
}

static void keep_some(struct trend_slice *slice)
{
    size_t kept = 0;

    select_kept(slice);
    for (size_t i = 0; i < slice->count; i++)
        slice->cells[slice->order[i]].place = (uint32_t)i;
    for (size_t i = 0; i < slice->count; i++) {
        struct trend_cell *cell = &slice->cells[i];

        if (cell->place < TREND_KEPT) {
            slice->cells[kept++] = *cell;
            continue;
        }
        leave_out(slice, cell, cell->users);
        forget(cell);
    }
    slice->count = kept;
    qsort(slice->cells, kept, sizeof(*slice->cells), compare_cells);
}

void trend_slice_close(struct trend_slice *slice)
{
    struct trend_cell *less;

    for (size_t i = 0; i < slice->count; i++)
        slice->cells[i].users = (uint32_t)people_count(&slice->cells[i].people);
    if (slice->count > TREND_KEPT && slice->order)
        keep_some(slice);
    mem_free(slice->order);
    mem_free(slice->heads);
    slice->order = slice->heads = NULL;
    less = slice->count ? mem_realloc(slice->cells, slice->count * sizeof(*less)) : NULL;
    slice->cells = less ? less : slice->cells;
}

void trend_slice_done(struct trend_slice *slice)
{
    for (size_t i = 0; i < slice->count; i++)
        forget(&slice->cells[i]);
    mem_free(slice->cells);
    mem_free(slice->order);
    mem_free(slice->heads);
    *slice = (struct trend_slice){0};
}
