#include "cli/pretty.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"

const char *pretty_member(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

double pretty_number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}

void pretty_text(FILE *file, const char *text)
{
    while (*text) {
        size_t size = strcspn(text, "\n");

        cli_print(file, sl_slice(text, size));
        text += size;
        if (*text == '\n') {
            fputs("\n        ", file);
            text++;
        }
    }
}

static bool is_today(const struct tm *local)
{
    time_t now = time(NULL);
    struct tm today;

    localtime_r(&now, &today);
    return local->tm_yday == today.tm_yday && local->tm_year == today.tm_year;
}

void pretty_time(FILE *file, uint64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    char text[sizeof("2026-11-21 01:02:03")];
    struct tm local;

    localtime_r(&seconds, &local);
    strftime(text, sizeof(text), is_today(&local) ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &local);
    fputs(text, file);
}

void pretty_minute(FILE *file, uint64_t unix_ms)
{
    time_t seconds = (time_t)(unix_ms / 1000);
    char text[sizeof("2026-11-21 01:02")];
    struct tm local;

    localtime_r(&seconds, &local);
    strftime(text, sizeof(text), "%Y-%m-%d %H:%M", &local);
    fputs(text, file);
}
