/* src/tasks/home_task.h - what tasks do for home timelines. */
#pragma once

#include "src/tasks/task_kinds.h"

/* `fan_out` (fields post, author, from) pushes a post to its author's followers, `take_back` takes
 * a deleted one away from them: those behind the position `from`, or `+inf` for all. */
int sl_fan_out_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                        struct failure *reterr);

/* `merge` (field author): tells all shards that the author's posts from the operation's on are
 * merged in by reads, not pushed. */
int sl_merge_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                      struct failure *reterr);

/* `backfill` (field user): reads in what is missing on the user's timeline. */
int sl_backfill_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                         struct failure *reterr);

/* `gain` (fields user and target): the target's shard knows by now that the user wants the target's
 * posts; those that were not pushed until then are to be read in. */
int sl_gain_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                     struct failure *reterr);
