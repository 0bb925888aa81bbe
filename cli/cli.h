/* cli/cli.h - what the commands of `sluice` share: the table's rows, options, messages.
 *
 * A command is one file that defines one `struct command`, and a line in the table of main.c. Its
 * run() walks its options with cli_option() and returns an exit status. Results go to standard
 * output, everything else to standard error. */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/failure.h"
#include "base/slice.h"

enum cli_status { CLI_GOOD = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

struct cli;

struct command {
    const char *name;      /* one word or two: "post", "user add" */
    const char *arguments; /* behind the name in the usage line */
    const char *summary;   /* half a line for the list of commands */
    const char *help;      /* the options, each line ended, and what else is to be said */
    /* argv[0] is the command's name; getopt has not begun. */
    int (*run)(struct cli *cli, int argc, char **argv);
};

struct cli {
    const struct command *command;
    unsigned wait_replicas;  /* from --wait-replicas */
    const char *archive_url; /* from --archive or SLUICE_ARCHIVE; NULL: there is none */
    const char *cache_url;   /* from --cache or SLUICE_CACHE; NULL: there is none */
    const char *redis_url;   /* from --redis or SLUICE_REDIS; NULL: the embedded Redis of sluiced */
};

/* The next option of `options` (getopt_long's table, without short options), -1 at their end.
 * --redis, --archive, --cache, --wait-replicas and --help are every command's and handled here; a
 * wrong option ends the program. */
int cli_option(struct cli *cli, int argc, char **argv, const struct option *options);

/* The same for a command that has no options of its own. */
void cli_no_options(struct cli *cli, int argc, char **argv);

/* What stands behind --wait-replicas; ends the program when it is wrong. */
unsigned cli_parse_replicas(const struct cli *cli, const char *text);

/* Says what is wrong with the command line and where to read how it is right; exits with 2. */
_Noreturn void cli_usage(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints the usage of a command. */
void cli_help(const struct command *command);

/* Writes a text that others made: what a terminal would obey, what reorders the line, and bytes
 * that are no UTF-8 (base/printable.h) as \uNNNN, which means the same within JSON. Tabs and line
 * breaks stay. 0; a negative errno. */
int cli_print(FILE *file, struct sl_slice text);

/* Says what went wrong; returns CLI_FAILED. */
int cli_failed(const struct cli *cli, const struct failure *failure);
int cli_failed_with(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends a command that has printed its result: CLI_FAILED when that could not be written. */
int cli_done(const struct cli *cli);
