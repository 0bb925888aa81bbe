/* gateway/counts/told.h - a queue of messages and events of a bucket that are to be sent. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gateway/intake/event.h"

struct told {
    struct event *event; /* an owned reference */
    char *tail;          /* inserted before the closing brace; NULL: nothing */
    size_t tail_size;
    uint64_t id;      /* a client with this message has everything up to here; 0: unchanged */
    uint64_t skipped; /* posts that the message reports as not sent */
};

struct told_list {
    struct told *list;
    size_t first, count, capacity; /* elements are from `first` on */
};

void told_done(struct told *told);
/* `tail` is copied; without data: none. 0; -ENOMEM. */
int told_set_tail(struct told *told, struct sl_slice tail);

/* Initialize with {0}. */
void told_list_done(struct told_list *list);
/* Takes ownership of the contents of `told`, even if it fails. 0; -ENOMEM. */
int told_list_append(struct told_list *list, struct told *told);
/* Appends an element of these parts. Takes ownership of `event`; NULL: out of memory. */
int told_list_add(struct told_list *list, struct event *event, uint64_t id, uint64_t skipped,
                  struct sl_slice tail);
/* Sorts by id. */
void told_list_sort(struct told_list *list);
/* false: the queue is empty. The caller frees the element with told_done(). */
bool told_list_take(struct told_list *list, struct told *ret_told);

/* NULL: the queue is empty. */
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
