/* gateway/intake/live_decode.h - decodes a message of the live channel, or of the log, to its
 * event.
 *
 * Refused messages are counted, and logged at a limited rate: once, by the process that decodes. */
#pragma once

#include "base/log.h"
#include "gateway/intake/event_decode.h"
#include "gateway/intake/live_message.h"
#include "gateway/metrics/metrics.h"

/* All pointers are borrowed. */
struct live_decoder {
    struct event_decoder *decoder;
    struct metrics *metrics;
    struct log_rate refused_rate; /* zero at first */
};

/* 0: the caller owns one reference; -EBADMSG: refused, here or earlier; -ENOMEM: it can be read
 * from the log later. */
int live_decode(struct live_decoder *decoder, const struct live_message *message,
                struct event **ret_event);
