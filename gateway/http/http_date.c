#include "gateway/http/http_date.h"

#include <stdio.h>
#include <time.h>

/* Not by strftime(), whose names of days and months depend on the locale. */
static void format(struct http_date *date)
{
    static const char days[][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    time_t seconds = (time_t)date->unix_s;
    struct tm tm;

    gmtime_r(&seconds, &tm);
    date->size = (size_t)snprintf(date->line, sizeof(date->line),
                                  "Date: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n", days[tm.tm_wday],
                                  tm.tm_mday, months[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour,
                                  tm.tm_min, tm.tm_sec);
}

struct sl_slice http_date_line(struct http_date *date, uint64_t unix_ms)
{
    if (date->size == 0 || unix_ms / 1000 != date->unix_s) {
        date->unix_s = unix_ms / 1000;
        format(date);
    }
    return sl_slice(date->line, date->size);
}
