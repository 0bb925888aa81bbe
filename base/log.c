/* log.c - writes log lines. Level and format are process-wide state (the only other one is in
 * alloc.c).
 *
 * A line is built in a buffer on the stack and written by one write(2), so that lines of several
 * processes that share stderr do not mix. Lines that are too long are truncated. log_rate_allows()
 * limits lines that outsiders could cause without end. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_json.h"
#include "base/printable.h"

enum { LINE_SIZE = 2048 };

static enum log_level threshold = LOG_LEVEL_INFO;
static enum log_format form = LOG_FORMAT_LOGFMT;

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void log_set_level(enum log_level level)
{
    threshold = level;
}

bool log_enabled(enum log_level level)
{
    return level <= threshold;
}

int log_parse_level(const char *text, enum log_level *ret_level)
{
    for (unsigned i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *ret_level = (enum log_level)i;
            return 0;
        }
    }
    return -EINVAL;
}

void log_set_format(enum log_format format)
{
    form = format;
}

int log_parse_format(const char *text, enum log_format *ret_format)
{
    bool is_json = strcmp(text, "json") == 0;

    if (!is_json && strcmp(text, "logfmt") != 0)
        return -EINVAL;
    *ret_format = is_json ? LOG_FORMAT_JSON : LOG_FORMAT_LOGFMT;
    return 0;
}

/* One write(2) for each line, so that lines of several processes do not mix. */
static void write_line(char *line, size_t length)
{
    ssize_t written;

    line[length++] = '\n';
    written = write(STDERR_FILENO, line, length);
    (void)written; /* an error cannot be reported anywhere */
}

void log_line(enum log_level level, const char *event, const char *format, ...)
{
    char when[CLOCK_RFC3339_SIZE];
    char line[LINE_SIZE];
    char json[LOG_JSON_SIZE(LINE_SIZE)];
    va_list args;
    int length;

    if (!log_enabled(level))
        return;
    clock_format_rfc3339(clock_wall_ms(), when);
    length =
        snprintf(line, sizeof(line), "ts=%s level=%s event=%s ", when, level_names[level], event);
    va_start(args, format);
    length += vsnprintf(line + length, sizeof(line) - (size_t)length, format, args);
    va_end(args);
    if ((size_t)length >= sizeof(line))
        length = sizeof(line) - 1;
    if (form == LOG_FORMAT_JSON)
        write_line(json, log_json(sl_slice(line, (size_t)length), json));
    else
        write_line(line, (size_t)length);
}

bool log_rate_allows(struct log_rate *rate, uint64_t now_ms, uint64_t *ret_held_back)
{
    return log_rate_allows_in(rate, 1000, now_ms, ret_held_back);
}

bool log_rate_allows_in(struct log_rate *rate, uint64_t interval_ms, uint64_t now_ms,
                        uint64_t *ret_held_back)
{
    if (rate->last_ms != 0 && now_ms - rate->last_ms < interval_ms) {
        rate->held_back++;
        return false;
    }
    *ret_held_back = rate->held_back;
    rate->held_back = 0;
    rate->last_ms = now_ms ? now_ms : 1;
    return true;
}

/* Writes one character of a quoted text and a NUL. Returns its size in the text. */
static size_t quote_character(struct sl_slice text, char room[static 8])
{
    struct printable first = printable_first(text);

    if (!first.is_utf8 || first.code_point < 0x20 || first.code_point == 0x7f ||
        first.code_point == '"' || first.code_point == '\\') {
        snprintf(room, 8, "\\x%02x", (unsigned char)text.data[0]);
    } else if (!first.is_shown) {
        snprintf(room, 8, "\\u%04x", (unsigned)(first.code_point & 0xffff));
    } else {
        memcpy(room, text.data, first.size);
        room[first.size] = '\0';
    }
    return first.size;
}

const char *log_quote(struct sl_slice text, char room[static LOG_QUOTE_SIZE])
{
    const size_t most = LOG_QUOTE_SIZE - sizeof("...\"");
    size_t used = 0;

    room[used++] = '"';
    while (text.size > 0) {
        char character[8];
        size_t taken = quote_character(text, character), size = strlen(character);

        if (used + size > most) {
            memcpy(room + used, "...", 3);
            used += 3;
            break;
        }
        memcpy(room + used, character, size);
        used += size;
        text = sl_slice_from(text, taken);
    }
    room[used++] = '"';
    room[used] = '\0';
    return room;
}
