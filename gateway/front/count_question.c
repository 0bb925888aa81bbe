/* count_question.c - the parameters of counts.
 *
 * The allowed words are in tables. Numbers have few digits, so none can overflow; degrees are read
 * in thousandths, which are exact, unlike fractions of a double. */
#include "gateway/front/count_question.h"

#include <errno.h>

static const struct {
    const char *name;
    uint64_t ms;
} buckets[] = {{"1s", 1000}, {"10s", 10000}, {"1m", 60000}, {"1h", 3600000}, {"1d", 86400000}};

static const char *const by_names[] = {
    [COUNT_BY_TYPE] = "type", [COUNT_BY_LANG] = "lang", [COUNT_BY_COUNTRY] = "country",
    [COUNT_BY_CELL] = "cell", [COUNT_BY_RULE] = "rule",
};

enum { CELL_MIN = 10, CELL_MAX = 90000 /* thousandths of a degree */ };

const char *count_by_name(enum count_by by)
{
    return by_names[by];
}

static int read_bucket(struct sl_slice text, uint64_t *ret_ms, struct http_refusal *refusal)
{
    if (!text.data)
        return http_refuse(refusal, 400, "no_bucket", "bucket",
                           "bucket is required: 1s, 10s, 1m, 1h or 1d");
    for (size_t i = 0; i < sizeof(buckets) / sizeof(buckets[0]); i++) {
        if (sl_slice_is(text, buckets[i].name)) {
            *ret_ms = buckets[i].ms;
            return 0;
        }
    }
    return http_refuse(refusal, 400, "bad_bucket", "bucket", "not one of 1s, 10s, 1m, 1h, 1d");
}

static int read_by(struct sl_slice text, enum count_by *ret_by, struct http_refusal *refusal)
{
    if (!text.data)
        return 0;
    for (unsigned by = COUNT_BY_TYPE; by <= COUNT_BY_RULE; by++) {
        if (sl_slice_is(text, by_names[by])) {
            *ret_by = by;
            return 0;
        }
    }
    return http_refuse(refusal, 400, "bad_by", "by", "not one of type, lang, country, cell, rule");
}

bool thousandths_read(struct sl_slice text, uint32_t *ret_number)
{
    uint64_t number = 0;
    int decimals = -1;

    if (text.size == 0 || text.size > 8)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];

        if (c == '.' && decimals < 0 && i > 0) {
            decimals = 0;
            continue;
        }
        if (c < '0' || c > '9' || decimals == 3)
            return false;
        number = number * 10 + (uint64_t)(c - '0');
        decimals += decimals >= 0;
    }
    if (decimals == 0)
        return false;
    for (int i = decimals < 0 ? 0 : decimals; i < 3; i++)
        number *= 10;
    *ret_number = (uint32_t)number;
    return number <= UINT32_MAX;
}

int cell_degrees_read(struct sl_slice text, bool is_by_cell, const char *by,
                      uint32_t *ret_millidegrees, struct http_refusal *refusal)
{
    uint32_t side = 0;

    if (!is_by_cell && text.data)
        return http_refuse(refusal, 400, "bad_cell_degrees", "cell_degrees", "only %s has cells",
                           by);
    if (is_by_cell && !text.data)
        return http_refuse(refusal, 400, "no_cell_degrees", "cell_degrees",
                           "cell_degrees is required: the side of a cell in degrees, 0.01 to 90");
    if (text.data && (!thousandths_read(text, &side) || side < CELL_MIN || side > CELL_MAX))
        return http_refuse(refusal, 400, "bad_cell_degrees", "cell_degrees",
                           "not a number from 0.01 to 90 with at most three decimals");
    *ret_millidegrees = side;
    return 0;
}

static int read_refresh(struct sl_slice text, uint32_t *ret_ms, struct http_refusal *refusal)
{
    uint32_t number = 0;

    for (size_t i = 0; i < text.size && i < 6; i++)
        number = text.data[i] >= '0' && text.data[i] <= '9'
                     ? number * 10 + (uint32_t)(text.data[i] - '0')
                     : UINT32_MAX / 16;
    if (text.data &&
        (text.size > 5 || number < COUNT_REFRESH_MIN_MS || number > COUNT_REFRESH_MAX_MS))
        return http_refuse(refusal, 400, "bad_refresh_ms", "refresh_ms",
                           "not a number of milliseconds from %d to %d", COUNT_REFRESH_MIN_MS,
                           COUNT_REFRESH_MAX_MS);
    *ret_ms = number;
    return 0;
}

int count_question_read(struct sl_slice bucket, struct sl_slice by, struct sl_slice cell_degrees,
                        struct sl_slice refresh_ms, struct count_question *ret_question,
                        struct http_refusal *refusal)
{
    struct count_question question = {0};

    if (read_bucket(bucket, &question.bucket_ms, refusal) < 0 ||
        read_by(by, &question.by, refusal) < 0 ||
        cell_degrees_read(cell_degrees, question.by == COUNT_BY_CELL, "by=cell",
                          &question.cell_millidegrees, refusal) < 0 ||
        read_refresh(refresh_ms, &question.refresh_ms, refusal) < 0)
        return -EPROTO;
    *ret_question = question;
    return 0;
}
