/* gateway/dialects/jetstream_wish.h - what a client of Jetstream wants: out of its query, or of a
 * message with new options, which mean the same.
 *
 * What is wrong is refused in the words of Jetstream. Of collections, those that a stream of ours
 * has are looked for; of DIDs, the users. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "gateway/http/http.h"

enum { JETSTREAM_WANTED_COLLECTIONS_MAX = 100, JETSTREAM_WANTED_DIDS_MAX = 10000 };

/* Begin zeroed. */
struct jetstream_wish {
    bool has_collections, has_dids; /* or everything */
    unsigned collections;           /* a bit for each enum jetstream_collection */
    uint32_t collection_count, did_count;
    struct buffer users; /* with commas between them */
    uint32_t max_bytes;  /* of a message; 0: no limit */
    bool has_cursor;
    uint64_t cursor_us;
    bool waits; /* for a message with options */
};

void jetstream_wish_done(struct jetstream_wish *wish);

/* 0; -EPROTO: *refusal; -ENOMEM. In all cases end it with jetstream_wish_done(). */
int jetstream_wish_read_query(struct sl_slice query, struct jetstream_wish *wish,
                              struct http_refusal *refusal);
/* Frames in zstd, with a dictionary that clients of Jetstream have: fills *refusal. Returns
 * -EPROTO.
 */
int jetstream_wish_refuse_compression(struct http_refusal *refusal);
/* {"type":"options_update","payload":{...}}. *ret_is_known: it is such a message; others are
 * ignored. The same. */
int jetstream_wish_read_message(struct sl_slice text, struct jetstream_wish *wish,
                                bool *ret_is_known, struct http_refusal *refusal);
