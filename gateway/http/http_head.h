/* gateway/http/http_head.h - parses the head of an HTTP/1 request. Pure functions: the results are
 * slices of the input, which is neither copied nor changed.
 *
 * Parsing is strict where RFC 9112 leaves a choice, because two parsers that disagree about the
 * end of a request are a vulnerability (request smuggling): lines end in CRLF, there is no
 * folding and no space before a colon, bodies need a Content-Length of digits and must not have
 * Transfer-Encoding or Content-Encoding, and headers that affect the meaning must not be
 * repeated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "gateway/http/http.h"

/* The size of the head at the beginning of `input`, including its empty line; 0: it is incomplete.
 * `seen`: the number of bytes that an earlier call has searched without finding the end. A line
 * without CR also ends the head, so that it can be refused at once. */
size_t http_head_end(struct sl_slice input, size_t seen);

struct http_head {
    struct sl_slice text;        /* the whole head as received */
    struct http_request request; /* without its body */
    uint64_t body_size;          /* number of bytes that follow the head */
    bool lacks_length;           /* a POST without Content-Length */
    bool expects_continue;       /* the client waits for 100 before it sends the body */
    bool connection_upgrades;    /* Connection contains `upgrade`; request.is_upgrade refers to
                                    Upgrade */
    struct sl_slice websocket_key, websocket_version;
};

/* `head` must have the length returned by http_head_end(), and must outlive *ret_head. A header
 * with an empty value is absent, except Idempotency-Key, which is then malformed. 0; -EPROTO:
 * respond with *refusal; the rest of the input cannot be delimited. */
int http_head_read(struct sl_slice head, size_t max_body_bytes, struct http_head *ret_head,
                   struct http_refusal *refusal);

/* For a head that was refused: reads its request line up to the error; without a path if that
 * cannot be read. */
struct http_request http_head_read_line(struct sl_slice head);
