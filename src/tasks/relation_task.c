#include "src/tasks/relation_task.h"

#include <hiredis/hiredis.h>

#include "src/call/reply.h"
#include "src/call/write_build.h"

static int build(struct sl_call *call, const struct sl_script *script, const struct sl_meta *meta,
                 const struct sl_task *task, struct failure *reterr)
{
    struct sl_user_ref target = {0};
    struct sl_write_user whom;
    uint64_t user;
    int r;

    r = sl_task_field_id(task, "user", &user, reterr);
    if (r == 0)
        r = sl_task_field_id(task, "target", &target.id, reterr);
    if (r == 0)
        r = sl_write_user_init(&whom, &target, meta, reterr);
    if (r < 0)
        return r;
    sl_call_begin_repeatable(call, script, whom.shard, meta->shards);
    sl_call_add(call, task->kind);
    sl_call_add_id(call, task->id);
    sl_call_add_id(call, user);
    sl_call_add(call, whom.slice);
    return sl_call_finish(call, reterr);
}

static int run(struct sl_worker_thread *thread, const struct sl_script *script,
               const struct sl_task *task, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;

    return sl_worker_thread_apply(
        thread, &call, build(&call, script, sl_worker_thread_meta(thread), task, reterr), reterr);
}

int sl_follow_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                       struct failure *reterr)
{
    return run(thread, &sl_script_apply_follow, task, reterr);
}

int sl_privacy_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                        struct failure *reterr)
{
    return run(thread, &sl_script_apply_privacy, task, reterr);
}
