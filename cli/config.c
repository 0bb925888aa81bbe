/* config.c - config list, get, set: the settings of the database.
 *
 * Every shard has them: all are read, and a value that differs between shards is reported as an
 * error. A change goes to one shard after the other, for some settings in several rounds; if it is
 * interrupted, it is completed by repeating it. Names, bounds and defaults come from
 * src/database/settings.def. */
#include <stdio.h>

#include "cli/database.h"
#include "cli/settings.h"

static size_t find(const struct cli *cli, const char *name)
{
    struct failure failure;
    size_t i = 0;

    if (sl_setting_find(sl_slice_str(name), &i, &failure) < 0)
        cli_usage(cli, "%s; 'sluice config list' shows all", failure.text);
    return i;
}

static void print_row(const struct sl_settings *settings, size_t i)
{
    const struct sl_setting *setting = sl_setting_at(i);
    char value[SL_SETTING_TEXT_SIZE], fallback[SL_SETTING_TEXT_SIZE];

    printf("%-22s %-12s %s (default %s)\n", setting->name,
           sl_setting_print(setting, settings->at[i].value, value), setting->meaning,
           sl_setting_print(setting, setting->fallback, fallback));
}

static int run_list(struct cli *cli, int argc, char **argv)
{
    struct sl_settings settings;
    struct database database;
    int status;

    cli_no_options(cli, argc, argv);
    cli_no_arguments(cli, argc, argv);
    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    status = settings_read(&database, cli, &settings);
    database_close(&database);
    if (status != CLI_GOOD)
        return status;
    for (size_t i = 0; i < sl_setting_count(); i++)
        print_row(&settings, i);
    return cli_done(cli);
}

static int run_get(struct cli *cli, int argc, char **argv)
{
    char text[SL_SETTING_TEXT_SIZE];
    struct sl_settings settings;
    struct database database;
    size_t which;
    int status;

    cli_no_options(cli, argc, argv);
    if (argc - optind != 1)
        cli_usage(cli, "one NAME is needed");
    which = find(cli, argv[optind]);
    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    status = settings_read(&database, cli, &settings);
    database_close(&database);
    if (status != CLI_GOOD)
        return status;
    printf("%s\n", sl_setting_print(sl_setting_at(which), settings.at[which].value, text));
    return cli_done(cli);
}

static int run_set(struct cli *cli, int argc, char **argv)
{
    struct setting_change change;
    struct database database;
    int status;

    cli_no_options(cli, argc, argv);
    if (argc - optind != 2)
        cli_usage(cli, "give a NAME and a VALUE");
    change = setting_change_parse(cli, find(cli, argv[optind]), argv[optind + 1]);
    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    status = settings_change(&database, cli, &change);
    database_close(&database);
    return status;
}

const struct command command_config_list = {
    .name = "config list",
    .arguments = "",
    .summary = "show the settings of the database",
    .help = "One line for each: name, value, description.",
    .examples = "sluice config list\n",
    .run = run_list,
};

const struct command command_config_get = {
    .name = "config get",
    .arguments = "NAME",
    .summary = "show one setting",
    .help = "Prints its value; 'sluice config list' shows all names.",
    .examples = "sluice config get log-age\n",
    .words = settings_names,
    .run = run_get,
};

const struct command command_config_set = {
    .name = "config set",
    .arguments = "NAME VALUE",
    .summary = "change a setting of the running database",
    .help = "It takes effect with the next operation, for all programs. Durations are written like "
            "90s, 30m, 24h, 7d; the value default restores the default. 'sluice config list' shows "
            "all names.",
    .examples = "sluice config set log-age 7d\n"
                "sluice config set log-age default\n",
    .words = settings_names,
    .run = run_set,
};
