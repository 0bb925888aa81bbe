/* src/call/scripts.h - the Redis scripts, embedded in the library. Their sources are
 * src/scripts/NAME.lua, each preceded by src/scripts/common.lua and the table of settings.
 * cmake/EmbedScripts.cmake generates the definitions. */
#pragma once

#include <stddef.h>

struct sl_script {
    const char *name;
    const char *sha1; /* 40 hex digits */
    const char *source;
    size_t source_size;
};

extern const struct sl_script sl_script_apply_comment;
extern const struct sl_script sl_script_apply_follow;
extern const struct sl_script sl_script_apply_privacy;
extern const struct sl_script sl_script_archive_drop;
extern const struct sl_script sl_script_archive_due;
extern const struct sl_script sl_script_archive_erased;
extern const struct sl_script sl_script_archive_take;
extern const struct sl_script sl_script_change_rules;
extern const struct sl_script sl_script_change_user;
extern const struct sl_script sl_script_check_common;
extern const struct sl_script sl_script_common_users;
extern const struct sl_script sl_script_configure;
extern const struct sl_script sl_script_create_user;
extern const struct sl_script sl_script_delete;
extern const struct sl_script sl_script_dictionary_add;
extern const struct sl_script sl_script_dictionary_withdraw;
extern const struct sl_script sl_script_fan_out;
extern const struct sl_script sl_script_find_author;
extern const struct sl_script sl_script_find_user;
extern const struct sl_script sl_script_follow;
extern const struct sl_script sl_script_home_apply;
extern const struct sl_script sl_script_home_feed;
extern const struct sl_script sl_script_home_fill;
extern const struct sl_script sl_script_home_gain;
extern const struct sl_script sl_script_home_missing;
extern const struct sl_script sl_script_home_read;
extern const struct sl_script sl_script_home_sets;
extern const struct sl_script sl_script_init;
extern const struct sl_script sl_script_last_read;
extern const struct sl_script sl_script_like;
extern const struct sl_script sl_script_list_likes;
extern const struct sl_script sl_script_list_users;
extern const struct sl_script sl_script_log_check;
extern const struct sl_script sl_script_log_rate;
extern const struct sl_script sl_script_log_state;
extern const struct sl_script sl_script_merge;
extern const struct sl_script sl_script_note_like;
extern const struct sl_script sl_script_note_likes;
extern const struct sl_script sl_script_post;
extern const struct sl_script sl_script_privacy;
extern const struct sl_script sl_script_raise_clock;
extern const struct sl_script sl_script_read_archived;
extern const struct sl_script sl_script_read_included;
extern const struct sl_script sl_script_read_list;
extern const struct sl_script sl_script_read_posts;
extern const struct sl_script sl_script_read_public;
extern const struct sl_script sl_script_read_users;
extern const struct sl_script sl_script_read_viewer;
extern const struct sl_script sl_script_revoke;
extern const struct sl_script sl_script_task_claim;
extern const struct sl_script sl_script_task_counts;
extern const struct sl_script sl_script_task_done;
extern const struct sl_script sl_script_task_fail;
extern const struct sl_script sl_script_task_put_off;
extern const struct sl_script sl_script_task_retry;
extern const struct sl_script sl_script_task_save;
extern const struct sl_script sl_script_unrevoke;
extern const struct sl_script sl_script_upgrade;
extern const struct sl_script sl_script_use_exchange;
extern const struct sl_script sl_script_use_round;
