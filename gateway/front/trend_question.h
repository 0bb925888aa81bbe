/* gateway/front/trend_question.h - the kinds of terms whose rise is looked for, and the window. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/http/http.h"

/* In the order in which they are sent; like enum sl_term_kind of filters/terms.h. */
enum trend_of {
    TREND_OF_HASHTAGS,
    TREND_OF_WORDS,
    TREND_OF_LINKS,
    TREND_OF_USERS,
    TREND_OF_CASHTAGS,
    TREND_OF_COUNT
};

enum {
    TREND_PARTS = 12, /* slices of a window, and numbers in a term's past */
    TREND_LIMIT_DEFAULT = 20,
    TREND_LIMIT_MAX = 100
};

struct trend_question {
    uint64_t window_ms; /* 0: no trends */
    unsigned of;        /* bits 1 << TREND_OF_... */
    uint32_t limit;     /* maximum number of terms of each kind */
    bool stands;        /* of everything: continues when nobody asks any more */
};

/* Reads the values of the parameters; absent: without data. 0; -EPROTO: *refusal. */
int trend_question_read(struct sl_slice window, struct sl_slice of, struct sl_slice limit,
                        struct trend_question *ret_question, struct http_refusal *refusal);

const char *trend_of_name(enum trend_of of);

/* The number of messages for a bucket. */
static inline unsigned trend_kinds(const struct trend_question *question)
{
    return (unsigned)__builtin_popcount(question->of);
}

static inline uint64_t trend_slice_ms(const struct trend_question *question)
{
    return question->window_ms / TREND_PARTS;
}

/* The number of slices, counted since 1970, up to the end of the bucket; the last one may have just
 * begun. */
static inline uint64_t trend_slices_until(const struct trend_question *question, uint64_t end_ms)
{
    return (end_ms - 1) / trend_slice_ms(question) + 1;
}

/* The Unix millisecond from which on all events are needed for what ends at `end_ms`: the window
 * and its past of the same length. */
static inline uint64_t trend_needs_from_ms(const struct trend_question *question, uint64_t end_ms)
{
    uint64_t slices = trend_slices_until(question, end_ms);
    const uint64_t needed = 2 * TREND_PARTS;

    return (slices > needed ? slices - needed : 0) * trend_slice_ms(question);
}
