/* gateway/dialects/jetstream_selection.h - reads what a client of Jetstream wants, from the query
 * of its request, or from a message with new options; both have the same meaning.
 *
 * Invalid values are refused with the messages of Jetstream. Only collections and users that exist
 * here can match; others are accepted and ignored. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "gateway/http/http.h"

enum { JETSTREAM_WANTED_COLLECTIONS_MAX = 100, JETSTREAM_WANTED_DIDS_MAX = 10000 };

/* Initialize with zeros. */
struct jetstream_selection {
    bool has_collections, has_dids; /* false: everything */
    unsigned collections;           /* a bit for each enum jetstream_collection */
    uint32_t collection_count, did_count;
    struct buffer users; /* separated by commas */
    uint32_t max_bytes;  /* maximum size of a message; 0: unlimited */
    bool has_cursor;
    uint64_t cursor_us;
    bool waits; /* until a message with options arrives */
};

void jetstream_selection_done(struct jetstream_selection *selection);

/* 0; -EPROTO: *refusal is set; -ENOMEM. Free it with jetstream_selection_done() in every case. */
int jetstream_selection_read_query(struct sl_slice query, struct jetstream_selection *selection,
                                   struct http_refusal *refusal);
/* For requests of zstd with Jetstream's own dictionary: sets *refusal. Returns -EPROTO. */
int jetstream_selection_refuse_compression(struct http_refusal *refusal);
/* Reads {"type":"options_update","payload":{...}}. *ret_is_known is false for other messages, which
 * are to be ignored. Returns the same. */
int jetstream_selection_read_message(struct sl_slice text, struct jetstream_selection *selection,
                                     bool *ret_is_known, struct http_refusal *refusal);
