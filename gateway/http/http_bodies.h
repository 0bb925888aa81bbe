/* gateway/http/http_bodies.h - the memory of all request bodies that are on their way, bounded.
 *
 * A small body is always read: so many of them as there may be requests half read. Larger ones
 * share `max_bytes`, of which one address gets a quarter. Where a further piece does not fit,
 * whoever is slowest, of that address or of all, gives way: so neither many clients that stop
 * half-way nor one address keep others out.
 *
 * How fast somebody is, is judged by what came lately: each byte counts half as much after
 * HTTP_BODIES_HALF_LIFE_MS. An average since the beginning would prefer who sent much at once and
 * then stopped to who goes on at a moderate pace.
 *
 * Streams have another such sum for what is kept of them, by subject instead of address
 * (streams/stream_memory.c). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"

enum {
    HTTP_SMALL_BODY = 16384,     /* bytes; up to there a body is not counted */
    HTTP_BODIES_GRACE_MS = 1000, /* nobody is called slow before */
    HTTP_BODIES_HALF_LIFE_MS = 1000,
    HTTP_BODIES_SHARE = 4, /* an address gets one part of so many */
    HTTP_BODIES_ADDRESS_SIZE = 16
};

/* A large body on its way. */
struct http_body_share {
    struct list_node node; /* in no list: small */
    size_t bytes;          /* that have come */
    double recent;         /* bytes, as they counted at recent_ms */
    uint64_t recent_ms;
    uint64_t began_ms;
    uint8_t address[HTTP_BODIES_ADDRESS_SIZE];
    uint8_t address_size; /* 0: it has none, and is bounded with all others only */
};

struct http_bodies {
    struct list large;
    size_t bytes; /* of all large ones */
    size_t max_bytes;
};

void http_bodies_init(struct http_bodies *bodies, size_t max_bytes);

/* A large body begins. */
void http_bodies_add(struct http_bodies *bodies, struct http_body_share *share,
                     struct sl_slice address, uint64_t now_ms);
/* Its memory is given back, or is somebody else's now. One that was never added is fine. */
void http_bodies_remove(struct http_bodies *bodies, struct http_body_share *share);
/* Of its bytes only so many are left. */
void http_bodies_shrink(struct http_bodies *bodies, struct http_body_share *share, size_t bytes);

/* `size` further bytes of `share` have come. Who must give way for them: NULL, nobody; perhaps
 * `share` itself. Ask again (with size 0) when the one that was told is removed. */
struct http_body_share *http_bodies_grow(struct http_bodies *bodies, struct http_body_share *share,
                                         size_t size, uint64_t now_ms);
