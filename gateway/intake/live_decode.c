#include "gateway/intake/live_decode.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"

static int refuse(struct live_decoder *decoder, const struct live_message *message, int error,
                  const struct failure *failure)
{
    uint64_t held_back;

    metric_add(decoder->metrics, error == -E2BIG ? METRIC_EVENTS_TOO_BIG : METRIC_EVENTS_INVALID,
               1);
    if (log_rate_allows(&decoder->refused_rate, clock_monotonic_ms(), &held_back))
        log_warn("event_refused", "shard=%u id=%" PRIu64 " bytes=%zu why=\"%s\" held_back=%" PRIu64,
                 message->shard, message->id, message->body.size, failure->text, held_back);
    return -EBADMSG;
}

int live_decode(struct live_decoder *decoder, const struct live_message *message,
                struct event **ret_event)
{
    const struct event_origin origin = {message->id, message->previous, message->shard,
                                        message->received_us};
    struct failure failure = {"out of memory"};
    int r;

    if (message->form == LIVE_REFUSED)
        return -EBADMSG;
    if (message->form == LIVE_EVENT) {
        r = event_from_bytes(message->body, ret_event);
        if (r == -EBADMSG)
            failure_set(&failure, r, "this is not an event");
    } else {
        r = event_decode(decoder->decoder, message->body, &origin, ret_event, &failure);
    }
    if (r == 0 || (r == -ENOMEM && message->id > 0))
        return r;
    return refuse(decoder, message, r, &failure);
}
