/* gateway/intake/live_channel.h - the live channels as Redis speaks of them: the subscription to
 * all, and each message, as it comes to whoever has subscribed. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdint.h>

#include "base/log.h"
#include "gateway/intake/live_message.h"
#include "gateway/metrics/metrics.h"
#include "src/call/call.h"

/* Builds SUBSCRIBE, with the channels of all shards. 0; -ENOMEM. */
int live_channel_subscribe_call(struct sl_call *call, uint32_t shards);

/* A reply `[kind, channel, payload]`, of strings all three. 0: *ret_message borrows from it;
 * -EBADMSG: it is none (live_message_read()), which is counted, and logged as `rate` allows. */
int live_channel_read(const redisReply *reply, struct metrics *metrics, struct log_rate *rate,
                      struct live_message *ret_message);
