#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/printable.h"

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

void cli_warn(const struct cli *cli, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    say(cli, format, args);
    va_end(args);
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
