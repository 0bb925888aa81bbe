/* options.c - parses the options of a command line, by the table of its command.
 *
 * A command's own options are combined with the common ones for getopt_long(), so they may be given
 * in any order, before and after arguments. Each is counted: one that may be given only once and is
 * repeated is refused, because either value might be the intended one. Wrong usage ends the program
 * at once (exit status 2), because nothing has begun then. The state is global, like that of
 * getopt: a program has one command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/command_table.h"
#include "cli/common_options.h"
#include "base/nearest.h"
#include "cli/usage.h"

enum { OPTIONS_MAX = 100, REPLICAS_MAX = 100, NUMBER_BASE = 1000 /* above characters and keys */ };

/* The options for getopt_long(): the command's own, then the common ones. */
struct walk {
    struct option options[OPTIONS_MAX + 1];
    const struct cli_option *rows[OPTIONS_MAX];
    unsigned times[OPTIONS_MAX]; /* how often each was given */
    int count;
};

static struct walk walk;

static void add_rows(const struct cli_option *rows)
{
    for (; rows && rows->name; rows++) {
        if (walk.count == OPTIONS_MAX)
            abort();
        walk.rows[walk.count] = rows;
        walk.options[walk.count] =
            (struct option){rows->name, rows->value ? required_argument : no_argument, NULL,
                            NUMBER_BASE + walk.count};
        walk.count++;
    }
}

static void begin_walk(const struct cli_option *own)
{
    walk = (struct walk){.count = 0};
    add_rows(own);
    add_rows(common_options);
    optind = 0; /* resets getopt */
    opterr = 0;
}

static unsigned parse_replicas(const struct cli *cli, const char *text)
{
    char *end;
    unsigned long replicas = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end || replicas > REPLICAS_MAX)
        cli_usage(cli, "--wait-replicas must be a number up to %d, not '%s'", REPLICAS_MAX, text);
    return (unsigned)replicas;
}

/* false: the program has done what was requested. */
static bool take_common(struct cli *cli, int key)
{
    switch (key) {
    case COMMON_REDIS:
        cli->redis_url = optarg;
        return true;
    case COMMON_ARCHIVE:
        cli->archive_url = optarg;
        return true;
    case COMMON_CACHE:
        cli->cache_url = optarg;
        return true;
    case COMMON_WAIT_REPLICAS:
        cli->wait_replicas = parse_replicas(cli, optarg);
        return true;
    case COMMON_VERSION:
        printf("sluice %s\n", SLUICE_VERSION);
        return false;
    default:
        if (cli->command)
            usage_print_command(stdout, cli->command);
        else
            usage_print_all(stdout, cli->commands);
        return false;
    }
}

/* "--limi=3" is unknown: prints the option that was probably meant, or which command has it. */
static _Noreturn void refuse_unknown(const struct cli *cli, const char *argument)
{
    char name[64];
    struct nearest search = {.text = name};
    const struct command *owner;
    int begun = 0;

    snprintf(name, sizeof(name), "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
    for (int i = 0; i < walk.count; i++) {
        begun += strncmp(walk.rows[i]->name, name, strlen(name)) == 0;
        nearest_see(&search, walk.rows[i]->name);
    }
    if (begun > 1)
        cli_usage(cli, "--%s may mean several options; write the whole name", name);
    owner = cli->command ? NULL : command_table_with_option(cli->commands, name);
    if (owner)
        cli_usage(cli, "--%s goes after the command's name: sluice %s --%s ...", name, owner->name,
                  name);
    if (search.best)
        cli_usage(cli, "unknown option --%s; is --%s meant?", name, search.best);
    cli_usage(cli, "unknown option --%s", name);
}

/* Handles an error of getopt_long(). */
static _Noreturn void refuse(const struct cli *cli, char **argv, int option)
{
    const struct cli_option *row = optopt >= NUMBER_BASE ? walk.rows[optopt - NUMBER_BASE] : NULL;

    if (row && option == ':')
        cli_usage(cli, "--%s needs a value: --%s %s", row->name, row->name, row->value);
    if (row)
        cli_usage(cli, "--%s takes no value", row->name);
    if (optopt == 0)
        refuse_unknown(cli, argv[optind - 1]);
    cli_usage(
        cli,
        "unknown option -%c; options begin with two hyphens; write -- before an argument that "
        "begins with one",
        optopt);
}

/* The row of the next option; NULL: there is none. */
static const struct cli_option *next_option(const struct cli *cli, int argc, char **argv,
                                            const char *form)
{
    int option = getopt_long(argc, argv, form, walk.options, NULL);

    if (option < 0)
        return NULL;
    if (option == 'h') {
        optopt = 'h';
        if (strcmp(argv[optind - 1], "-h") != 0) /* "-hello" */
            refuse(cli, argv, '?');
        for (int i = 0; i < walk.count; i++) {
            if (strcmp(walk.rows[i]->name, "help") == 0)
                return walk.rows[i];
        }
    }
    if (option < NUMBER_BASE)
        refuse(cli, argv, option);
    option -= NUMBER_BASE;
    if (walk.times[option]++ > 0 && walk.rows[option]->times != CLI_MANY)
        cli_usage(cli, "--%s is given twice", walk.rows[option]->name);
    return walk.rows[option];
}

static bool is_common(const struct cli_option *row)
{
    for (const struct cli_option *common = common_options; common->name; common++) {
        if (row == common)
            return true;
    }
    return false;
}

static void check_needed(const struct cli *cli)
{
    for (int i = 0; i < walk.count; i++) {
        const struct cli_option *row = walk.rows[i];

        if (row->times == CLI_NEEDED && walk.times[i] == 0)
            cli_usage(cli, "--%s %s is needed", row->name, row->value);
    }
}

int cli_option(struct cli *cli, int argc, char **argv)
{
    const struct cli_option *row;

    if (walk.count == 0)
        begin_walk(cli->command->options);
    while ((row = next_option(cli, argc, argv, ":h"))) {
        if (!is_common(row))
            return row->key;
        if (!take_common(cli, row->key))
            exit(cli_done(cli));
    }
    check_needed(cli);
    return -1;
}

void cli_no_options(struct cli *cli, int argc, char **argv)
{
    while (cli_option(cli, argc, argv) >= 0)
        ;
}

void cli_no_arguments(const struct cli *cli, int argc, char **argv)
{
    if (optind < argc)
        cli_usage(cli, "'%s' is one argument too many", argv[optind]);
}

bool cli_leading_options(struct cli *cli, int argc, char **argv, int *ret_first)
{
    const struct cli_option *row;
    bool goes_on = true;

    begin_walk(NULL);
    while (goes_on && (row = next_option(cli, argc, argv, "+:h")))
        goes_on = take_common(cli, row->key);
    *ret_first = optind;
    walk.count = 0; /* the command has other options */
    return !goes_on;
}
