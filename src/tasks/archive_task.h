/* src/tasks/archive_task.h - the tasks that concern the archive; see src/tasks/task_kinds.h. */
#pragma once

#include "src/tasks/task_kinds.h"

/* Moves the oldest posts of `user`, whose profile has outgrown its cap, to the archive. */
int sl_archive_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                        struct failure *reterr);

/* Erases `post`, which was deleted, from the archive. */
int sl_unarchive_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                          struct failure *reterr);
