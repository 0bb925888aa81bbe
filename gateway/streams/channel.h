/* gateway/streams/channel.h - inside streams: what is sent on a connection for one request.
 *
 * A stream has a channel of its own, that of the request which began its connection; and on
 * /v1/stream those that its client has opened by a name, which every message of them ends with. A
 * channel is a client of delivery, and so has a place of its own in what happens; what it is sent
 * goes out by the stream's wire, in order with all else. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "gateway/delivery/client.h"
#include "gateway/front/stream_request.h"
#include "gateway/front/use_limits.h"
#include "gateway/streams/filter_budget.h"
#include "gateway/streams/user_check.h"

struct rule_set;
struct stream;

struct channel {
    struct client client; /* of delivery; first, see channel_of() */
    struct stream *stream;
    struct list_node node;         /* in stream->channels */
    struct stream_request request; /* its filter is NULL once it has left delivery */
    struct rule_set
        *rules;       /* if it takes rules; NULL once it has left delivery, which frees them */
    char *name;       /* by which it was opened, and ... */
    size_t name_size; /* ... its bytes; NULL: the stream's own */
    struct filter_share filters; /* what they cost */
    struct user_questions user_questions;
    uint64_t opened_ms; /* clock of the loop */
    bool is_evicted;
    uint8_t disconnect_reason; /* enum disconnect_reason, if `is_evicted` */
    struct sl_cursor disconnect_cursor;
    uint64_t added[USE_SUMS]; /* of what it has been sent, to what its subject has used */
    size_t left_filters; /* how many it had when it left delivery, and of how many bytes of text */
    size_t left_filter_bytes;
};

/* NULL: the client is on no stream. */
struct channel *channel_of(const struct client *client);

static inline bool channel_is_opened(const struct channel *channel)
{
    return channel->name != NULL;
}
/* By which it was opened; absent: the stream's own. */
static inline struct sl_slice channel_name(const struct channel *channel)
{
    return sl_slice(channel->name, channel->name_size);
}

/* `request` and `filters` are the channel's from now on. */
void channel_init(struct channel *channel, struct stream *stream,
                  const struct stream_request *request, const struct filter_share *filters);
/* It is opened, by this name; `tail` (absent: nothing) goes before the closing brace of all that it
 * is sent. 0; -ENOMEM. */
int channel_set_name(struct channel *channel, struct sl_slice name, struct sl_slice tail);
void channel_done(struct channel *channel); /* it has left delivery */

/* It begins by these, in this order: it joins delivery, is told what comes before the first event,
 * and goes on from where it asked to begin. 0; -ENOMEM. */
int channel_join(struct channel *channel);
void channel_say_first(struct channel *channel);
/* What its filter may not have meant, to be told once: NULL to who comes back with a cursor, and
 * was told. The caller's; what Redis has to say of it is told later. */
struct sl_filter_warnings *channel_take_warnings(struct channel *channel);
int channel_resume(struct channel *channel);

/* Where the client would go on. While nothing has been logged it is before everything, by the
 * lowest id that is taken for one. */
struct sl_cursor channel_cursor(const struct channel *channel);
/* {"type":"cursor"}. */
void channel_say_cursor(struct channel *channel);
/* Until what happened up to its `until` has arrived, and been sent. UINT64_MAX: there is none, or
 * it catches up, and comes to its end by itself. */
uint64_t channel_until_left_ms(const struct channel *channel);

/* It is sent nothing any more, and its cursor is taken down now. The first reason wins. */
void channel_suspend(struct channel *channel, enum disconnect_reason reason);
/* And at the end of the turn it ends with a message that says why; with the stream's own channel
 * the stream does. */
void channel_evict(struct channel *channel, enum disconnect_reason reason);
/* {"type":"warning","code":"token_expiring"}: so long until the token ends it. */
void channel_say_token_expiring(struct channel *channel, uint64_t left_ms);
/* The message. `retry_ms`: if the reason invites to come back. */
void channel_say_disconnect(struct channel *channel, uint32_t retry_ms);
/* Nothing is owed to it any more. Delivery's rules go with their last client. */
void channel_leave_delivery(struct channel *channel);
/* One line for its whole life: who, how, what for (by size: what was asked for is the client's
 * affair), how long, how much, why it ended. */
void channel_log_end(const struct channel *channel, const char *why);
