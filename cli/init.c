/* init.c - creates a database.
 *
 * Each setting is also an option; the table is src/database/settings.def. Shards of a database that
 * were not created because an earlier run was interrupted are created. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/settings.h"
#include "src/model/id.h"

#define SETTING(field, ...) NUMBER_##field,
enum {
#include "src/database/settings.def"
};
#undef SETTING

enum { KEY_SHARDS = 1, KEY_SETTINGS };

struct arguments {
    uint32_t shards; /* 0: not given */
    struct setting_change changes[SL_SETTINGS_MAX];
    size_t change_count;
};

static uint32_t parse_shards(const struct cli *cli, const char *text)
{
    char *end;
    long shards = strtol(text, &end, 10);

    if (end == text || *end || shards < 1 || shards > SL_SHARDS_MAX)
        cli_usage(cli, "--shards must be a number from 1 to %d, not '%s'", SL_SHARDS_MAX, text);
    return (uint32_t)shards;
}

static void read_options(struct cli *cli, int argc, char **argv, struct arguments *ret_arguments)
{
    struct arguments arguments = {.shards = 0};
    int option;

    while ((option = cli_option(cli, argc, argv)) >= 0) {
        if (option == KEY_SHARDS)
            arguments.shards = parse_shards(cli, optarg);
        else
            arguments.changes[arguments.change_count++] =
                setting_change_parse(cli, (size_t)option - KEY_SETTINGS, optarg);
    }
    cli_no_arguments(cli, argc, argv);
    *ret_arguments = arguments;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct database database;
    struct arguments arguments;
    int status;

    read_options(cli, argc, argv, &arguments);
    status = database_open(&database, cli, arguments.shards);
    if (status != CLI_GOOD)
        return status;
    if (arguments.shards && database.meta.shards != arguments.shards)
        status = cli_failed_with(cli,
                                 "there is a database of %" PRIu32 " shards already; their "
                                 "number is fixed when a "
                                 "database is created",
                                 database.meta.shards);
    for (size_t i = 0; status == CLI_GOOD && i < arguments.change_count; i++)
        status = settings_change(&database, cli, &arguments.changes[i]);
    if (status == CLI_GOOD)
        printf("%s database %s, shards: %" PRIu32 "\n", database.meta.is_new ? "made" : "found",
               database.meta.database_id, database.meta.shards);
    database_close(&database);
    return status == CLI_GOOD ? cli_done(cli) : status;
}

#define SETTING(field, name, kind, lowest, highest, fallback, meaning)                             \
    {                                                                                              \
        name,    KEY_SETTINGS + NUMBER_##field,                                                    \
        "VALUE", "Setting of the database: " meaning ".",                                          \
        NULL,    CLI_ONCE},
static const struct cli_option options[] = {
    {"shards", KEY_SHARDS, "N",
     "The number of shards, 1 to 64, fixed for ever; the default is 1, or 64 in a cluster. Fails "
     "if there is a database with another number.",
     NULL, CLI_ONCE},
#include "src/database/settings.def"
    CLI_OPTIONS_END,
};
#undef SETTING

const struct command command_init = {
    .name = "init",
    .arguments = "",
    .summary = "create a database, or show the existing one",
    .help =
        "Prints the identity of the database and its number of shards. The other commands create "
        "a database if there is none.\n\n"
        "Every setting shown by 'sluice config list' is also an option, and is changed if the "
        "database exists already.",
    .options = options,
    .examples = "sluice init --shards 8 --log-age 7d\n",
    .run = run,
};
