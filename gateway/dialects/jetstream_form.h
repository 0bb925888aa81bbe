/* gateway/dialects/jetstream_form.h - an event as Jetstream says it, version 1.
 *
 * A post is a commit that creates a record of app.bsky.feed.post; of app.bsky.feed.repost, if it
 * only repeats another; to follow somebody, one of app.bsky.graph.follow. A deletion is a commit
 * that deletes it. Of a new user there are two messages, of the identity and of the account, and of
 * another login one, of the identity. The CID of a record is that of its DAG-CBOR. Of a post that
 * another one refers to the record is not at hand: there it is the CID of the post's URI, of raw
 * bytes.
 *
 * Messages of ours have no counterpart. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "gateway/intake/event.h"

enum jetstream_collection {
    JETSTREAM_POST,
    JETSTREAM_REPOST,
    JETSTREAM_FOLLOW,
    JETSTREAM_COLLECTIONS
};

/* Of a stream: which collections, a bit for each; the largest message, 0 for any; and how many
 * shards the database has. */
static inline uint64_t jetstream_options(unsigned collections, uint32_t max_bytes, uint32_t shards)
{
    return (uint64_t)max_bytes << 16 | (uint64_t)(shards & 0xff) << 8 | collections;
}

/* One that says of a new user the account; without it, the identity. */
enum { JETSTREAM_ACCOUNT = 1 << 7 };
_Static_assert(1 << JETSTREAM_COLLECTIONS <= JETSTREAM_ACCOUNT, "beside the collections");

const char *jetstream_collection_name(enum jetstream_collection collection);

int jetstream_render(const struct event *event, uint64_t options, struct buffer *ret_text);
uint64_t jetstream_second(const struct event *event, uint64_t options);
