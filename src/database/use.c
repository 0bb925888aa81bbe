/* src/database/use.c - the arguments and replies of use_round.lua and use_exchange.lua.
 *
 * The caller chooses the number of accounts in a call; each is a key of the shard. Levels are
 * decimals, sums are numbers up to 2^53. */
#include "src/database/use.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/call_build.h"
#include "src/call/reply_read.h"

enum { HEARD = 1 + SL_USE_RATES + SL_USE_SUMS + 1 };

int sl_use_round_call(struct sl_call *call, const struct sl_meta *meta, const char *gateway,
                      const char *secret, bool leaves, struct failure *reterr)
{
    sl_call_begin_repeatable(call, &sl_script_use_round, 0, meta->shards);
    call->is_write = true;
    sl_call_add_str(call, gateway);
    sl_call_add_str(call, secret);
    if (leaves)
        sl_call_add_str(call, "leaves");
    return sl_call_finish(call, reterr);
}

static bool is_hexadecimal(struct sl_slice text, size_t size)
{
    return text.size == size && text.data && strspn(text.data, "0123456789abcdef") == size;
}

int sl_use_round_reply(const struct redisReply *reply, struct sl_use_round *ret_round,
                       struct failure *reterr)
{
    struct sl_slice secret;
    char *at = ret_round->gateways;
    int r = sl_reply_check_array(reply, 1, reterr);

    if (r < 0)
        return r;
    secret = sl_reply_at(reply, 0);
    if (!is_hexadecimal(secret, SL_USE_SECRET_SIZE - 1))
        return sl_reply_unexpected(reterr);
    memcpy(ret_round->secret, secret.data, SL_USE_SECRET_SIZE - 1);
    ret_round->secret[SL_USE_SECRET_SIZE - 1] = '\0';
    ret_round->count = 0;
    for (size_t i = 1; i < reply->elements && ret_round->count < SL_USE_GATEWAYS_MAX; i++) {
        struct sl_slice id = sl_reply_at(reply, i);

        if (!is_hexadecimal(id, SL_USE_GATEWAY_SIZE - 1))
            return sl_reply_unexpected(reterr);
        if (ret_round->count++ > 0)
            *at++ = ',';
        memcpy(at, id.data, id.size);
        at += id.size;
    }
    *at = '\0';
    return 0;
}

static void add_rate(struct sl_call *call, uint64_t taken, uint64_t limit, uint64_t window_ms)
{
    sl_call_add_id(call, taken);
    if (limit == SL_USE_UNBOUNDED)
        sl_call_add_str(call, "-");
    else
        sl_call_add_id(call, limit);
    sl_call_add_id(call, window_ms);
}

int sl_use_exchange_call(struct sl_call *call, const struct sl_meta *meta, uint32_t shard,
                         const char *gateway, const struct sl_use_round *round,
                         const struct sl_use_news *news, size_t count, struct failure *reterr)
{
    sl_call_begin_script(call, &sl_script_use_exchange, shard, meta->shards, SL_SLICE_NONE);
    sl_call_add_str(call, gateway);
    sl_call_add_str(call, round->gateways);
    for (size_t i = 0; i < count; i++) {
        sl_call_add_str(call, news[i].name);
        for (int rate = 0; rate < SL_USE_RATES; rate++)
            add_rate(call, news[i].rates[rate].taken, news[i].rates[rate].limit,
                     news[i].rates[rate].window_ms);
        for (int sum = 0; sum < SL_USE_SUMS; sum++)
            sl_call_add_id(call, news[i].sums[sum]);
        sl_call_add_id(call, news[i].streams);
    }
    return sl_call_finish(call, reterr);
}

static bool read_level(struct sl_slice text, double *ret_level)
{
    char *end;

    if (!text.data || text.size == 0)
        return false;
    *ret_level = strtod(text.data, &end); /* hiredis terminates strings with a NUL */
    return *end == '\0' && isfinite(*ret_level) && *ret_level >= 0;
}

static int read_heard(const redisReply *row, struct sl_use_heard *heard, struct failure *reterr)
{
    size_t at = 0;
    int r = sl_reply_read_number(row, at++, &heard->day, reterr);

    for (int i = 0; r == 0 && i < SL_USE_RATES; i++) {
        if (!read_level(sl_reply_at(row, at++), &heard->levels[i]))
            return sl_reply_unexpected(reterr);
    }
    for (int i = 0; r == 0 && i < SL_USE_SUMS; i++)
        r = sl_reply_read_number(row, at++, &heard->sums[i], reterr);
    return r < 0 ? r : sl_reply_read_number(row, at, &heard->streams_elsewhere, reterr);
}

int sl_use_exchange_reply(const struct redisReply *reply, size_t count, size_t i,
                          struct sl_use_heard *ret_heard, struct failure *reterr)
{
    const redisReply *row;
    int r = sl_reply_check_array(reply, count, reterr);

    if (r == 0)
        r = sl_reply_read_row(reply, i, HEARD, &row, reterr);
    return r < 0 ? r : read_heard(row, ret_heard, reterr);
}
