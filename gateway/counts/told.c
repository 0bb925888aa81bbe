/* told.c - an array that is emptied from its front, and freed or reused when it is empty. */
#include "gateway/counts/told.h"

#include <errno.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { FIRST_CAPACITY = 8, KEPT_CAPACITY = 64 };

void told_done(struct told *told)
{
    event_unref(told->event);
    mem_free(told->tail);
    *told = (struct told){0};
}

int told_set_tail(struct told *told, struct sl_slice tail)
{
    if (!tail.data)
        return 0;
    told->tail = mem_strndup(tail.data, tail.size);
    told->tail_size = tail.size;
    return told->tail ? 0 : -ENOMEM;
}

void told_list_done(struct told_list *list)
{
    struct told told;

    while (told_list_take(list, &told))
        told_done(&told);
    mem_free(list->list);
    *list = (struct told_list){0};
}

int told_list_append(struct told_list *list, struct told *told)
{
    size_t capacity = list->capacity ? list->capacity * 2 : FIRST_CAPACITY;
    struct told *more;

    if (list->count == list->capacity) {
        more = mem_realloc(list->list, mem_array_size(capacity, sizeof(*more)));
        if (!more) {
            told_done(told);
            return -ENOMEM;
        }
        list->list = more;
        list->capacity = capacity;
    }
    list->list[list->count++] = *told;
    *told = (struct told){0};
    return 0;
}

int told_list_add(struct told_list *list, struct event *event, uint64_t id, uint64_t skipped,
                  struct sl_slice tail)
{
    struct told told = {.event = event, .id = id, .skipped = skipped};

    if (!event)
        return -ENOMEM;
    if (told_set_tail(&told, tail) < 0) {
        told_done(&told);
        return -ENOMEM;
    }
    return told_list_append(list, &told);
}

static int compare_ids(const void *a, const void *b)
{
    const struct told *left = a, *right = b;

    return (left->id > right->id) - (left->id < right->id);
}

void told_list_sort(struct told_list *list)
{
    size_t count = list->count - list->first;

    if (count > 1)
        qsort(list->list + list->first, count, sizeof(*list->list), compare_ids);
}

bool told_list_take(struct told_list *list, struct told *ret_told)
{
    if (told_list_is_empty(list))
        return false;
    *ret_told = list->list[list->first++];
    if (!told_list_is_empty(list))
        return true;
    list->first = list->count = 0;
    if (list->capacity > KEPT_CAPACITY) {
        mem_free(list->list);
        *list = (struct told_list){0};
    }
    return true;
}
