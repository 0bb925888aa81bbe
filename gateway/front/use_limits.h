/* gateway/front/use_limits.h - what is limited, and the limits.
 *
 * Rates are limited in a minute or a second, sums in a day (UTC), and streams at a time. The
 * server's settings apply to every subject and every address, the claim `lim` of a token to its
 * subject. */
#pragma once

#include <stdint.h>

enum use {
    /* rates */
    USE_CONNECTS,   /* requests for a stream, per minute */
    USE_REQUESTS,   /* requests of the API, per second */
    USE_BAD_TOKENS, /* invalid tokens, per minute; only for addresses */
    USE_RATES,
    /* sums of a day */
    USE_EVENTS = USE_RATES, /* sent on streams */
    USE_BYTES,              /* sent on streams */
    USE_REPLAYED,           /* events replayed after `since` */
    USE_SUMMED,
    /* at the same time */
    USE_STREAMS = USE_SUMMED,
    USE_COUNT
};

enum { USE_SUMS = USE_SUMMED - USE_RATES };

#define USE_UNBOUNDED UINT64_MAX
#define USE_DAY_MS    UINT64_C(86400000)

struct use_limits {
    uint64_t of[USE_COUNT]; /* USE_UNBOUNDED: no limit; 0: nothing is allowed */
};

/* The time in which a rate's limit may be used once. */
static inline uint64_t use_window_ms(enum use use)
{
    return use == USE_REQUESTS ? 1000 : use < USE_RATES ? 60000 : USE_DAY_MS;
}

/* The name in headers, in `lim` and in responses. */
const char *use_name(enum use use);
