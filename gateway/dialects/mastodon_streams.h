/* gateway/dialects/mastodon_streams.h - the streams of Mastodon by their names, in our words.
 *
 * Those that bring what there is none of here (posts of other servers, notifications) are there and
 * silent: clients open them beside others, and some give all up when one is refused. */
#pragma once

#include "gateway/front/dialect.h"

/* In their words: "hashtag:local", and what is said besides. */
struct mastodon_wish {
    struct sl_slice name;
    struct sl_slice tag, list; /* absent: not said */
};

/* Adds to *asked, but for how and where it is sent. `room` is memory of the caller's for as long as
 * *asked, of MASTODON_ROOM_SIZE. 0; -EPROTO: *refusal. */
enum { MASTODON_TAG_MAX_BYTES = 200, MASTODON_ROOM_SIZE = MASTODON_TAG_MAX_BYTES + 2 };
int mastodon_ask(const struct mastodon_wish *wish, struct dialect_stream *asked, char *room,
                 struct http_refusal *refusal);
