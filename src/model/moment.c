/* moment.c - distinguishes the forms by their characters, then calls the parser of each.
 *
 * Digits only: an id or a Unix time, depending on the size. Digits and a unit, with or without a
 * sign: a duration. Anything else: a date, or an RFC 3339 time. Error messages suggest the likely
 * mistake, such as a time without its zone or a number that is too small. */
#include "src/model/moment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"
#include "src/model/duration.h"
#include "src/model/id.h"

/* The accepted Unix times: from 2001-09-09, when seconds have ten digits and milliseconds
 * thirteen. */
#define SECONDS_MIN      UINT64_C(1000000000)
#define SECONDS_MAX      UINT64_C(99999999999)
#define MILLISECONDS_MIN (SECONDS_MIN * 1000)

static size_t count_digits(struct sl_slice text)
{
    size_t digits = 0;

    while (digits < text.size && text.data[digits] >= '0' && text.data[digits] <= '9')
        digits++;
    return digits;
}

static int set_time(uint64_t ms, struct sl_moment *ret_moment)
{
    *ret_moment = (struct sl_moment){SL_MOMENT_TIME, ms};
    return 0;
}

static int refuse(struct failure *reterr)
{
    return failure_set(reterr, -EINVAL,
                       "neither an event id nor a time: as in -1h, 2026-11-22, "
                       "2026-11-22T10:00:00Z (in a URL + is %%2B) or Unix seconds");
}

static int read_number(struct sl_slice text, struct sl_moment *ret_moment, struct failure *reterr)
{
    uint64_t number;

    if (sl_id_parse(text, &number) < 0)
        return refuse(reterr);
    if (number >= SL_MOMENT_ID_MIN) {
        *ret_moment = (struct sl_moment){SL_MOMENT_ID, number};
        return 0;
    }
    if (number >= MILLISECONDS_MIN)
        return set_time(number, ret_moment);
    if (number >= SECONDS_MIN && number <= SECONDS_MAX)
        return set_time(number * 1000, ret_moment);
    return failure_set(reterr, -EINVAL,
                       "%" PRIu64 " is no event id, which begin at %" PRIu64
                       ", and no Unix time of this century in seconds or milliseconds; "
                       "a duration has a unit, as in -1h",
                       number, SL_MOMENT_ID_MIN);
}

static int read_duration(struct sl_slice text, uint64_t now_ms, struct sl_moment *ret_moment,
                         struct failure *reterr)
{
    bool is_ahead = text.data[0] == '+';
    bool has_sign = is_ahead || text.data[0] == '-';
    uint64_t ms;

    if (sl_duration_parse(sl_slice_from(text, has_sign), &ms, NULL) < 0)
        return refuse(reterr);
    if (!is_ahead)
        return set_time(ms < now_ms ? now_ms - ms : 0, ret_moment);
    return set_time(ms > UINT64_MAX - now_ms ? UINT64_MAX : now_ms + ms, ret_moment);
}

static int read_date(struct sl_slice text, struct sl_moment *ret_moment, struct failure *reterr)
{
    char room[sizeof("2026-11-22T00:00:00Z")];
    uint64_t ms;

    if (clock_parse_rfc3339(text, &ms) == 0)
        return set_time(ms, ret_moment);
    if (text.size == sizeof("2026-11-22") - 1) {
        snprintf(room, sizeof(room), "%.*sT00:00:00Z", SL_SLICE_ARG(text));
        if (clock_parse_rfc3339(sl_slice_str(room), &ms) == 0)
            return set_time(ms, ret_moment);
    }
    if (text.size == sizeof("2026-11-22T10:00:00") - 1) {
        snprintf(room, sizeof(room), "%.*sZ", SL_SLICE_ARG(text));
        if (clock_parse_rfc3339(sl_slice_str(room), &ms) == 0)
            return failure_set(reterr, -EINVAL,
                               "a time needs its zone: %s, or an offset like +01:00 (in a URL "
                               "%%2B01:00)",
                               room);
    }
    return refuse(reterr);
}

int sl_moment_parse(struct sl_slice text, uint64_t now_ms, struct sl_moment *ret_moment,
                    struct failure *reterr)
{
    size_t sign, digits;

    if (text.size == 0)
        return refuse(reterr);
    sign = text.data[0] == '-' || text.data[0] == '+';
    digits = count_digits(sl_slice_from(text, sign));
    if (sign == 0 && digits == text.size)
        return read_number(text, ret_moment, reterr);
    if (digits == 0)
        return refuse(reterr);
    if (sign == 1 || (text.data[digits] >= 'a' && text.data[digits] <= 'z'))
        return read_duration(text, now_ms, ret_moment, reterr);
    return read_date(text, ret_moment, reterr);
}

uint64_t sl_moment_ms(const struct sl_moment *moment)
{
    return moment->kind == SL_MOMENT_ID ? sl_id_time_ms(moment->value) : moment->value;
}

uint64_t sl_moment_cursor(const struct sl_moment *moment)
{
    uint64_t first;

    if (moment->kind == SL_MOMENT_ID)
        return moment->value;
    first = sl_id_first_at(moment->value);
    return first > 0 ? first - 1 : 0;
}
