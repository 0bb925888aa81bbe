/* gateway/front/count_question.h - what is counted or picked, and in which buckets.
 *
 * A bucket is an interval of time in UTC, [start, end), that begins at a multiple of its length
 * since 1970. An event belongs to the bucket that contains the millisecond of its id. The id of a
 * bucket, its cursor, is the last id before its end. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/front/pick_question.h"
#include "gateway/front/trend_question.h"
#include "gateway/http/http.h"
#include "src/model/id.h"

enum count_by {
    COUNT_BY_NONE,
    COUNT_BY_TYPE,
    COUNT_BY_LANG,
    COUNT_BY_COUNTRY,
    COUNT_BY_CELL,
    COUNT_BY_RULE
};

struct count_question {
    uint64_t bucket_ms; /* 0: events are sent as they pass */
    enum count_by by;
    struct pick_question pick;    /* .posts 0: events are counted */
    uint32_t cell_millidegrees;   /* side length of a cell; 0: not by cell */
    uint32_t refresh_ms;          /* interval of updates for the current bucket; 0: none */
    struct trend_question trends; /* .window_ms 0: events are counted */
};

enum {
    COUNT_REFRESH_MIN_MS = 100,
    COUNT_REFRESH_MAX_MS = 60000,
    COUNT_BUCKETS_MAX = 100000, /* maximum that a stream begins with */
    TREND_BUCKETS_MAX = 1000    /* the same for trends */
};

/* Reads the values of the parameters; absent: without data. 0; -EPROTO: *refusal. */
int count_question_read(struct sl_slice bucket, struct sl_slice by, struct sl_slice cell_degrees,
                        struct sl_slice refresh_ms, struct count_question *ret_question,
                        struct http_refusal *refusal);

/* Reads a decimal number with up to three decimals, in thousandths. false: invalid. */
bool thousandths_read(struct sl_slice text, uint32_t *ret_number);
/* `by`: the parameter and value that need cells, if `is_by_cell`. 0; -EPROTO. */
int cell_degrees_read(struct sl_slice text, bool is_by_cell, const char *by,
                      uint32_t *ret_millidegrees, struct http_refusal *refusal);

const char *count_by_name(enum count_by by); /* NULL: by nothing */

/* The Unix millisecond in which the bucket with this id begins. */
static inline uint64_t count_bucket_start_ms(const struct count_question *question,
                                             uint64_t unix_ms)
{
    return unix_ms - unix_ms % question->bucket_ms;
}

/* The id of the bucket that contains the event `id`. */
static inline uint64_t count_bucket_id(const struct count_question *question, uint64_t id)
{
    uint64_t start_ms = count_bucket_start_ms(question, sl_id_time_ms(id));

    return sl_id_first_at(start_ms + question->bucket_ms) - 1;
}

/* The last id before that bucket: a stream that begins after it gets the whole bucket. */
static inline uint64_t count_bucket_before(const struct count_question *question, uint64_t id)
{
    uint64_t first = sl_id_first_at(count_bucket_start_ms(question, sl_id_time_ms(id)));

    return first > 0 ? first - 1 : 0;
}
