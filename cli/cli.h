/* cli/cli.h - the common part of all commands of `sluice`: the description of a command, its
 * options, messages.
 *
 * A command is one file that defines one `struct command`, and a line in commands.c. This row is
 * the only place that describes what a command takes: the parser (options.c), `--help` (usage.c),
 * the manual page (manual.c) and shell completions (completion.c) all read it. run() iterates over
 * its options with cli_option() and returns an exit status. Results are written to standard output,
 * everything else to standard error. */
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

/* How often an option may be given. */
enum cli_times {
    CLI_ONCE,   /* at most once */
    CLI_NEEDED, /* exactly once */
    CLI_MANY,   /* any number of times */
};

struct cli_option {
    const char *name;  /* without hyphens */
    int key;           /* returned by cli_option(), 1 to 999 */
    const char *value; /* placeholder of its value in the help: "LOGIN"; NULL: it takes none */
    const char *help;  /* sentences; wrapped when printed */
    const char *words; /* values for shell completion, separated by spaces; CLI_FILE: files; NULL:
                          none */
    enum cli_times times;
};

#define CLI_FILE "<file>"
#define CLI_OPTIONS_END                                                                            \
    {                                                                                              \
        0                                                                                          \
    }

struct command {
    const char *name;      /* one or two words: "post", "user add" */
    const char *arguments; /* after the options in the usage line */
    const char *summary;   /* half a line for the list of commands */
    const char *help;      /* paragraphs, separated by an empty line; NULL: the summary says
                              everything */
    const struct cli_option *options; /* ended by CLI_OPTIONS_END; NULL: no options of its own */
    const char *examples;             /* command lines, each with a line end; NULL: none */
    const char *words;                /* arguments for shell completion, as in cli_option */
    /* argv[0] is the command's name; getopt has not begun. */
    int (*run)(struct cli *cli, int argc, char **argv);
};

struct cli {
    const struct command_table *commands;
    const struct command *command; /* NULL: not known yet */
    unsigned wait_replicas;        /* from --wait-replicas */
    const char *archive_url;       /* from --archive or SLUICE_ARCHIVE; NULL: none */
    const char *cache_url;         /* from --cache or SLUICE_CACHE; NULL: none */
    const char *redis_url; /* from --redis or SLUICE_REDIS; NULL: the private Redis of sluiced */
};

/* Returns the key of the command's next option, -1 at the end. Common options are handled here. An
 * option that is wrong, repeated or missing ends the program with a message. The value is
 * `optarg`. */
int cli_option(struct cli *cli, int argc, char **argv);

/* For a command without options of its own. */
void cli_no_options(struct cli *cli, int argc, char **argv);

/* Ends the program if there is another argument. */
void cli_no_arguments(const struct cli *cli, int argc, char **argv);

/* Processes the options before the command's name; *ret_first is the index of the name. true:
 * --help or --version was given and has been handled. */
bool cli_leading_options(struct cli *cli, int argc, char **argv, int *ret_first);

/* Prints what is wrong with the command line and where to find help; exits with 2. */
_Noreturn void cli_usage(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Writes a text from outside: characters that control a terminal or reorder the line, and bytes
 * that are not UTF-8 (base/printable.h), are written as \uNNNN, which means the same within JSON.
 * Tabs and line breaks stay. 0; a negative errno. */
int cli_print(FILE *file, struct sl_slice text);

/* The same for a part of a line: tabs and line breaks are escaped, too. */
void cli_append_word(struct buffer *buffer, struct sl_slice text);

/* Prints what went wrong; returns CLI_FAILED. */
int cli_failed(const struct cli *cli, const struct failure *failure);
int cli_failed_with(const struct cli *cli, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Prints a warning; the program continues. */
void cli_warn(const struct cli *cli, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends a command that has printed its result: CLI_FAILED if that could not be written, unless the
 * reader has closed the pipe, as `head` does. */
int cli_done(const struct cli *cli);
