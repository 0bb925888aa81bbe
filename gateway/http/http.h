/* gateway/http/http.h - an HTTP request, and its refusal.
 *
 * Plain values: http_head fills a request; tests fill it by hand. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/slice.h"

enum http_method {
    HTTP_GET,
    HTTP_HEAD,
    HTTP_POST,
    HTTP_PUT,
    HTTP_DELETE,
    HTTP_OPTIONS,
    HTTP_PATCH,
    HTTP_OTHER
};

enum { HTTP_LIST_LINES = 4 };

/* A header whose value is a list may have several lines, which form one list (RFC 9110, 5.3). The
 * first elements are filled, the others are absent. */
struct http_list {
    struct sl_slice lines[HTTP_LIST_LINES];
};

struct use_check; /* front/use_check.h */

/* A header that was not sent is a slice without data. */
struct http_request {
    enum http_method method;
    bool is_http_1_0;
    bool is_upgrade;       /* asks for an upgrade to WebSocket */
    bool wants_close;      /* HTTP/1.0, or `Connection: close` */
    struct sl_slice path;  /* as sent, without the query */
    struct sl_slice query; /* as sent, without the `?` */
    struct sl_slice body;  /* of a POST */
    struct sl_slice content_type;
    struct sl_slice authorization;
    struct http_list accept;
    struct http_list accept_encoding;
    struct sl_slice if_none_match;
    struct sl_slice origin;
    struct sl_slice wanted_headers; /* Access-Control-Request-Headers */
    struct sl_slice host;
    struct sl_slice last_event_id;
    struct sl_slice cookie;
    struct sl_slice fetch_site;  /* Sec-Fetch-Site, which browsers set and web pages cannot
                                    change */
    struct http_list extensions; /* Sec-WebSocket-Extensions */
    struct sl_slice protocols;   /* Sec-WebSocket-Protocol, the whole list */
    struct sl_slice idempotency_key;
    struct sl_slice socket_encoding; /* of clients of Jetstream */
    /* What a trusted proxy says about its client (client_address.h). */
    struct http_list forwarded_for;   /* X-Forwarded-For, the last lines of it */
    struct http_list forwarded_proto; /* X-Forwarded-Proto, the same */
    struct http_list forwarded;       /* Forwarded, the last lines of it */
    struct use_check *use;            /* limits how much may be requested; NULL: no limit */
};

/* `text` without spaces and tabs around it. */
struct sl_slice http_trim(struct sl_slice text);
/* Removes the first element from the list in a header's value (`separator` is ',' or ';'), trimmed.
 * Iterate while rest->size > 0. */
struct sl_slice http_next_element(struct sl_slice *rest, char separator);
/* Compares without regard to the case of ASCII letters. */
bool http_token_is(struct sl_slice text, const char *token);

enum { HTTP_MESSAGE_SIZE = 384, HTTP_PARAM_SIZE = 64 };

/* For temporary conditions: a limit that is reached, a Redis that is down. */
enum { HTTP_RETRY_AFTER_S = 2 };

/* A response other than success. */
struct http_refusal {
    int status;
    const char *code;                /* "bad_token", ...; static */
    char message[HTTP_MESSAGE_SIZE]; /* valid UTF-8, truncated if too long */
    char param[HTTP_PARAM_SIZE];     /* the wrong parameter: letters, digits and _ . - only; empty:
                                        none */
    size_t place; /* position of the error in the parameter: in characters (code points), from 1; 0:
                     none */
    const char *www_authenticate; /* 401, 403; NULL: no such header; static */
    const char *allow;            /* 405; static */
    const char *accept_encoding;  /* for 415 because of the encoding of a body; static */
    unsigned retry_after_s;       /* 429, 503; 0: no such header */
};

/* Fills a refusal and returns -EPROTO, so that a function can end with it. `param` may be NULL, or
 * come from the client; it is omitted if it cannot be shown. */
int http_refuse(struct http_refusal *refusal, int status, const char *code, const char *param,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

/* Writes {"error":{"code":..,"message":..,"param":..,"at":..}} and a newline; `at` is the position,
 * counted from 0. */
void http_refusal_print(const struct http_refusal *refusal, struct buffer *ret_json);

/* "Not Found", ...; "Error" for a status without a name. */
const char *http_reason(int status);
