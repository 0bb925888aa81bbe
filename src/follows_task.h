/* src/follows_task.h - the target's side of a follow or unfollow between two shards. */
#pragma once

#include "src/task_kinds.h"

/* For tasks `follow` and `unfollow`, with fields `user` and `target`. */
int sl_follow_task_run(struct sl_work *work, const struct sl_task *task, struct failure *reterr);
