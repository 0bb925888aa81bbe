/* gateway/front/dialect_connections.h - what a dialect asks about the connections of a token's
 * subject, and what it is told of them. Plain values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/http/http.h"

struct dialect_request;

enum {
    DIALECT_CONNECTIONS_MAX = 100, /* that are named, or told of */
    DIALECT_CONNECTION_ID_SIZE = 32 + 1
};

struct dialect_inquiry {
    bool ends;    /* they are to end; else they are listed */
    unsigned max; /* of a list, at most DIALECT_CONNECTIONS_MAX; 0: nobody is asked */
    char after[DIALECT_CONNECTION_ID_SIZE]; /* of a list: those with greater ids; empty: all */
    /* Those that are to end: by their ids, or, of none, all that are wanted. */
    char ids[DIALECT_CONNECTIONS_MAX][DIALECT_CONNECTION_ID_SIZE];
    unsigned id_count;
    bool is_all;      /* whatever their paths are: wants() is not asked */
    uint64_t options; /* the dialect's own */
};

/* One of them. */
struct dialect_connection {
    const char *id, *path, *address; /* `address` empty: it is not known */
    uint64_t since_ms;               /* Unix time */
    bool is_ended;                   /* of one that was to end; then its id alone is known */
};

struct dialect_findings {
    const struct dialect_connection *connections; /* of those that have ended, the first */
    size_t count;
    uint64_t ended, not_ended;
    bool has_more;    /* of a list, behind the last of them */
    bool is_complete; /* everybody has answered */
};

/* What a route about connections is. */
struct dialect_connections {
    /* 0; -EPROTO: *refusal; -ENOMEM. *ret_inquiry begins zeroed. */
    int (*read)(const struct dialect_request *request, struct dialect_inquiry *ret_inquiry,
                struct http_refusal *refusal);
    /* One with this path? */
    bool (*wants)(const struct dialect_inquiry *inquiry, const char *path);
    /* The body. 0; -ENOMEM. */
    int (*answer)(const struct dialect_inquiry *inquiry, const struct dialect_findings *findings,
                  struct buffer *ret_body);
};
