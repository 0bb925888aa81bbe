/* gateway/intake/live_channel.h - the live channels in the Redis protocol: the subscription to all
 * of them, and the messages received. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdint.h>

#include "base/log.h"
#include "gateway/intake/live_message.h"
#include "gateway/metrics/metrics.h"
#include "src/call/call.h"

/* Builds SUBSCRIBE with the channels of all shards. 0; -ENOMEM. */
int live_channel_subscribe_call(struct sl_call *call, uint32_t shards);

/* Reads a reply `[kind, channel, payload]` of three strings. 0: *ret_message borrows from it;
 * -EBADMSG: not a message (live_message_read()), which is counted, and logged as `rate` allows. */
int live_channel_read(const redisReply *reply, struct metrics *metrics, struct log_rate *rate,
                      struct live_message *ret_message);
