/* src/tasks/archive_task.h - the tasks about the archive; see src/tasks/task_kinds.h. */
#pragma once

#include "src/tasks/task_kinds.h"

/* A profile has outgrown its cap: moves the oldest posts of `user` to the archive. */
int sl_archive_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                        struct failure *reterr);

/* A post that the archive may have was deleted: erases `post` there. */
int sl_unarchive_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                          struct failure *reterr);
