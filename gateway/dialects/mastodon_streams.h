/* gateway/dialects/mastodon_streams.h - the streams of Mastodon by their names, in our words.
 *
 * Streams of what does not exist here (posts of other servers, notifications, tags that no post can
 * have) are silent rather than refused: clients open them beside others, and some give up all of
 * their streams when one is refused. */
#pragma once

#include "gateway/front/dialect.h"

/* In their words: "hashtag:local", and what is said besides. */
struct mastodon_wish {
    struct sl_slice name;
    struct sl_slice tag, list; /* absent: not said */
};

/* Adds to *asked, but for how and where it is sent. `room` is memory of the caller's for as long as
 * *asked, of MASTODON_ROOM_SIZE. 0; -EPROTO: *refusal; -ENOMEM. */
enum {
    MASTODON_TAG_MAX_BYTES = 200, /* as the client writes it */
    MASTODON_ROOM_SIZE = MASTODON_TAG_MAX_BYTES + 2
};
int mastodon_ask(const struct mastodon_wish *wish, struct dialect_stream *asked, char *room,
                 struct http_refusal *refusal);

/* What a client is told of a refusal, which may be about the filter that a tag became: neither the
 * filter nor its parameters are anything to that client. */
struct mastodon_error {
    int status;
    struct sl_slice message;
};
struct mastodon_error mastodon_error_of(const struct http_refusal *refusal);
