#include "gateway/intake/live_channel.h"

#include <inttypes.h>

#include "base/clock.h"
#include "src/call/call_build.h"
#include "src/model/keys.h"

int live_channel_subscribe_call(struct sl_call *call, uint32_t shards)
{
    char channel[SL_KEY_SIZE];

    sl_call_begin(call, 0, false);
    sl_call_add_str(call, "SUBSCRIBE");
    for (uint32_t shard = 0; shard < shards; shard++)
        sl_call_add_str(call, sl_key(shard, "live", channel));
    return sl_call_finish(call, NULL);
}

int live_channel_read(const redisReply *reply, struct metrics *metrics, struct log_rate *rate,
                      struct live_message *ret_message)
{
    struct sl_slice channel = sl_slice(reply->element[1]->str, reply->element[1]->len);
    struct sl_slice payload = sl_slice(reply->element[2]->str, reply->element[2]->len);
    uint64_t held_back;
    int r;

    *ret_message = (struct live_message){.received_us = clock_monotonic_us()};
    r = live_message_read(channel, payload, ret_message);
    if (r == 0)
        return 0;
    metric_add(metrics, METRIC_EVENTS_BAD_HEADER, 1);
    if (log_rate_allows(rate, ret_message->received_us / 1000, &held_back))
        log_warn("event_dropped", "reason=bad_header channel=%.*s bytes=%zu held_back=%" PRIu64,
                 SL_SLICE_ARG(channel), payload.size, held_back);
    return r;
}
