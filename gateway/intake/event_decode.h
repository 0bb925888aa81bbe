/* gateway/intake/event_decode.h - decodes an untrusted message to an event, or refuses it with the
 * reason.
 *
 * The message is parsed in one pass of yajl: valid UTF-8, one JSON object, depth at most 32, every
 * number kept as text. docs/events.md says which members an event must have. An event with required
 * members that are missing or have the wrong type is invalid; invalid optional members count as
 * absent; the last of repeated members counts. The JSON for clients is the message as it arrived,
 * in one line, except for a deletion (ids only) and a restricted post (the kind of audience,
 * without its list). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "gateway/intake/event.h"

/* Where a message came from; copied into the event. */
struct event_origin {
    uint64_t id; /* the cursor; 0: none, the event's own "id" is then a number of the producer */
    uint64_t previous;
    uint32_t shard;
    uint64_t received_us;
};

/* Memory reused for each message. Belongs to one thread. */
struct event_decoder;

/* `max_bytes`: the maximum size of a message. NULL: out of memory. */
struct event_decoder *event_decoder_new(size_t max_bytes);
void event_decoder_free(struct event_decoder *decoder);

/* 0: the caller owns one reference; -EBADMSG: not a valid event, *reterr says why (without quoting
 * the text); -E2BIG: too long; -ENOMEM. */
int event_decode(struct event_decoder *decoder, struct sl_slice message,
                 const struct event_origin *origin, struct event **ret_event,
                 struct failure *reterr);
