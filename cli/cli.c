/* cli.c - options that every command takes, and how commands speak to people.
 *
 * A command's own options are joined with the common ones for getopt_long(), so that they may stand
 * in any order. Wrong usage ends the program at once (exit status 2): nothing has been begun then.
 * Failures are returned, since there may be something to close. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/printable.h"

enum {
    OPTION_HELP = 1000,
    OPTION_REDIS,
    OPTION_ARCHIVE,
    OPTION_CACHE,
    OPTION_WAIT_REPLICAS,
    OPTIONS_MAX = 80,
    REPLICAS_MAX = 100
};

/* The command's own options, then those of all commands. */
static void join_options(const struct option *own, struct option *ret_options)
{
    static const struct option common[] = {
        {"redis", required_argument, NULL, OPTION_REDIS},
        {"archive", required_argument, NULL, OPTION_ARCHIVE},
        {"cache", required_argument, NULL, OPTION_CACHE},
        {"wait-replicas", required_argument, NULL, OPTION_WAIT_REPLICAS},
        {"help", no_argument, NULL, OPTION_HELP},
        {0},
    };
    size_t count = 0;

    for (; own && own->name; own++)
        ret_options[count++] = *own;
    if (count + sizeof(common) / sizeof(common[0]) > OPTIONS_MAX)
        abort();
    memcpy(ret_options + count, common, sizeof(common));
}

unsigned cli_parse_replicas(const struct cli *cli, const char *text)
{
    char *end;
    unsigned long replicas = strtoul(text, &end, 10);

    if (text[0] < '0' || text[0] > '9' || *end || replicas > REPLICAS_MAX)
        cli_usage(cli, "--wait-replicas is a number up to %d, not '%s'", REPLICAS_MAX, text);
    return (unsigned)replicas;
}

int cli_option(struct cli *cli, int argc, char **argv, const struct option *options)
{
    struct option joined[OPTIONS_MAX];
    int option;

    join_options(options, joined);
    opterr = 0;
    for (;;) {
        option = getopt_long(argc, argv, ":", joined, NULL);
        switch (option) {
        case OPTION_REDIS:
            cli->redis_url = optarg;
            break;
        case OPTION_ARCHIVE:
            cli->archive_url = optarg;
            break;
        case OPTION_CACHE:
            cli->cache_url = optarg;
            break;
        case OPTION_WAIT_REPLICAS:
            cli->wait_replicas = cli_parse_replicas(cli, optarg);
            break;
        case OPTION_HELP:
            cli_help(cli->command);
            exit(cli_done(cli));
        case ':':
            cli_usage(cli, "%s needs a value", argv[optind - 1]);
        case '?':
            cli_usage(cli, "unknown option %s", argv[optind - 1]);
        default:
            return option;
        }
    }
}

void cli_no_options(struct cli *cli, int argc, char **argv)
{
    while (cli_option(cli, argc, argv, NULL) >= 0)
        ;
}

int cli_print(FILE *file, struct sl_slice text)
{
    while (text.size > 0) {
        size_t size = printable_prefix(text);
        struct printable next;

        if (size > 0 && fwrite(text.data, 1, size, file) != size)
            return -errno;
        text = sl_slice_from(text, size);
        if (text.size == 0)
            break;
        next = printable_first(text);
        if (next.code_point == '\t' || next.code_point == '\n')
            fputc((int)next.code_point, file);
        else
            fprintf(file, "\\u%04x", (unsigned)next.code_point);
        text = sl_slice_from(text, next.size);
    }
    return ferror(file) ? -errno : 0;
}

/* Others may have made what it says: a server, Redis, an archive. */
static void say(const struct cli *cli, const char *format, va_list args)
{
    struct buffer text = BUFFER_INIT;

    buffer_append_str(&text, "sluice");
    if (cli->command)
        buffer_append_format(&text, " %s", cli->command->name);
    buffer_append_str(&text, ": ");
    buffer_append_vformat(&text, format, args);
    buffer_append_char(&text, '\n');
    if (!text.failed)
        cli_print(stderr, buffer_slice(&text));
    buffer_done(&text);
}

void cli_usage(const struct cli *cli, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(cli, format, args);
    va_end(args);
    fprintf(stderr, "Try 'sluice%s%s --help'.\n", cli->command ? " " : "",
            cli->command ? cli->command->name : "");
    exit(CLI_USAGE);
}

void cli_help(const struct command *command)
{
    printf("usage: sluice [--redis URL] %s %s\n\n%s", command->name, command->arguments,
           command->help);
    printf("\n--redis URL, --archive URL, --cache URL and the exit status: see 'sluice --help'.\n");
}

int cli_failed(const struct cli *cli, const struct failure *failure)
{
    return cli_failed_with(cli, "%s", failure->text);
}

int cli_failed_with(const struct cli *cli, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(cli, format, args);
    va_end(args);
    return CLI_FAILED;
}

int cli_done(const struct cli *cli)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return CLI_GOOD;
    return cli_failed_with(cli, "cannot write the result: %s", strerror(errno));
}
