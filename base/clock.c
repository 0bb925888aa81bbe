/* clock.c - clock_gettime(), and writing and parsing RFC 3339.
 *
 * strptime() is not suitable: it accepts signs and blanks and depends on the locale. So the few
 * fields are parsed by position. A leap second counts as the second before it; fractions are cut to
 * milliseconds; times before 1970 are refused, because times are unsigned. */
#include "base/clock.h"

#include <errno.h>
#include <stdbool.h>
#include <time.h>

#define END_MS UINT64_C(253402300800000) /* the year 10000, which needs five digits */

const char clock_day_names[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
const char clock_month_names[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

static uint64_t read_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_wall_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}

uint64_t clock_monotonic_ms(void)
{
    return clock_monotonic_us() / 1000;
}

uint64_t clock_monotonic_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

/* Writes the last `digits` digits. */
static char *print_number(char *text, unsigned number, int digits)
{
    for (int i = digits - 1; i >= 0; i--, number /= 10)
        text[i] = (char)('0' + number % 10);
    return text + digits;
}

/* Converts days to a Gregorian date: the inverse of Hinnant's "days from civil". Years begin in
 * March, so that a leap day is the last of its year. strftime() takes fifty times as long, and each
 * message with counts contains two times. */
static char *print_date(char *text, uint64_t days_since_1970)
{
    const unsigned era_days = 146097; /* days in 400 years */
    uint64_t days = days_since_1970 + 719468;
    unsigned day_of_era = (unsigned)(days % era_days);
    unsigned year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    unsigned day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    unsigned from_march = (5 * day_of_year + 2) / 153;
    unsigned month = from_march < 10 ? from_march + 3 : from_march - 9;
    unsigned year = (unsigned)(days / era_days) * 400 + year_of_era + (month <= 2);

    text = print_number(text, year, 4);
    *text++ = '-';
    text = print_number(text, month, 2);
    *text++ = '-';
    return print_number(text, day_of_year - (153 * from_march + 2) / 5 + 1, 2);
}

void clock_format_rfc3339(uint64_t unix_ms, char ret_text[static CLOCK_RFC3339_SIZE])
{
    unsigned seconds, ms;
    char *text;

    unix_ms = unix_ms < END_MS ? unix_ms : END_MS - 1;
    seconds = (unsigned)(unix_ms / 1000 % 86400);
    ms = (unsigned)(unix_ms % 1000);
    text = print_date(ret_text, unix_ms / 86400000);
    *text++ = 'T';
    text = print_number(text, seconds / 3600, 2);
    *text++ = ':';
    text = print_number(text, seconds / 60 % 60, 2);
    *text++ = ':';
    text = print_number(text, seconds % 60, 2);
    *text++ = '.';
    text = print_number(text, ms, 3);
    *text++ = 'Z';
    *text = '\0';
}

/* Parses exactly `digits` digits at *at and advances. */
static bool read_number(struct sl_slice text, size_t *at, int digits, int *ret_number)
{
    int number = 0;

    for (int i = 0; i < digits; i++, (*at)++) {
        if (*at >= text.size || text.data[*at] < '0' || text.data[*at] > '9')
            return false;
        number = number * 10 + (text.data[*at] - '0');
    }
    *ret_number = number;
    return true;
}

static bool read_char(struct sl_slice text, size_t *at, const char *any_of)
{
    if (*at >= text.size || !strchr(any_of, text.data[*at]) || text.data[*at] == '\0')
        return false;
    (*at)++;
    return true;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

    return month == 2 && leap ? 29 : days[month - 1];
}

static bool read_fraction(struct sl_slice text, size_t *at, int *ret_ms)
{
    int scale = 100;
    size_t first = *at;

    *ret_ms = 0;
    for (; *at < text.size && text.data[*at] >= '0' && text.data[*at] <= '9'; (*at)++) {
        *ret_ms += (text.data[*at] - '0') * scale;
        scale /= 10;
    }
    return *at > first;
}

/* Parses `Z` or +hh:mm; the offset is in minutes east of UTC. */
static bool read_offset(struct sl_slice text, size_t *at, int *ret_minutes)
{
    int hours, minutes, sign;

    *ret_minutes = 0;
    if (read_char(text, at, "Zz"))
        return true;
    sign = *at < text.size && text.data[*at] == '-' ? -1 : 1;
    if (!read_char(text, at, "+-") || !read_number(text, at, 2, &hours) ||
        !read_char(text, at, ":") || !read_number(text, at, 2, &minutes) || hours > 23 ||
        minutes > 59)
        return false;
    *ret_minutes = sign * (hours * 60 + minutes);
    return true;
}

int clock_parse_rfc3339(struct sl_slice text, uint64_t *ret_unix_ms)
{
    struct tm tm = {0};
    size_t at = 0;
    int year, month, offset_minutes, ms = 0;
    int64_t seconds;

    if (!read_number(text, &at, 4, &year) || !read_char(text, &at, "-") ||
        !read_number(text, &at, 2, &month) || !read_char(text, &at, "-") ||
        !read_number(text, &at, 2, &tm.tm_mday) || !read_char(text, &at, "Tt ") ||
        !read_number(text, &at, 2, &tm.tm_hour) || !read_char(text, &at, ":") ||
        !read_number(text, &at, 2, &tm.tm_min) || !read_char(text, &at, ":") ||
        !read_number(text, &at, 2, &tm.tm_sec))
        return -EINVAL;
    if (read_char(text, &at, ".") && !read_fraction(text, &at, &ms))
        return -EINVAL;
    if (!read_offset(text, &at, &offset_minutes) || at != text.size)
        return -EINVAL;
    if (month < 1 || month > 12 || tm.tm_mday < 1 || tm.tm_mday > days_in_month(year, month) ||
        tm.tm_hour > 23 || tm.tm_min > 59 || tm.tm_sec > 60)
        return -EINVAL;
    if (tm.tm_sec == 60)
        tm.tm_sec = 59;
    tm.tm_year = year - 1900;
    tm.tm_mon = month - 1;
    seconds = (int64_t)timegm(&tm) - (int64_t)offset_minutes * 60;
    if (seconds < 0)
        return -EINVAL;
    *ret_unix_ms = (uint64_t)seconds * 1000 + (uint64_t)ms;
    return 0;
}
