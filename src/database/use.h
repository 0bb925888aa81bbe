/* src/database/use.h - how much subjects and addresses have used, counted for all gateways
 * together.
 *
 * Each gateway regularly makes a round: it announces itself, and receives the list of the other
 * gateways and the secret from which all gateways derive the names of accounts. Then it exchanges:
 * it reports what was used since its last report, and receives the totals of all gateways. All of
 * this data expires by itself. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"
#include "src/model/database.h"

struct redisReply;

enum {
    SL_USE_RATES = 2,
    SL_USE_SUMS = 3,
    SL_USE_GATEWAY_SIZE = 17, /* 16 hexadecimal digits */
    SL_USE_SECRET_SIZE = 33,  /* 32 hexadecimal digits */
    SL_USE_NAME_SIZE = 33,    /* 32 hexadecimal digits */
    SL_USE_GATEWAYS_MAX = 256 /* that are listed in a round */
};

#define SL_USE_UNBOUNDED UINT64_MAX

/* The use of one account since the last report. */
struct sl_use_news {
    char name[SL_USE_NAME_SIZE];
    struct {
        uint64_t taken, limit, window_ms;
    } rates[SL_USE_RATES];
    uint64_t sums[SL_USE_SUMS];
    uint64_t streams; /* open at this gateway */
};

/* The use of one account at all gateways together. */
struct sl_use_heard {
    uint64_t day; /* days since 1970 by the clock of Redis */
    double levels[SL_USE_RATES];
    uint64_t sums[SL_USE_SUMS];
    uint64_t streams_elsewhere;
};

struct sl_use_round {
    char secret[SL_USE_SECRET_SIZE];
    char gateways[SL_USE_GATEWAYS_MAX * SL_USE_GATEWAY_SIZE]; /* separated by commas */
    unsigned count;
};

/* `secret` is used if there is none yet. 0; -ENOMEM. */
int sl_use_round_call(struct sl_call *call, const struct sl_meta *meta, const char *gateway,
                      const char *secret, bool leaves, struct failure *reterr);
/* 0; -EBADMSG, or as sl_reply_check(). */
int sl_use_round_reply(const struct redisReply *reply, struct sl_use_round *ret_round,
                       struct failure *reterr);

/* Reports `count` accounts of one shard, at least 1. 0; -ENOMEM. */
int sl_use_exchange_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                         const char *gateway, const struct sl_use_round *round,
                         const struct sl_use_news *news, size_t count, struct failure *reterr);
/* Reads account `i` of `count`. 0; -EBADMSG, or as sl_reply_check(). */
int sl_use_exchange_reply(const struct redisReply *reply, size_t count, size_t i,
                          struct sl_use_heard *ret_heard, struct failure *reterr);
