#include "src/tasks/comment_task.h"

#include <hiredis/hiredis.h>

#include "src/call/call_build.h"
#include "src/call/reply.h"
#include "src/model/id.h"
#include "src/model/id_check.h"

static int build(struct sl_call *call, const struct sl_meta *meta, const struct sl_task *task,
                 struct failure *reterr)
{
    uint64_t parent, comment;
    int r;

    r = sl_task_field_id(task, "parent", &parent, reterr);
    if (r == 0)
        r = sl_id_check(parent, meta, reterr);
    if (r == 0)
        r = sl_task_field_id(task, "comment", &comment, reterr);
    if (r < 0)
        return r;
    sl_call_begin_repeatable(call, &sl_script_apply_comment, sl_id_shard(parent), meta->shards);
    sl_call_add(call, task->kind);
    sl_call_add_id(call, task->id);
    sl_call_add_id(call, parent);
    sl_call_add_id(call, comment);
    return sl_call_finish(call, reterr);
}

int sl_comment_task_run(struct sl_worker_thread *thread, const struct sl_task *task,
                        struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;

    return sl_worker_thread_apply(
        thread, &call, build(&call, sl_worker_thread_meta(thread), task, reterr), reterr);
}
