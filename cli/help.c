#include <string.h>

#include "cli/cli.h"
#include "cli/command_table.h"
#include "cli/usage.h"

static int run(struct cli *cli, int argc, char **argv)
{
    const struct command *command;
    char room[COMMAND_NAME_SIZE];
    const char *meant;
    int words, asked;

    cli_no_options(cli, argc, argv);
    asked = argc - optind;
    if (asked == 0) {
        usage_print_all(stdout, cli->commands);
        return cli_done(cli);
    }
    command = command_table_find(cli->commands, asked, argv + optind, &words);
    if (command && words == asked) {
        usage_print_command(stdout, command);
        return cli_done(cli);
    }
    if (asked == 1 && command_table_is_group(cli->commands, argv[optind])) {
        usage_print_group(stdout, cli->commands, argv[optind]);
        return cli_done(cli);
    }
    meant = command_table_nearest(cli->commands, argv[optind], room);
    if (meant)
        cli_usage(cli, "there is no command '%s'; is '%s' meant?", argv[optind], meant);
    cli_usage(cli, "there is no such command; 'sluice help' lists them");
}

const struct command command_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .summary = "list the commands, or describe one",
    .examples = "sluice help\n"
                "sluice help user add\n",
    .run = run,
};
