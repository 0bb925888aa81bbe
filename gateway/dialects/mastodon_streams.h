/* gateway/dialects/mastodon_streams.h - maps Mastodon's streams to ours.
 *
 * Streams of what does not exist here (posts of other servers, notifications, tags that no post can
 * have) are silent, not refused, because clients open them together with others, and some give up
 * all their streams if one is refused. */
#pragma once

#include "gateway/front/dialect.h"

/* A stream as the client names it, such as "hashtag:local", with its parameters. */
struct mastodon_selection {
    struct sl_slice name;
    struct sl_slice tag, list; /* absent: not given */
};

/* Sets the stream and parameters of *asked, not its transport or format. `room` has
 * MASTODON_ROOM_SIZE bytes and must exist as long as *asked. 0; -EPROTO: *refusal is set;
 * -ENOMEM. */
enum {
    MASTODON_TAG_MAX_BYTES = 200, /* before letters are selected */
    MASTODON_ROOM_SIZE = MASTODON_TAG_MAX_BYTES + 2
};
int mastodon_ask(const struct mastodon_selection *selection, struct dialect_stream *asked,
                 char *room, struct http_refusal *refusal);

/* What a client is told of a refusal. If it is about the filter that a tag became, that filter must
 * not be mentioned, because the client knows nothing of it. */
struct mastodon_error {
    int status;
    struct sl_slice message;
};
struct mastodon_error mastodon_error_of(const struct http_refusal *refusal);
