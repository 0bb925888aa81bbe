/* gateway/front/session_cookie.h - the cookie by which an EventSource that was opened with a ticket
 * comes back by itself, with the URL of before.
 *
 * There is one for each stream that the browser has opened: its name has the beginning of the
 * stream's print, its value is the secret of a pass. Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/front/origin.h"
#include "gateway/front/stream_pass.h"
#include "gateway/http/http.h"

enum {
    SESSION_COOKIES_MAX = 16,         /* of a browser; further streams have none */
    SESSION_MAX_MS = 24 * 3600 * 1000 /* and no token is that of a session for longer */
};

/* May this request come with such a cookie, and its answer set one? A GET by HTTP, which wants
 * Server-Sent Events, of a page that the browser says is this server's own, or whose origin is
 * named: `dev` names none. */
bool session_cookie_permitted(const struct origin_policy *policy, const struct http_request *http);

/* The value of the one for `print`; without data: there is none. */
struct sl_slice session_cookie_find(const struct http_request *http,
                                    const struct stream_print *print);
/* Is there room for one more, or has it one of this name? */
bool session_cookie_has_room(const struct http_request *http, const struct stream_print *print);
/* A line of a header, with its CRLF. */
void session_cookie_append(const struct stream_print *print, const char *secret, uint64_t ms,
                           struct buffer *headers);
