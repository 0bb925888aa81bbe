/* gateway/counts/told.h - what is to be told of a bucket, in order. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gateway/intake/event.h"

struct told {
    struct event *event; /* one reference */
    char *tail;          /* what goes before its closing brace; NULL: nothing */
    size_t tail_size;
    uint64_t id;      /* who has it has everything up to there; 0: it says nothing of that */
    uint64_t skipped; /* posts that it says are left out */
};

struct told_list {
    struct told *list;
    size_t first, count, capacity; /* from `first` on */
};

void told_done(struct told *told);
/* `tail` is copied; without data: none. 0; -ENOMEM. */
int told_set_tail(struct told *told, struct sl_slice tail);

/* Begins as {0}. */
void told_list_done(struct told_list *list);
/* Takes what `told` has, also if it fails. 0; -ENOMEM. */
int told_list_append(struct told_list *list, struct told *told);
/* In the order of ids. */
void told_list_sort(struct told_list *list);
/* false: there is none. The caller ends it with told_done(). */
bool told_list_take(struct told_list *list, struct told *ret_told);

/* NULL: there is none. */
static inline const struct told *told_list_first(const struct told_list *list)
{
    return list->first < list->count ? &list->list[list->first] : NULL;
}

/* Without data: none. */
static inline struct sl_slice told_tail(const struct told *told)
{
    return told->tail ? sl_slice(told->tail, told->tail_size) : SL_SLICE_NONE;
}

static inline bool told_list_is_empty(const struct told_list *list)
{
    return list->first == list->count;
}
