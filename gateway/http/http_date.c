#include "gateway/http/http_date.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"

static void format(struct http_date *date)
{
    time_t seconds = (time_t)date->unix_s;
    struct tm tm;

    gmtime_r(&seconds, &tm);
    date->size = (size_t)snprintf(
        date->line, sizeof(date->line), "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n",
        clock_day_names[tm.tm_wday], tm.tm_mday, clock_month_names[tm.tm_mon], tm.tm_year + 1900,
        tm.tm_hour, tm.tm_min, tm.tm_sec);
}

struct sl_slice http_date_line(struct http_date *date, uint64_t unix_ms)
{
    if (date->size == 0 || unix_ms / 1000 != date->unix_s) {
        date->unix_s = unix_ms / 1000;
        format(date);
    }
    return sl_slice(date->line, date->size);
}
