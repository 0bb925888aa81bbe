/* src/tasks/relation_task.h - tasks that change the target's side of a relation between users of
 * two shards. */
#pragma once

#include "src/tasks/task_kinds.h"

/* The tasks `follow` and `unfollow`; `hide`, `unhide`, `mute` and `unmute`. All have the fields
 * `user` and `target`. */
int sl_follow_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                       struct failure *reterr);
int sl_privacy_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                        struct failure *reterr);
