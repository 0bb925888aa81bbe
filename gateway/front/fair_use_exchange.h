/* gateway/front/fair_use_exchange.h - what the accounts of a gateway have to tell the others, and
 * what those have told.
 *
 * For access/use_exchange.c, which one worker runs for all. An account that has been told of is not
 * told of again within the time that fair_use_new() was given, whatever happens to it. */
#pragma once

#include "gateway/front/fair_use.h"

enum { USE_TOLD_RATES = USE_REQUESTS + 1 /* bad tokens are each gateway's own affair */ };

/* Since it was told last. */
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
    uint64_t day; /* since 1970 */
    double levels[USE_TOLD_RATES];
    uint64_t sums[USE_SUMS];
    uint64_t streams_elsewhere;
};

/* By which the gateways tell themselves apart. */
uint64_t fair_use_exchange_ms(const struct fair_use *uses);
uint64_t fair_use_id(const struct fair_use *uses);

/* How many gateways there are, which are heard. */
void fair_use_set_gateways(struct fair_use *uses, unsigned gateways);
/* They are not heard any more. */
void fair_use_set_alone(struct fair_use *uses);

/* Its number of streams has changed, or it has to be known how things stand elsewhere. */
void fair_use_mark(struct fair_use *uses, const struct use_whose *whose,
                   const struct use_times *times);
void fair_use_mark_all(struct fair_use *uses);

/* Walk with *position from 0. false: nobody else has anything to tell now. */
bool fair_use_next_news(struct fair_use *uses, size_t *position, uint64_t now_ms,
                        struct use_news *ret_news);
/* Redis has taken the news, or it has not. */
void fair_use_was_told(struct fair_use *uses, const struct use_news *news,
                       const struct use_heard *heard, const struct use_times *times);
void fair_use_was_not_told(struct fair_use *uses, const struct use_news *news,
                           const struct use_times *times);
