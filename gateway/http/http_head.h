/* gateway/http/http_head.h - the head of an HTTP/1 request: where it ends, whether it is sound, and
 * what it says. Pure: bytes in, slices of these bytes out; nothing is copied or changed.
 *
 * Strict where RFC 9112 leaves room, for two readers of one request that disagree about its end are
 * a hole in whatever stands in front: lines end in CRLF, nothing is folded, no space stands before
 * a colon, bodies have a Content-Length of digits and neither a Transfer-Encoding nor a
 * Content-Encoding, and a header that decides something comes once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "gateway/http/http.h"

/* Bytes of the head at the beginning of `input`, with its empty line; 0: it is not whole yet. Of
 * an input of which a call has seen the first `seen` bytes and found no end, only the rest is
 * looked at. A line without CR ends the head, too: it will be refused, so nobody waits for more. */
size_t http_head_end(struct sl_slice input, size_t seen);

struct http_head {
    struct sl_slice text;        /* all of it, as it came */
    struct http_request request; /* but for its body */
    uint64_t body_size;          /* bytes that follow the head */
    bool lacks_length;           /* a POST that does not say how many */
    bool expects_continue;       /* the client waits for 100 before it sends them */
    bool connection_upgrades;    /* Connection names `upgrade`; request.is_upgrade means Upgrade */
    struct sl_slice websocket_key, websocket_version;
};

/* `head` is as long as http_head_end() says, and must outlive what *ret_head points to. A header
 * with an empty value is absent, but for Idempotency-Key, which is then malformed. 0; -EPROTO:
 * *refusal is the answer, and what follows in the input cannot be told. */
int http_head_read(struct sl_slice head, size_t max_body_bytes, struct http_head *ret_head,
                   struct http_refusal *refusal);

/* Of a head that is refused: its first line up to the fault; without a path if that cannot be read.
 */
struct http_request http_head_read_line(struct sl_slice head);
