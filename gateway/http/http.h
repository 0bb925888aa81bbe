/* gateway/http/http.h - one HTTP request as the front sees it, and how it says no.
 *
 * Plain values: http_head fills a request, tests fill it by hand. */
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

/* A header whose value is a list may come on several lines, which together are one list (RFC 9110,
 * 5.3). The first are filled; the others are absent. */
struct http_list {
    struct sl_slice lines[HTTP_LIST_LINES];
};

struct use_check; /* front/use_check.h */

/* A header that was not sent is a slice without data. */
struct http_request {
    enum http_method method;
    bool is_http_1_0;
    bool is_upgrade;       /* wants to become a WebSocket */
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
    struct sl_slice fetch_site;  /* Sec-Fetch-Site: a browser's word, which no page can change */
    struct http_list extensions; /* Sec-WebSocket-Extensions */
    struct sl_slice protocols;   /* Sec-WebSocket-Protocol, the whole list */
    struct sl_slice idempotency_key;
    struct sl_slice socket_encoding; /* of clients of Jetstream */
    /* What a proxy says of its client, where it is one to be believed (client_address.h). */
    struct http_list forwarded_for;   /* X-Forwarded-For, the last lines of it */
    struct http_list forwarded_proto; /* X-Forwarded-Proto, the same */
    struct http_list forwarded;       /* the same */
    struct use_check *use;            /* who judges how much is asked; NULL: nobody */
};

/* Without spaces and tabs around it. */
struct sl_slice http_trim(struct sl_slice text);
/* Cuts the first element off the list of a header's value (`separator` is ',' or ';'), trimmed;
 * walk while rest->size > 0. */
struct sl_slice http_next_element(struct sl_slice *rest, char separator);
/* Ignoring the case of ASCII letters. */
bool http_token_is(struct sl_slice text, const char *token);

enum { HTTP_MESSAGE_SIZE = 384, HTTP_PARAM_SIZE = 64 };

/* Of what passes by itself, soon: a limit that is reached, a Redis that is away. */
enum { HTTP_RETRY_AFTER_S = 2 };

/* An answer other than success. */
struct http_refusal {
    int status;
    const char *code;                /* "bad_token", ...; static */
    char message[HTTP_MESSAGE_SIZE]; /* valid UTF-8, cut off when too long */
    char param[HTTP_PARAM_SIZE];     /* the parameter at fault: letters, digits and _ . - only;
                                        empty: none */
    size_t place; /* of the fault in the parameter: in characters (code points), from 1; 0: none */
    const char *www_authenticate; /* 401, 403; NULL: no such header; static */
    const char *allow;            /* 405; static */
    const char *accept_encoding;  /* 415, of how a body is encoded; static */
    unsigned retry_after_s;       /* 429, 503; 0: no such header */
};

/* Fills a refusal and returns -EPROTO, so that a function can end with it. `param` NULL: none; it
 * may be what the client sent, and is left out when it is not fit to be shown. */
int http_refuse(struct http_refusal *refusal, int status, const char *code, const char *param,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

/* {"error":{"code":..,"message":..,"param":..,"at":..}}, a newline behind it; `at` is the place,
 * counted from 0. */
void http_refusal_print(const struct http_refusal *refusal, struct buffer *ret_json);

/* "Not Found", ...; "Error" for a status without a name. */
const char *http_reason(int status);
