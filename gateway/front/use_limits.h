/* gateway/front/use_limits.h - what of a server is used, and how much of it there may be.
 *
 * Of rates so much in a minute or a second, of sums so much in a day (UTC), and of streams so many
 * at once. The server's settings say it for every subject and for every address, and the claim
 * `lim` of a token for its subject. */
#pragma once

#include <stdint.h>

enum use {
    /* rates */
    USE_CONNECTS,   /* requests for a stream, in a minute */
    USE_REQUESTS,   /* requests of the API, in a second */
    USE_BAD_TOKENS, /* tokens that are not good, in a minute; of an address only */
    USE_RATES,
    /* sums of a day */
    USE_EVENTS = USE_RATES, /* sent on streams */
    USE_BYTES,              /* the same */
    USE_REPLAYED,           /* events that were read behind `since` */
    USE_SUMMED,
    /* at once */
    USE_STREAMS = USE_SUMMED,
    USE_COUNT
};

enum { USE_SUMS = USE_SUMMED - USE_RATES };

#define USE_UNBOUNDED UINT64_MAX
#define USE_DAY_MS    UINT64_C(86400000)

struct use_limits {
    uint64_t of[USE_COUNT]; /* USE_UNBOUNDED: no bound; 0: none at all */
};

/* In which a rate's limit may be used once. */
static inline uint64_t use_window_ms(enum use use)
{
    return use == USE_REQUESTS ? 1000 : use < USE_RATES ? 60000 : USE_DAY_MS;
}

/* How it is called in headers, in `lim` and in answers. */
const char *use_name(enum use use);
