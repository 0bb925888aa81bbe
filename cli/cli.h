/* cli/cli.h - what the commands of `sluice` share: a command's row, its options, messages.
 *
 * A command is one file that defines one `struct command`, and a line in commands.c.
 * The row is the only place that says what a command takes: the parser (options.c), `--help`
 * (usage.c), the manual page (manual.c) and the completions of shells (completion.c) all read it.
 * run() walks its options with cli_option() and returns an exit status. Results go to standard
 * output, everything else to standard error. */
#pragma once

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "base/slice.h"

enum cli_status { CLI_GOOD = 0, CLI_FAILED = 1, CLI_USAGE = 2 };

struct cli;
struct command_table;

/* How often an option may stand on the command line. */
enum cli_times {
    CLI_ONCE,   /* or not at all */
    CLI_NEEDED, /* once */
    CLI_MANY,   /* each one counts */
};

struct cli_option {
    const char *name;  /* without its hyphens */
    int key;           /* what cli_option() returns, from 1 to 999 */
    const char *value; /* what stands for its value in the help: "LOGIN"; NULL: it takes none */
    const char *help;  /* sentences; wrapped where they are printed */
    const char *words; /* what a shell offers as value, with spaces between; CLI_FILE: files; NULL:
                          nothing */
    enum cli_times times;
};

#define CLI_FILE "<file>"
#define CLI_OPTIONS_END                                                                            \
    {                                                                                              \
        0                                                                                          \
    }

struct command {
    const char *name;      /* one word or two: "post", "user add" */
    const char *arguments; /* behind the options in the usage line */
    const char *summary;   /* half a line for the list of commands */
    const char *help;      /* paragraphs, an empty line between two; NULL: the summary says all */
    const struct cli_option *options; /* CLI_OPTIONS_END at the end; NULL: none of its own */
    const char *examples;             /* command lines, each ended; NULL: none */
    const char *words;                /* what a shell offers as argument, as in cli_option */
    /* argv[0] is the command's name; getopt has not begun. */
    int (*run)(struct cli *cli, int argc, char **argv);
};

struct cli {
    const struct command_table *commands;
    const struct command *command; /* NULL: not known yet */
    unsigned wait_replicas;        /* from --wait-replicas */
    const char *archive_url;       /* from --archive or SLUICE_ARCHIVE; NULL: there is none */
    const char *cache_url;         /* from --cache or SLUICE_CACHE; NULL: there is none */
    const char *redis_url; /* from --redis or SLUICE_REDIS; NULL: the embedded Redis of sluiced */
};

/* The next option of the command: its key, -1 at their end. The common ones are handled here; a
 * wrong option, one that is given twice and one that is missing end the program with a sentence.
 * The value is `optarg`. */
int cli_option(struct cli *cli, int argc, char **argv);

/* The same for a command that has no options of its own. */
void cli_no_options(struct cli *cli, int argc, char **argv);

/* No argument is left, or the program ends. */
void cli_no_arguments(const struct cli *cli, int argc, char **argv);

/* Takes the options in front of the command's name; *ret_first is the index of that name. --help
 * and --version are told by true: the program has done what was asked. */
bool cli_leading_options(struct cli *cli, int argc, char **argv, int *ret_first);

/* Says what is wrong with the command line and where to read how it is right; exits with 2. */
_Noreturn void cli_usage(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes a text that others made: what a terminal would obey, what reorders the line, and bytes
 * that are no UTF-8 (base/printable.h) as \uNNNN, which means the same within JSON. Tabs and line
 * breaks stay. 0; a negative errno. */
int cli_print(FILE *file, struct sl_slice text);

/* The same within a line: tabs and line breaks are escaped, too. */
void cli_append_word(struct buffer *buffer, struct sl_slice text);

/* Says what went wrong; returns CLI_FAILED. */
int cli_failed(const struct cli *cli, const struct failure *failure);
int cli_failed_with(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Says something that is worth knowing, and goes on. */
void cli_warn(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends a command that has printed its result: CLI_FAILED when that could not be written, unless
 * whoever reads it went away, as `head` does. */
int cli_done(const struct cli *cli);
