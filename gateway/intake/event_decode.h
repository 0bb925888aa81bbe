/* gateway/intake/event_decode.h - untrusted bytes -> event, or a precise refusal.
 *
 * One pass of yajl over the whole message: valid UTF-8, one JSON object, depth at most 32, every
 * number kept as text. Which members an event must have is in docs/events.md; what is missing or
 * mistyped makes the event invalid, optional members in bad shape count as absent. The JSON that
 * clients get is the message as it came, but for a delete (ids only) and for a restricted post
 * (the kind of audience, without its list). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "gateway/intake/event.h"

enum { EVENT_MAX_DEPTH = 32 };

/* `id` is the cursor (0: none; the event's own "id" member is then the producer's own number).
 * 0; -EBADMSG: not a valid event, *reterr says what is wrong (never quoting the text);
 * -E2BIG: longer than `max_bytes`; -ENOMEM. On success the caller owns one reference. */
int event_decode(struct sl_slice message, uint64_t id, size_t max_bytes, struct event **ret_event,
                 struct failure *reterr);
