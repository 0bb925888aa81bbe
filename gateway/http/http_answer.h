/* gateway/http/http_answer.h - formats the response to an HTTP request. Pure functions. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "gateway/http/http.h"

struct http_answer {
    int status;
    const char *content_type;  /* NULL: no body */
    const char *cache_control; /* NULL: must not be cached */
    struct sl_slice headers;   /* further header lines, each with its CRLF */
    struct sl_slice body;
};

/* What a response depends on besides the answer. */
struct http_answer_form {
    bool is_head;            /* HEAD: no body is sent */
    bool is_http_1_0;        /* of the request */
    bool closes;             /* the connection ends with it */
    struct sl_slice date;    /* the header line; absent: none */
    struct sl_slice headers; /* further header lines, for any response */
};

/* Appends the whole response, head and body. out->failed: out of memory. */
void http_answer_print(const struct http_answer_form *form, const struct http_answer *answer,
                       struct buffer *out);

/* Appends the headers of a refusal: WWW-Authenticate, Allow, Retry-After, Upgrade. */
void http_refusal_append_headers(const struct http_refusal *refusal, struct buffer *headers);
