/* main.c - sluice: finds and runs the command.
 *
 * Options before the command's name and the environment name Redis, the archive and the cache; an
 * empty value counts as not given. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/usage.h"

/* "user" alone, or followed by a word that is not a command of its group. */
static int run_group(struct cli *cli, int argc, char **argv)
{
    const char *second = argc > 1 ? argv[1] : "";
    const char *meant;
    char words[64], room[COMMAND_NAME_SIZE];

    if (strcmp(second, "--help") == 0 || strcmp(second, "-h") == 0 || strcmp(second, "help") == 0) {
        usage_print_group(stdout, &commands, argv[0]);
        return cli_done(cli);
    }
    if (!*second) {
        fprintf(stderr, "sluice: which '%s' command?\n", argv[0]);
        usage_print_group(stderr, &commands, argv[0]);
        return CLI_USAGE;
    }
    if (*second == '-')
        cli_usage(cli,
                  "options go before '%s' or after all words of the command's name: sluice %s "
                  "COMMAND %s ...",
                  argv[0], argv[0], second);
    snprintf(words, sizeof(words), "%s %s", argv[0], second);
    meant = command_table_nearest(&commands, words, room);
    if (meant)
        cli_usage(cli, "there is no command '%s'; is '%s' meant?", words, meant);
    fprintf(stderr, "sluice: there is no command '%s'; these begin with it:\n", words);
    usage_print_group(stderr, &commands, argv[0]);
    return CLI_USAGE;
}

static int run_command(struct cli *cli, int argc, char **argv)
{
    char room[COMMAND_NAME_SIZE];
    const char *meant;
    int words;

    cli->command = command_table_find(&commands, argc, argv, &words);
    if (cli->command)
        return cli->command->run(cli, argc - words + 1, argv + words - 1);
    if (command_table_is_group(&commands, argv[0]))
        return run_group(cli, argc, argv);
    meant = command_table_nearest(&commands, argv[0], room);
    if (meant)
        cli_usage(cli, "there is no command '%s'; is '%s' meant?", argv[0], meant);
    cli_usage(cli, "there is no command '%s'; 'sluice help' lists them", argv[0]);
}

static const char *unless_empty(const char *value)
{
    return value && *value ? value : NULL;
}

int main(int argc, char **argv)
{
    struct cli cli = {
        .commands = &commands,
        .redis_url = getenv("SLUICE_REDIS"),
        .archive_url = getenv("SLUICE_ARCHIVE"),
        .cache_url = getenv("SLUICE_CACHE"),
    };
    int first;

    signal(SIGPIPE, SIG_IGN); /* a lost connection or reader is reported as an error */
    if (cli_leading_options(&cli, argc, argv, &first))
        return cli_done(&cli);
    cli.redis_url = unless_empty(cli.redis_url);
    cli.archive_url = unless_empty(cli.archive_url);
    cli.cache_url = unless_empty(cli.cache_url);
    if (first == argc) {
        fprintf(stderr, "sluice: which command?\n\n");
        usage_print_commands(stderr, &commands);
        fprintf(stderr, "\nTry 'sluice help', or 'sluice COMMAND --help'.\n");
        return CLI_USAGE;
    }
    return run_command(&cli, argc - first, argv + first);
}
