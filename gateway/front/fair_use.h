/* gateway/front/fair_use.h - how much each subject and each address has used.
 *
 * An account for each, in memory that the workers share: the levels of its rates, its sums of the
 * day, and what of it the other gateways have told (access/use_exchange.h). There is room for so
 * many; one that nobody has touched for the longest time makes room for a new one. Subjects and
 * addresses have tables of their own, so that a flood of addresses forgets no subject.
 *
 * Sets of accounts share locks; a worker that dies holding one leaves numbers, which are good
 * whatever they are. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "gateway/front/use_limits.h"

struct fair_use; /* the accounts */

enum use_of { USE_OF_SUBJECT, USE_OF_ADDRESS, USE_OF_COUNT };

/* Whose account: a token's holder, or the bytes of an address or prefix (use_prefix()). */
struct use_whose {
    enum use_of of;
    struct sl_slice name; /* at most USE_NAME_MAX bytes; empty: nobody's, which is not counted */
};

enum { USE_NAME_MAX = 64 };

struct use_times {
    uint64_t now_ms;  /* of a clock that all workers share and that never steps back */
    uint64_t wall_ms; /* Unix time */
};

/* An account as it is. */
struct use_state {
    double levels[USE_RATES];
    uint64_t waits_ms[USE_RATES];  /* until one more may come; UINT64_MAX: never */
    uint64_t empty_ms[USE_RATES];  /* until it has all of its rate again */
    uint64_t here[USE_SUMS];       /* of this day, by this gateway */
    uint64_t everywhere[USE_SUMS]; /* and by all, as far as it is known */
    uint64_t streams_elsewhere;    /* of other gateways, as far as it is known */
    uint64_t heard_ms;             /* when that was told last, by `now_ms`; 0: never */
};

/* For all workers, before they are forked; an account is told of once in `exchange_ms`. NULL: out
 * of memory. */
struct fair_use *fair_use_new(uint64_t exchange_ms);
void fair_use_free(struct fair_use *uses);

/* Takes one of `rate`, if there is room. *ret_state is what is then. */
bool fair_use_take(struct fair_use *uses, const struct use_whose *whose, enum use rate,
                   const struct use_limits *limits, const struct use_times *times,
                   struct use_state *ret_state);
/* Adds to the sums of the day. */
void fair_use_add(struct fair_use *uses, const struct use_whose *whose,
                  const uint64_t sums[USE_SUMS], const struct use_limits *limits,
                  const struct use_times *times, struct use_state *ret_state);
/* Takes nothing. */
void fair_use_look(struct fair_use *uses, const struct use_whose *whose,
                   const struct use_limits *limits, const struct use_times *times,
                   struct use_state *ret_state);

/* The part of an address that is counted as one: all of an IPv4 address, the first 64 bits of an
 * IPv6 one, or the IPv4 address that is mapped into it. */
struct sl_slice use_prefix(struct sl_slice address);
