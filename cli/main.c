/* main.c - sluice: which command is meant?
 *
 * Options in front of the command's name and the environment say where Redis, the archive and the
 * cache are; an empty one counts as not given. The table of commands is in the order of the help
 * text; of several names that fit the longest is meant. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

/* In cli/NAME.c. */
extern const struct command command_comments;
extern const struct command command_common_followers;
extern const struct command command_common_following;
extern const struct command command_config_get;
extern const struct command command_config_list;
extern const struct command command_config_set;
extern const struct command command_delete;
extern const struct command command_follow;
extern const struct command command_followers;
extern const struct command command_following;
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
extern const struct command command_tail;
extern const struct command command_tasks;
extern const struct command command_tasks_drop;
extern const struct command command_tasks_retry;
extern const struct command command_token;
extern const struct command command_top;
extern const struct command command_unfollow;
extern const struct command command_unhide;
extern const struct command command_unlike;
extern const struct command command_unmute;
extern const struct command command_user_add;
extern const struct command command_user_rename;
extern const struct command command_user_show;
extern const struct command command_worker;

/* In the order of the help text. */
static const struct command *const commands[] = {
    &command_init,
    &command_config_list,
    &command_config_get,
    &command_config_set,
    &command_user_add,
    &command_user_show,
    &command_user_rename,
    &command_post,
    &command_delete,
    &command_read,
    &command_posts,
    &command_comments,
    &command_like,
    &command_unlike,
    &command_likes,
    &command_follow,
    &command_unfollow,
    &command_followers,
    &command_following,
    &command_common_followers,
    &command_common_following,
    &command_home,
    &command_hide,
    &command_unhide,
    &command_mute,
    &command_unmute,
    &command_replay,
    &command_tail,
    &command_top,
    &command_token,
    &command_worker,
    &command_tasks,
    &command_tasks_retry,
    &command_tasks_drop,
};

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static void print_help(void)
{
    printf("usage: sluice [--redis URL] COMMAND ...\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-16s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n"
           "--redis URL   redis://[user:password@]host[:port][/db], unix:///path or\n"
           "              redis+sentinel://host[:port],.../master-name; else\n"
           "              SLUICE_REDIS in the environment; else the Redis that a running sluiced\n"
           "              has started in its data directory (SLUICE_DATA_DIR)\n"
           "--archive URL sqlite:/path/to/file or mysql://user[:password]@host[:port]/database,\n"
           "              where old posts are; else SLUICE_ARCHIVE in the environment; else there is\n"
           "              no archive\n"
           "--cache URL   memcached://host[:port][,host...] or memcached:///path, which keeps posts\n"
           "              at hand; else SLUICE_CACHE in the environment; else there is none\n"
           "--wait-replicas N\n"
           "              succeed only when so many replicas of Redis have the change, too\n"
           "--version     print the version\n"
           "'sluice COMMAND --help' tells more. Exit status: 0 good, 1 failed, 2 wrong usage.\n");
}

/* How many of the words a command's name takes when it is what they begin with, else 0. */
static int words_matched(const char *name, int argc, char **argv)
{
    int words = 0;

    while (words < argc) {
        size_t length = strlen(argv[words]);

        if (length == 0 || strncmp(name, argv[words], length) != 0)
            return 0;
        name += length;
        words++;
        if (*name == '\0')
            return words;
        if (*name++ != ' ')
            return 0;
    }
    return 0;
}

/* The first word of commands of two: which of them is meant? */
static bool is_group(const char *word)
{
    size_t length = strlen(word);

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strncmp(commands[i]->name, word, length) == 0 && commands[i]->name[length] == ' ')
            return true;
    }
    return false;
}

static int run_command(struct cli *cli, int argc, char **argv)
{
    int most = 0; /* words: "tasks retry" is meant rather than "tasks" */

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        int words = words_matched(commands[i]->name, argc, argv);

        if (words > most) {
            most = words;
            cli->command = commands[i];
        }
    }
    if (most > 0) {
        optind = 0; /* getopt begins anew */
        return cli->command->run(cli, argc - most + 1, argv + most - 1);
    }
    if (!is_group(argv[0]))
        cli_usage(cli, "there is no command '%s'", argv[0]);
    if (argc < 2 || strcmp(argv[1], "--help") != 0)
        cli_usage(cli, "which '%s' command?", argv[0]);
    print_help();
    return cli_done(cli);
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"redis", required_argument, NULL, 'r'},
        {"archive", required_argument, NULL, 'a'},
        {"cache", required_argument, NULL, 'c'},
        {"wait-replicas", required_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {0},
    };
    struct cli cli = {
        .redis_url = getenv("SLUICE_REDIS"),
        .archive_url = getenv("SLUICE_ARCHIVE"),
        .cache_url = getenv("SLUICE_CACHE"),
    };
    int option;

    signal(SIGPIPE, SIG_IGN); /* a lost connection or reader is an error to report */
    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:", options, NULL)) >= 0) {
        switch (option) {
        case 'r':
            cli.redis_url = optarg;
            break;
        case 'a':
            cli.archive_url = optarg;
            break;
        case 'c':
            cli.cache_url = optarg;
            break;
        case 'w':
            cli.wait_replicas = cli_parse_replicas(&cli, optarg);
            break;
        case 'h':
            print_help();
            return cli_done(&cli);
        case 'V':
            printf("sluice %s\n", SLUICE_VERSION);
            return cli_done(&cli);
        case ':':
            cli_usage(&cli, "%s needs a value", argv[optind - 1]);
        default:
            cli_usage(&cli, "unknown option %s", argv[optind - 1]);
        }
    }
    if (cli.redis_url && !cli.redis_url[0])
        cli.redis_url = NULL;
    if (cli.archive_url && !cli.archive_url[0])
        cli.archive_url = NULL;
    if (cli.cache_url && !cli.cache_url[0])
        cli.cache_url = NULL;
    if (optind == argc)
        cli_usage(&cli, "which command?");
    return run_command(&cli, argc - optind, argv + optind);
}
