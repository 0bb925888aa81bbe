/* gateway/http/http_bodies.h - limits the memory of all request bodies that are being received.
 *
 * A small body is always read; the number of incomplete requests limits these. Larger ones share
 * `max_bytes`, of which one address gets a quarter. If there is no room for more bytes, the slowest
 * body, of that address or of all, is refused. So neither many clients that stop half-way nor a
 * single address can exclude others.
 *
 * Speed is measured by recent bytes: each byte counts half as much after HTTP_BODIES_HALF_LIFE_MS.
 * An average since the beginning would prefer a client that sent much at once and then stopped to
 * one that continues at a moderate speed.
 *
 * The memory of streams is limited in a similar way, by subject instead of address
 * (streams/stream_memory.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"

enum {
    HTTP_SMALL_BODY = 16384,     /* bytes; smaller bodies are not counted */
    HTTP_BODIES_GRACE_MS = 1000, /* no body counts as slow before this age */
    HTTP_BODIES_HALF_LIFE_MS = 1000,
    HTTP_BODIES_SHARE = 4, /* an address gets the total divided by this number */
    HTTP_BODIES_ADDRESS_SIZE = 16
};

/* A large body being received. */
struct http_body_share {
    struct list_node node; /* in no list: a small body */
    size_t bytes;          /* received so far */
    double recent;         /* weighted bytes at recent_ms */
    uint64_t recent_ms;
    uint64_t began_ms;
    uint8_t address[HTTP_BODIES_ADDRESS_SIZE];
    uint8_t address_size; /* 0: no address, only the limit for all applies */
};

struct http_bodies {
    struct list large;
    size_t bytes; /* of all large bodies */
    size_t max_bytes;
};

void http_bodies_init(struct http_bodies *bodies, size_t max_bytes);

/* Adds a large body. */
void http_bodies_add(struct http_bodies *bodies, struct http_body_share *share,
                     struct sl_slice address, uint64_t now_ms);
/* Its memory was freed, or was handed over. No effect if it was never added. */
void http_bodies_remove(struct http_bodies *bodies, struct http_body_share *share);
/* Only this many of its bytes are still held. */
void http_bodies_shrink(struct http_bodies *bodies, struct http_body_share *share, size_t bytes);

/* Adds `size` received bytes to `share`. Returns the body that must give way for them, possibly
 * `share` itself; NULL: none. Call it again (with size 0) after that body was removed. */
struct http_body_share *http_bodies_grow(struct http_bodies *bodies, struct http_body_share *share,
                                         size_t size, uint64_t now_ms);
