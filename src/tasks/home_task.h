/* src/tasks/home_task.h - the tasks that maintain home timelines. */
#pragma once

#include "src/tasks/task_kinds.h"

/* `fan_out` (fields post, author, from) pushes a post to the author's followers. `take_back`
 * removes a deleted post from their timelines. Both process the followers behind the position
 * `from`; `+inf`: all. */
int sl_fan_out_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                        struct failure *reterr);

/* `merge` (field author) tells all shards that the author's posts, from the operation's id on, are
 * merged by reads instead of pushed. */
int sl_merge_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                      struct failure *reterr);

/* `backfill` (field user) adds missing posts to the user's timeline. */
int sl_backfill_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                         struct failure *reterr);

/* `gain` (fields user and target): the target's shard knows now that the user wants the target's
 * posts. Adds those that were not pushed before that to the timeline. */
int sl_gain_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                     struct failure *reterr);
