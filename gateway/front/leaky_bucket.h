/* gateway/front/leaky_bucket.h - a rate limit as a leaky bucket: use fills it, time empties it.
 *
 * Up to the limit may be used at once, and after that as much as leaks. Plain values; the owner
 * supplies the time, by a clock that is never set back (if it were, the bucket would just not
 * leak). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct leaky_bucket {
    double level;
    uint64_t at_ms; /* when that was */
};

struct leaky_rate {
    uint64_t limit; /* UINT64_MAX: none */
    uint64_t window_ms;
};

static inline double leaky_bucket_level(const struct leaky_bucket *bucket,
                                        const struct leaky_rate *rate, uint64_t now_ms)
{
    double passed_ms = now_ms > bucket->at_ms ? (double)(now_ms - bucket->at_ms) : 0;
    double level = bucket->level - passed_ms * (double)rate->limit / (double)rate->window_ms;

    return level > 0 ? level : 0;
}

/* Sets the current level. */
static inline void leaky_bucket_set(struct leaky_bucket *bucket, double level, uint64_t now_ms)
{
    bucket->level = level;
    if (now_ms > bucket->at_ms)
        bucket->at_ms = now_ms;
}

/* Whether one more unit is available. */
static inline bool leaky_bucket_has_room(const struct leaky_bucket *bucket,
                                         const struct leaky_rate *rate, uint64_t now_ms)
{
    return leaky_bucket_level(bucket, rate, now_ms) + 1 <= (double)rate->limit;
}

/* Adds one unit, even beyond the limit. */
static inline void leaky_bucket_add(struct leaky_bucket *bucket, const struct leaky_rate *rate,
                                    uint64_t now_ms)
{
    leaky_bucket_set(bucket, leaky_bucket_level(bucket, rate, now_ms) + 1, now_ms);
}

/* The time until it has leaked to `level`. UINT64_MAX: never. */
static inline uint64_t leaky_bucket_wait_ms(const struct leaky_bucket *bucket,
                                            const struct leaky_rate *rate, double level,
                                            uint64_t now_ms)
{
    double above = leaky_bucket_level(bucket, rate, now_ms) - level;

    if (above <= 0)
        return 0;
    if (rate->limit == 0 || level < 0)
        return UINT64_MAX;
    return (uint64_t)(above * (double)rate->window_ms / (double)rate->limit) + 1;
}
