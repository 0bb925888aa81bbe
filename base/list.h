/* base/list.h - an intrusive doubly linked list.
 *
 * The owner has a `struct list`, each member a `struct list_node`. LIST_OWNER() returns the member
 * that contains a node. A node that is zeroed or removed is in no list. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

struct list_node {
    struct list_node *previous, *next; /* NULL: in no list */
};

struct list {
    struct list_node head; /* a ring; the first member is head.next */
    size_t count;
};

#define LIST_OWNER(node, type, member) ((type *)((char *)(node)-offsetof(type, member)))

/* Iterates over the nodes. The body may remove `node`, because its successor is read before. */
#define LIST_EACH(list, node)                                                                      \
    for (struct list_node *node = (list)->head.next, *node##_next = node->next;                    \
         node != &(list)->head; node = node##_next, node##_next = node->next)

static inline void list_init(struct list *list)
{
    list->head.previous = list->head.next = &list->head;
    list->count = 0;
}

static inline bool list_is_empty(const struct list *list)
{
    return list->count == 0;
}

static inline bool list_contains(const struct list_node *node)
{
    return node->next != NULL;
}

/* Inserts `node` after `before`, which is in `list`, or the list's head to make `node` the
 * first. */
static inline void list_insert_after(struct list *list, struct list_node *before,
                                     struct list_node *node)
{
    assert(!list_contains(node) && before->next);
    node->previous = before;
    node->next = before->next;
    node->previous->next = node;
    node->next->previous = node;
    list->count++;
}

static inline void list_append(struct list *list, struct list_node *node)
{
    list_insert_after(list, list->head.previous, node);
}

/* `node` must be in `list`. */
static inline void list_remove(struct list *list, struct list_node *node)
{
    assert(list_contains(node) && list->count > 0);
    node->previous->next = node->next;
    node->next->previous = node->previous;
    node->previous = node->next = NULL;
    list->count--;
}

/* NULL: the list is empty. */
static inline struct list_node *list_first(const struct list *list)
{
    return list->count ? list->head.next : NULL;
}
