/* gateway/intake/event_decode.h - untrusted bytes -> event, or a precise refusal.
 *
 * One pass of yajl over the whole message: valid UTF-8, one JSON object, depth at most 32, every
 * number kept as text. Which members an event must have is in docs/events.md; what is missing or
 * mistyped makes the event invalid, optional members in bad shape count as absent, and of a
 * repeated member the last counts. The JSON that clients get is the message as it came, in one
 * line, but for a delete (ids only) and for a restricted post (the kind of audience, without its
 * list). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "gateway/intake/event.h"

/* Where a message came from; copied into the event. */
struct event_origin {
    uint64_t id; /* the cursor; 0: none, the event's own "id" is then the producer's number */
    uint64_t previous;
    uint32_t shard;
    uint64_t received_us;
};

/* Memory that is used again from one message to the next. Belongs to one thread. */
struct event_decoder;

/* `max_bytes`: the longest message taken. NULL: out of memory. */
struct event_decoder *event_decoder_new(size_t max_bytes);
void event_decoder_free(struct event_decoder *decoder);

/* 0: the caller owns one reference; -EBADMSG: not a valid event, *reterr says what is wrong (never
 * quoting the text); -E2BIG: too long; -ENOMEM. */
int event_decode(struct event_decoder *decoder, struct sl_slice message,
                 const struct event_origin *origin, struct event **ret_event,
                 struct failure *reterr);
