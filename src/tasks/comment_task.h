/* src/tasks/comment_task.h - the tasks `comment` and `uncomment`: a post replies to a post of
 * another shard. */
#pragma once

#include "src/tasks/task_kinds.h"

int sl_comment_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                        struct failure *reterr);
