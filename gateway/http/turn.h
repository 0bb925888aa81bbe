/* gateway/http/turn.h - tasks that run at the end of the current turn of the loop.
 *
 * A connection is never closed inside a callback or an iteration over connections. Instead a task
 * is scheduled, and the server runs all tasks before the loop waits again. A task may be scheduled
 * again, also by itself. */
#pragma once

#include "base/list.h"

struct turn_task {
    struct list_node node;
    void (*run)(struct turn_task *task); /* may free the task */
};

struct turn {
    struct list tasks;
};

static inline void turn_init(struct turn *turn)
{
    list_init(&turn->tasks);
}

/* Schedules the task for the end of this turn; it runs once, however often it is scheduled. */
static inline void turn_schedule(struct turn *turn, struct turn_task *task)
{
    if (!list_contains(&task->node))
        list_append(&turn->tasks, &task->node);
}

static inline void turn_cancel(struct turn *turn, struct turn_task *task)
{
    if (list_contains(&task->node))
        list_remove(&turn->tasks, &task->node);
}

/* Runs tasks until none is left. */
static inline void turn_run(struct turn *turn)
{
    struct list_node *node;

    while ((node = list_first(&turn->tasks))) {
        struct turn_task *task = LIST_OWNER(node, struct turn_task, node);

        list_remove(&turn->tasks, node);
        task->run(task);
    }
}
