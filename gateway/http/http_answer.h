/* gateway/http/http_answer.h - an answer to an HTTP request, as bytes. Pure. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"
#include "base/slice.h"
#include "gateway/http/http.h"

struct http_answer {
    int status;
    const char *content_type;  /* NULL: no body */
    const char *cache_control; /* NULL: nobody keeps it */
    struct sl_slice headers;   /* more of them, each with its CRLF */
    struct sl_slice body;
};

/* What of its request an answer depends on. */
struct http_answer_form {
    bool is_head;            /* HEAD: no body is sent */
    bool is_http_1_0;        /* of the request */
    bool closes;             /* the connection ends with it */
    struct sl_slice headers; /* more of them, for whatever the answer is */
};

/* Appends the whole answer, head and body; `out` is failed when memory ran out. */
void http_answer_print(const struct http_answer_form *form, const struct http_answer *answer,
                       struct buffer *out);

/* The headers that belong to a refusal: WWW-Authenticate, Allow, Retry-After, Upgrade. */
void http_refusal_append_headers(const struct http_refusal *refusal, struct buffer *headers);
