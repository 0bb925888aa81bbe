/* cli.c - messages and output of the commands.
 *
 * Failures are returned, because there may be something to close. Wrong usage ends the program at
 * once (exit status 2), because nothing has begun then. Output may come from outside, so control
 * characters are escaped; texts of any length are written piece by piece. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>

#include "base/printable.h"

enum { ESCAPE_SIZE = sizeof("\\u10ffff") };

/* Takes the next piece of a text in the form in which it may be shown: unchanged, or an escape,
 * which is written into `room`. */
static struct sl_slice take_shown(struct sl_slice *text, bool keeps_lines,
                                  char room[static ESCAPE_SIZE])
{
    struct sl_slice piece = sl_slice(text->data, printable_prefix(*text));
    struct printable next;

    if (piece.size == 0) {
        next = printable_first(*text);
        piece = sl_slice(text->data, next.size);
        if (!keeps_lines || (next.code_point != '\t' && next.code_point != '\n'))
            piece = sl_slice(
                room, (size_t)snprintf(room, ESCAPE_SIZE, "\\u%04x", (unsigned)next.code_point));
        *text = sl_slice_from(*text, next.size);
    } else {
        *text = sl_slice_from(*text, piece.size);
    }
    return piece;
}

int cli_print(FILE *file, struct sl_slice text)
{
    char room[ESCAPE_SIZE];

    while (text.size > 0) {
        struct sl_slice piece = take_shown(&text, true, room);

        if (fwrite(piece.data, 1, piece.size, file) != piece.size)
            return -errno;
    }
    return ferror(file) ? -errno : 0;
}

void cli_append_word(struct buffer *buffer, struct sl_slice text)
{
    char room[ESCAPE_SIZE];

    while (text.size > 0)
        buffer_append_slice(buffer, take_shown(&text, false, room));
}

/* The message may contain text from a server, Redis or an archive. */
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
    if (errno == EPIPE)
        return CLI_GOOD; /* the reader has closed the pipe */
    return cli_failed_with(cli, "cannot write the result: %s", strerror(errno));
}
