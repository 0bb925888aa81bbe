#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/database.h"
#include "src/id.h"

static int run(struct cli *cli, int argc, char **argv)
{
    static const struct option options[] = {{"shards", required_argument, NULL, 's'}, {0}};
    struct database database;
    uint32_t wanted = 0; /* no wish */
    int status;

    while (cli_option(cli, argc, argv, options) == 's') {
        char *end;
        long shards = strtol(optarg, &end, 10);

        if (end == optarg || *end || shards < 1 || shards > SL_SHARDS_MAX)
            cli_usage(cli, "--shards is a number from 1 to %d, not '%s'", SL_SHARDS_MAX, optarg);
        wanted = (uint32_t)shards;
    }
    if (optind < argc)
        cli_usage(cli, "'%s' is one argument too many", argv[optind]);

    status = database_open(&database, cli, wanted ? wanted : 1);
    if (status != CLI_GOOD)
        return status;
    if (wanted && database.meta.shards != wanted)
        status = cli_failed_with(cli,
                                 "there is a database of %" PRIu32 " shards already; their number "
                                 "is fixed when a database is made",
                                 database.meta.shards);
    else
        printf("%s database %s, shards: %" PRIu32 "\n", database.meta.is_new ? "made" : "found",
               database.meta.database_id, database.meta.shards);
    database_close(&database);
    return status == CLI_GOOD ? cli_done(cli) : status;
}

const struct command command_init = {
    .name = "init",
    .arguments = "[--shards N]",
    .summary = "make a database, or look at the one that is there",
    .help = "Prints the identity of the database and its number of shards.\n\n"
            "--shards N   1 to 64, fixed for ever (default 1); fails when there is a\n"
            "             database with another number\n",
    .run = run,
};
