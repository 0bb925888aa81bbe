/* gateway/streams/channel.h - internal to streams: what is sent on a connection because of one
 * request.
 *
 * Each stream has a channel of its own, for the request that began the connection. On /v1/stream
 * and in dialects the client can open more streams on the connection; each is a channel with a
 * name, which is a member of all its messages. A channel is a client of delivery and so has its own
 * position in the events; its data is sent through the stream's wire, in order with everything
 * else. */
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
    struct client client; /* of delivery; must be the first member, see channel_of() */
    struct stream *stream;
    struct list_node node;         /* in stream->channels */
    struct stream_request request; /* its filter is NULL after leaving delivery */
    struct rule_set *rules; /* if it accepts rules; NULL after leaving delivery, which frees them */
    char *name;             /* name of an opened stream, of ... */
    size_t name_size;       /* ... this many bytes; NULL: the stream's own channel */
    struct filter_share filters; /* the memory of its filters */
    struct user_questions user_questions;
    uint64_t opened_ms; /* time of the loop's clock */
    bool is_evicted;
    uint8_t disconnect_reason; /* enum disconnect_reason, if `is_evicted` */
    struct sl_cursor disconnect_cursor;
    uint64_t told_undelivered; /* the number that the client was last told */
    uint64_t added[USE_SUMS];  /* what has been added to the subject's use so far */
    size_t left_filters;       /* filters when it left delivery, and their bytes of text */
    size_t left_filter_bytes;
};

/* NULL: the client does not belong to a stream. */
struct channel *channel_of(const struct client *client);

static inline bool channel_is_opened(const struct channel *channel)
{
    return channel->name != NULL;
}
/* The name of an opened stream; absent: the stream's own channel. */
static inline struct sl_slice channel_name(const struct channel *channel)
{
    return sl_slice(channel->name, channel->name_size);
}

/* Takes over `request` and `filters`. */
void channel_init(struct channel *channel, struct stream *stream,
                  const struct stream_request *request, const struct filter_share *filters);
/* Makes it an opened stream with this name. `tail` (absent: nothing) is inserted before the closing
 * brace of everything that it sends. 0; -ENOMEM. */
int channel_set_name(struct channel *channel, struct sl_slice name, struct sl_slice tail);
void channel_done(struct channel *channel); /* after it has left delivery */

/* To be called in this order: joins delivery; sends the messages that precede the first event;
 * starts sending at the position that was requested. 0; -ENOMEM. */
int channel_join(struct channel *channel);
void channel_say_first(struct channel *channel);
/* Warnings about its filter, which are sent once: NULL for a client that resumes with a cursor,
 * because it has had them. The caller frees them. Warnings that need Redis follow later. */
struct sl_filter_warnings *channel_take_warnings(struct channel *channel);
int channel_resume(struct channel *channel);

/* Where the client would resume. Before the first event of the log it is the lowest valid id. */
struct sl_cursor channel_cursor(const struct channel *channel);
/* Sends {"type":"cursor"}. */
void channel_say_cursor(struct channel *channel);
/* The time until everything up to its `until` has arrived and has been sent. UINT64_MAX: there is
 * no `until`, or the client catches up, which ends by itself. */
uint64_t channel_until_left_ms(const struct channel *channel);

/* Sends nothing from now on, and records its cursor. The first reason counts. */
void channel_suspend(struct channel *channel, enum disconnect_reason reason);
/* Also ends it, at the end of the turn, with a message that contains the reason. The stream's own
 * channel ends the stream. */
void channel_evict(struct channel *channel, enum disconnect_reason reason);
/* Sends {"type":"warning","code":"token_expiring"}; `left_ms` is the time until the token ends the
 * stream. */
void channel_say_token_expiring(struct channel *channel, uint64_t left_ms);
/* Sends that message. `retry_ms`: when to reconnect, if the reason permits that. */
void channel_say_disconnect(struct channel *channel, uint32_t retry_ms);
/* Drops what it has not been sent. Delivery frees its rules with the last client that uses them. */
void channel_leave_delivery(struct channel *channel);
/* Logs one line about its whole life: client, transport, size of the filters (their texts are
 * private), duration, amount, and the reason of its end. */
void channel_log_end(const struct channel *channel, const char *why);
