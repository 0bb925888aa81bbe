/* gateway/dialects/jetstream_form.h - renders an event in the format of Jetstream, version 1.
 *
 * A post is a commit that creates a record of app.bsky.feed.post; if it only repeats another post,
 * of app.bsky.feed.repost. A follow is a record of app.bsky.graph.follow. A deletion is a commit
 * that deletes the record. A new user causes two messages, identity and account; a new login causes
 * an identity message. The CID of a record is that of its DAG-CBOR. For a post that another one
 * refers to, the record is not available; its CID is computed from the bytes of its URI.
 *
 * Our own messages, such as warnings, are not rendered. */
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

/* The options of a stream: a bit for each collection; the maximum size of a message, 0: unlimited;
 * the number of shards of the database. */
static inline uint64_t jetstream_options(unsigned collections, uint32_t max_bytes, uint32_t shards)
{
    return (uint64_t)max_bytes << 16 | (uint64_t)(shards & 0xff) << 8 | collections;
}

/* Option: renders the account message of a new user; without it, the identity message. */
enum { JETSTREAM_ACCOUNT = 1 << 7 };
_Static_assert(1 << JETSTREAM_COLLECTIONS <= JETSTREAM_ACCOUNT, "beside the collections");

const char *jetstream_collection_name(enum jetstream_collection collection);

int jetstream_render(const struct event *event, uint64_t options, struct buffer *ret_text);
uint64_t jetstream_second(const struct event *event, uint64_t options);
