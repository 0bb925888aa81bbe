/* gateway/front/fair_use.h - counts how much each subject and each address has used.
 *
 * There is an account for each, in memory shared by the workers: the levels of its rates, its sums
 * of the day, and what the other gateways have reported (access/use_exchange.h). The number of
 * accounts is limited; a new one replaces the one unused for the longest time. Subjects and
 * addresses have separate tables, so that many addresses cannot displace subjects.
 *
 * Sets of accounts share locks; if a worker dies holding one, the numbers in it are still
 * usable. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "gateway/front/use_limits.h"

struct fair_use; /* the accounts */

enum use_of { USE_OF_SUBJECT, USE_OF_ADDRESS, USE_OF_COUNT };

/* Identifies an account: a token's holder, or the bytes of an address or prefix (use_prefix()). */
struct use_whose {
    enum use_of of;
    struct sl_slice name; /* at most USE_NAME_MAX bytes; empty: no account, not counted */
};

enum { USE_NAME_MAX = 64 };

struct use_times {
    uint64_t now_ms;  /* by a clock that all workers share and that is never set back */
    uint64_t wall_ms; /* Unix time */
};

/* The state of an account. */
struct use_state {
    double levels[USE_RATES];
    uint64_t waits_ms[USE_RATES];  /* until the next one is allowed; UINT64_MAX: never */
    uint64_t empty_ms[USE_RATES];  /* until all of its rate is available again */
    uint64_t here[USE_SUMS];       /* today, at this gateway */
    uint64_t everywhere[USE_SUMS]; /* at all gateways, as far as known */
    uint64_t streams_elsewhere;    /* at other gateways, as far as known */
    uint64_t heard_ms;             /* when that was last reported, by `now_ms`; 0: never */
};

/* For all workers; create it before they are forked. An account is reported at most once every
 * `exchange_ms`. NULL: out of memory. */
struct fair_use *fair_use_new(uint64_t exchange_ms);
void fair_use_free(struct fair_use *uses);

/* Takes one unit of `rate`, if available. *ret_state is the resulting state. */
bool fair_use_take(struct fair_use *uses, const struct use_whose *whose, enum use rate,
                   const struct use_limits *limits, const struct use_times *times,
                   struct use_state *ret_state);
/* Adds to the sums of the day. */
void fair_use_add(struct fair_use *uses, const struct use_whose *whose,
                  const uint64_t sums[USE_SUMS], const struct use_limits *limits,
                  const struct use_times *times, struct use_state *ret_state);
/* Reads the state without taking anything. */
void fair_use_look(struct fair_use *uses, const struct use_whose *whose,
                   const struct use_limits *limits, const struct use_times *times,
                   struct use_state *ret_state);

/* The part of an address that is counted as one: the whole of an IPv4 address, the first 64 bits of
 * an IPv6 address, or the IPv4 address that is mapped into it. */
struct sl_slice use_prefix(struct sl_slice address);
