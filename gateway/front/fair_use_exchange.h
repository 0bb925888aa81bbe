/* gateway/front/fair_use_exchange.h - what the accounts of a gateway report to the others, and what
 * those have reported.
 *
 * For access/use_exchange.c, which one worker runs for all. An account that was reported is not
 * reported again within the time passed to fair_use_new(). */
#pragma once

#include "gateway/front/fair_use.h"

enum { USE_TOLD_RATES = USE_REQUESTS + 1 /* bad tokens are counted by each gateway separately */ };

/* Since the last report. */
struct use_news {
    enum use_of of;
    uint8_t name_size;
    char name[USE_NAME_MAX];
    uint64_t rates[USE_TOLD_RATES];
    uint64_t limits[USE_TOLD_RATES]; /* by which they leak */
    uint64_t sums[USE_SUMS];
};

/* Of all gateways together. */
struct use_heard {
    uint64_t day; /* days since 1970 */
    double levels[USE_TOLD_RATES];
    uint64_t sums[USE_SUMS];
    uint64_t streams_elsewhere;
};

/* The minimum time between two reports of an account. */
uint64_t fair_use_exchange_ms(const struct fair_use *uses);
uint64_t fair_use_id(const struct fair_use *uses);

/* Sets the number of gateways, which are in contact. */
void fair_use_set_gateways(struct fair_use *uses, unsigned gateways);
/* The other gateways can no longer be reached. */
void fair_use_set_alone(struct fair_use *uses);

/* Marks an account whose number of streams has changed, or whose use elsewhere must be known. */
void fair_use_mark(struct fair_use *uses, const struct use_whose *whose,
                   const struct use_times *times);
void fair_use_mark_all(struct fair_use *uses);

/* Iterates with *position from 0. false: no other account has anything to report now. */
bool fair_use_next_news(struct fair_use *uses, size_t *position, uint64_t now_ms,
                        struct use_news *ret_news);
/* Whether Redis has accepted the report. */
void fair_use_was_told(struct fair_use *uses, const struct use_news *news,
                       const struct use_heard *heard, const struct use_times *times);
void fair_use_was_not_told(struct fair_use *uses, const struct use_news *news,
                           const struct use_times *times);
