#include "src/tasks/task_kinds.h"

#include "src/tasks/archive_task.h"
#include "src/tasks/comment_task.h"
#include "src/tasks/home_task.h"
#include "src/tasks/relation_task.h"

/* In alphabetical order. */
static const struct {
    const char *name;
    sl_task_run_fn run;
} kinds[] = {
    {"archive", sl_archive_task_run},     {"backfill", sl_backfill_task_run},
    {"comment", sl_comment_task_run},     {"fan_out", sl_fan_out_task_run},
    {"follow", sl_follow_task_run},       {"gain", sl_gain_task_run},
    {"hide", sl_privacy_task_run},        {"merge", sl_merge_task_run},
    {"mute", sl_privacy_task_run},        {"take_back", sl_fan_out_task_run},
    {"unarchive", sl_unarchive_task_run}, {"uncomment", sl_comment_task_run},
    {"unfollow", sl_follow_task_run},     {"unhide", sl_privacy_task_run},
    {"unmute", sl_privacy_task_run},
};

sl_task_run_fn sl_task_kind_find(struct sl_slice kind)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (sl_slice_is(kind, kinds[i].name))
            return kinds[i].run;
    }
    return NULL;
}
