/* base/deadline_list.h - deadlines of many objects that share one timer.
 *
 * An intrusive list, sorted by due time. All members of a list wait for the same time (`wait_ms`),
 * so new ones belong at the end, and adding, removing and renewing take constant time. Use one list
 * for each waiting time.
 *
 * The list has no clock: its owner passes `now_ms`, from any clock that does not go back, and arms
 * one timer for the earliest deadline_list_next_due_ms() of its lists:
 *
 *     struct deadline_list handshakes = DEADLINE_LIST_INIT(handshakes, 10000);
 *     deadline_list_add(&handshakes, &connection->handshake, now_ms);
 *     ...
 *     while ((due = deadline_list_take_due(&handshakes, now_ms)) != NULL)
 *         connection_time_out(DEADLINE_OWNER(due, struct connection, handshake));
 *
 * A deadline that is zeroed, removed or taken is in no list. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct deadline {
    struct list_node node;
    uint64_t due_ms;
};

struct deadline_list {
    struct list list;
    uint32_t wait_ms; /* may be changed; applies to members added or renewed afterwards */
};

#define DEADLINE_LIST_INIT(name, wait)                                                             \
    ((struct deadline_list){{{&(name).list.head, &(name).list.head}, 0}, (wait)})

#define DEADLINE_OWNER(deadline, type, member) LIST_OWNER(deadline, type, member)

static inline void deadline_list_init(struct deadline_list *list, uint32_t wait_ms)
{
    list_init(&list->list);
    list->wait_ms = wait_ms;
}

static inline bool deadline_list_is_empty(const struct deadline_list *list)
{
    return list_is_empty(&list->list);
}

static inline size_t deadline_list_count(const struct deadline_list *list)
{
    return list->list.count;
}

static inline bool deadline_is_listed(const struct deadline *deadline)
{
    return list_contains(&deadline->node);
}

/* Inserts `deadline`, which must be in no list, by its due_ms: after all members due at the same
 * time or earlier. For members with their own due time. Takes one step for each member that is due
 * later. */
static inline void deadline_list_insert(struct deadline_list *list, struct deadline *deadline)
{
    struct list_node *before = list->list.head.previous;

    assert(!deadline_is_listed(deadline));
    while (before != &list->list.head &&
           LIST_OWNER(before, struct deadline, node)->due_ms > deadline->due_ms)
        before = before->previous;
    list_insert_after(&list->list, before, &deadline->node);
}

/* Adds `deadline`, which must be in no list, with a due time `wait_ms` from now. */
static inline void deadline_list_add(struct deadline_list *list, struct deadline *deadline,
                                     uint64_t now_ms)
{
    deadline->due_ms = now_ms + list->wait_ms;
    deadline_list_insert(list, deadline);
}

/* No effect if `deadline` is in no list. It must not be in another list. */
static inline void deadline_list_remove(struct deadline_list *list, struct deadline *deadline)
{
    if (deadline_is_listed(deadline))
        list_remove(&list->list, &deadline->node);
}

/* Sets the due time to `wait_ms` from now, whether `deadline` was in this list or in none. */
static inline void deadline_list_renew(struct deadline_list *list, struct deadline *deadline,
                                       uint64_t now_ms)
{
    deadline_list_remove(list, deadline);
    deadline_list_add(list, deadline, now_ms);
}

/* The member that is due first; NULL: the list is empty. */
static inline struct deadline *deadline_list_first(const struct deadline_list *list)
{
    struct list_node *first = list_first(&list->list);

    return first ? LIST_OWNER(first, struct deadline, node) : NULL;
}

/* The earliest due time; UINT64_MAX: the list is empty. */
static inline uint64_t deadline_list_next_due_ms(const struct deadline_list *list)
{
    const struct deadline *first = deadline_list_first(list);

    return first ? first->due_ms : UINT64_MAX;
}

/* Removes and returns the first member if it is due; otherwise NULL. */
static inline struct deadline *deadline_list_take_due(struct deadline_list *list, uint64_t now_ms)
{
    struct deadline *first = deadline_list_first(list);

    if (!first || first->due_ms > now_ms)
        return NULL;
    list_remove(&list->list, &first->node);
    return first;
}
