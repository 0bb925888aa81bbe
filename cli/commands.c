/* commands.c - the table of commands, in the order of the help.
 *
 * Each is defined in the file with its name. */
#include "cli/commands.h"

/* Defined in cli/NAME.c. */
extern const struct command command_cluster_try;
extern const struct command command_comments;
extern const struct command command_common_followers;
extern const struct command command_common_following;
extern const struct command command_completion;
extern const struct command command_config_get;
extern const struct command command_config_list;
extern const struct command command_config_set;
extern const struct command command_delete;
extern const struct command command_dictionary_list;
extern const struct command command_dictionary_show;
extern const struct command command_dictionary_train;
extern const struct command command_dictionary_withdraw;
extern const struct command command_follow;
extern const struct command command_followers;
extern const struct command command_following;
extern const struct command command_help;
extern const struct command command_hide;
extern const struct command command_home;
extern const struct command command_init;
extern const struct command command_like;
extern const struct command command_likes;
extern const struct command command_mute;
extern const struct command command_post;
extern const struct command command_posts;
extern const struct command command_read;
extern const struct command command_replay;
extern const struct command command_revoke;
extern const struct command command_shards_list;
extern const struct command command_shards_move;
extern const struct command command_shards_plan;
extern const struct command command_connections;
extern const struct command command_estimate;
extern const struct command command_tail;
extern const struct command command_tasks;
extern const struct command command_tasks_drop;
extern const struct command command_tasks_retry;
extern const struct command command_token;
extern const struct command command_token_check;
extern const struct command command_top;
extern const struct command command_unfollow;
extern const struct command command_unhide;
extern const struct command command_unlike;
extern const struct command command_unmute;
extern const struct command command_upgrade;
extern const struct command command_user_add;
extern const struct command command_user_rename;
extern const struct command command_user_show;
extern const struct command command_worker;

static const struct command_entry entries[] = {
    {"Users and posts", &command_user_add},
    {NULL, &command_user_show},
    {NULL, &command_user_rename},
    {NULL, &command_post},
    {NULL, &command_delete},
    {NULL, &command_read},
    {NULL, &command_posts},
    {NULL, &command_comments},
    {NULL, &command_home},
    {"Likes, follows, privacy", &command_like},
    {NULL, &command_unlike},
    {NULL, &command_likes},
    {NULL, &command_follow},
    {NULL, &command_unfollow},
    {NULL, &command_followers},
    {NULL, &command_following},
    {NULL, &command_common_followers},
    {NULL, &command_common_following},
    {NULL, &command_hide},
    {NULL, &command_unhide},
    {NULL, &command_mute},
    {NULL, &command_unmute},
    {"Streams", &command_token},
    {NULL, &command_token_check},
    {NULL, &command_revoke},
    {NULL, &command_tail},
    {NULL, &command_estimate},
    {NULL, &command_connections},
    {NULL, &command_replay},
    {NULL, &command_dictionary_train},
    {NULL, &command_dictionary_list},
    {NULL, &command_dictionary_show},
    {NULL, &command_dictionary_withdraw},
    {"Running Sluice", &command_init},
    {NULL, &command_config_list},
    {NULL, &command_config_get},
    {NULL, &command_config_set},
    {NULL, &command_upgrade},
    {NULL, &command_shards_list},
    {NULL, &command_shards_plan},
    {NULL, &command_shards_move},
    {NULL, &command_top},
    {NULL, &command_worker},
    {NULL, &command_tasks},
    {NULL, &command_tasks_retry},
    {NULL, &command_tasks_drop},
    {NULL, &command_cluster_try},
    {"This program", &command_help},
    {NULL, &command_completion},
};

const struct command_table commands = {entries, sizeof(entries) / sizeof(entries[0])};
