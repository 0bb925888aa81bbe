/* gateway/front/dialect_connections.h - requests of a dialect about the connections of a token's
 * subject, and the results. Plain values. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "gateway/http/http.h"

struct dialect_request;

enum {
    DIALECT_CONNECTIONS_MAX = 100, /* in a request, or in a result */
    DIALECT_CONNECTION_ID_SIZE = 32 + 1
};

struct dialect_connection_query {
    bool ends;    /* end the connections; otherwise list them */
    unsigned max; /* for a list, at most DIALECT_CONNECTIONS_MAX; 0: nothing is asked */
    char after[DIALECT_CONNECTION_ID_SIZE]; /* for a list: those with greater ids; empty: all */
    /* The connections to end: by their ids, or if there are none, all that wants() selects. */
    char ids[DIALECT_CONNECTIONS_MAX][DIALECT_CONNECTION_ID_SIZE];
    unsigned id_count;
    bool is_all;      /* with any path: wants() is not called */
    uint64_t options; /* used by the dialect */
};

/* A connection of the subject. */
struct dialect_connection {
    const char *id, *path, *address; /* `address` empty: unknown */
    uint64_t since_ms;               /* Unix time */
    bool is_ended;                   /* it was to be ended, and has; only its id is known */
};

struct dialect_connection_result {
    const struct dialect_connection *connections; /* those that have ended come first */
    size_t count;
    uint64_t ended, not_ended;
    bool has_more;    /* of a list, after the last one */
    bool is_complete; /* all gateways have answered */
};

/* A route about connections. */
struct dialect_connections {
    /* 0; -EPROTO: *refusal; -ENOMEM. *ret_query is initially zero. */
    int (*read)(const struct dialect_request *request, struct dialect_connection_query *ret_query,
                struct http_refusal *refusal);
    /* Whether connections with this path are wanted. */
    bool (*wants)(const struct dialect_connection_query *query, const char *path);
    /* Writes the body. 0; -ENOMEM. */
    int (*answer)(const struct dialect_connection_query *query,
                  const struct dialect_connection_result *result, struct buffer *ret_body);
};
