/* init.c - makes a database. Every setting is an option, too; the table of them is
 * src/database/settings.def.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/settings.h"
#include "src/model/id.h"

enum { OPTION_SHARDS = SL_SETTINGS_MAX };

struct wish {
    uint32_t shards; /* 0: none */
    struct setting_change changes[SL_SETTINGS_MAX];
    size_t change_count;
};

static uint32_t parse_shards(const struct cli *cli, const char *text)
{
    char *end;
    long shards = strtol(text, &end, 10);

    if (end == text || *end || shards < 1 || shards > SL_SHARDS_MAX)
        cli_usage(cli, "--shards is a number from 1 to %d, not '%s'", SL_SHARDS_MAX, text);
    return (uint32_t)shards;
}

static void read_options(struct cli *cli, int argc, char **argv, struct wish *ret_wish)
{
    struct option options[SL_SETTINGS_MAX + 2] = {{0}};
    size_t count = sl_setting_count();
    struct wish wish = {.shards = 0};
    int option;

    for (size_t i = 0; i < count; i++)
        options[i] = (struct option){sl_setting_at(i)->name, required_argument, NULL, (int)i};
    options[count] = (struct option){"shards", required_argument, NULL, OPTION_SHARDS};

    while ((option = cli_option(cli, argc, argv, options)) >= 0) {
        if (option == OPTION_SHARDS)
            wish.shards = parse_shards(cli, optarg);
        else if (wish.change_count == SL_SETTINGS_MAX)
            cli_usage(cli, "too many settings");
        else
            wish.changes[wish.change_count++] = setting_change_parse(cli, (size_t)option, optarg);
    }
    if (optind < argc)
        cli_usage(cli, "'%s' is one argument too many", argv[optind]);
    *ret_wish = wish;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct database database;
    struct wish wish;
    int status;

    read_options(cli, argc, argv, &wish);
    status = database_open(&database, cli, wish.shards ? wish.shards : 1);
    if (status != CLI_GOOD)
        return status;
    if (wish.shards && database.meta.shards != wish.shards)
        status = cli_failed_with(cli,
                                 "there is a database of %" PRIu32 " shards already; their number "
                                 "is fixed when a database is made",
                                 database.meta.shards);
    for (size_t i = 0; status == CLI_GOOD && i < wish.change_count; i++)
        status = settings_change(&database, cli, &wish.changes[i]);
    if (status == CLI_GOOD)
        printf("%s database %s, shards: %" PRIu32 "\n", database.meta.is_new ? "made" : "found",
               database.meta.database_id, database.meta.shards);
    database_close(&database);
    return status == CLI_GOOD ? cli_done(cli) : status;
}

const struct command command_init = {
    .name = "init",
    .arguments = "[--shards N] [--log-count N] [--log-age AGE]",
    .summary = "make a database, or look at the one that is there",
    .help = "Prints the identity of the database and its number of shards.\n\n"
            "--shards N      1 to 64, fixed for ever (default 1); fails when there is a\n"
            "                database with another number\n"
            "--log-count N   how many events the log of a shard keeps (default 1000000)\n"
            "--log-age AGE   and for how long: 90m, 24h, 7d (default 24h)\n"
            "--NAME VALUE    any other setting that 'sluice config list' shows\n",
    .run = run,
};
