/* src/tasks/relation_task.h - the target's side of what a user did to a user of another shard. */
#pragma once

#include "src/tasks/task_kinds.h"

/* For tasks with fields `user` and `target`: `follow` and `unfollow`; `hide`, `unhide`, `mute` and
 * `unmute`. */
int sl_follow_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                       struct failure *reterr);
int sl_privacy_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                        struct failure *reterr);
