/* gateway/front/session_cookie.h - the cookie with which an EventSource that was opened with a
 * ticket reconnects by itself, using the same URL.
 *
 * There is one cookie for each stream that the browser has opened: its name contains the beginning
 * of the stream's print, its value is the secret of a pass. Pure functions. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gateway/front/origin.h"
#include "gateway/front/stream_pass.h"
#include "gateway/http/http.h"

enum {
    SESSION_COOKIES_MAX = 16,         /* of a browser; further streams get none */
    SESSION_MAX_MS = 24 * 3600 * 1000 /* the maximum lifetime of a session */
};

/* Whether this request may use such a cookie, and its response set one: a GET over HTTP for
 * Server-Sent Events, from a page that the browser says is this server's own, or whose origin is
 * named (`dev` names none). */
bool session_cookie_permitted(const struct origin_policy *policy, const struct http_request *http);

/* The value of the cookie for `print`; without data: there is none. */
struct sl_slice session_cookie_find(const struct http_request *http,
                                    const struct stream_print *print);
/* Whether there is room for another cookie, or one with this name exists. */
bool session_cookie_has_room(const struct http_request *http, const struct stream_print *print);
/* Appends a header line with its CRLF. */
void session_cookie_append(const struct stream_print *print, const char *secret, uint64_t ms,
                           struct buffer *headers);
