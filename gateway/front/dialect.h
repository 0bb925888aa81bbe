/* gateway/front/dialect.h - the protocol of another service, for clients that were written for it.
 *
 * A dialect is a table: the paths it answers, how the parameters of a stream become ours, and how
 * an event is said. Everything else (tokens, limits, delivery, catching up, compression) is the
 * same for all. Events are said once for all clients that want them in the same way, as reductions
 * are made (delivery/reducer.h).
 *
 * On a WebSocket (a route with open()) a client may have several streams at once, each with a name
 * and with its own tail at the end of what it is sent; or one, that it changes:
 *
 *  - open() reads the request, as read() does. What it asks for begins at once, or waits for a
 *    message; or it asks for no stream (struct dialect_stream, `first`).
 *  - hear() reads a message, and says which stream is to be opened or closed. Opened again by its
 *    name, a stream is replaced, goes on with other parameters where it was, or stays (`again`).
 *  - complain() says a refusal as a message; with `complaint_code` the connection ends then.
 *  - close_of() says how the connection is closed, where that is not as for our own streams.
 *
 * Each event is a frame of text, and must be a JSON object where there are tails; quiet
 * connections are kept alive by pings. Nothing of ours is said besides. When one stream must end,
 * the connection does.
 *
 *     .path = "/subscribe", .methods = DIALECT_GET, .allow = "GET, OPTIONS", .open = open_it
 *
 *     asked->first = requires_hello ? DIALECT_WAITS : DIALECT_BEGINS;   in open_it()
 *     message->act = DIALECT_OPEN;                                      in hear()
 *     message->asked.again = DIALECT_CONTINUES;
 *
 * with no name and no tail is one stream that each message gives other parameters.
 *
 * The tables stand in gateway/dialects; the setting `dialects` says which of them are served. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "base/slice.h"
#include "gateway/front/dialect_connections.h"
#include "gateway/front/disconnect.h"
#include "gateway/front/stream_request.h"
#include "gateway/http/http_answer.h"

struct event;
struct form;
struct rules_change;
struct sl_filter;
struct subject_rule;
struct subject_rules;

enum dialect_id {
    DIALECT_TWITTER1,  /* Twitter's Streaming API, version 1.1 */
    DIALECT_MASTODON,  /* Mastodon's streaming API */
    DIALECT_TWITTER2,  /* X's API, version 2: its streams */
    DIALECT_JETSTREAM, /* Bluesky's Jetstream, version 1 */
    DIALECT_COUNT
};

struct dialect_request {
    const struct http_request *http;
    const struct front_settings *front;
    struct stream_times times;
    bool is_secure;          /* by TLS, here or at a trusted proxy */
    enum token_fault *fault; /* of an answer: what was wrong with the token, for log and metrics */
    bool is_private;         /* the same, or from this machine: nobody else reads it */
    struct buffer *room;     /* of find_token(), for a token that is written otherwise */
};

/* What is asked of the rules that a token's subject keeps (front/subject_rules.h). It is decided
 * of the rules as they are, and again when they are others by the time that they would change. */
struct dialect_rules {
    size_t asked_size; /* of what is read; it begins zeroed, and is freed when it is done */
    /* 0; -EPROTO: *refusal; -ENOMEM. */
    int (*read)(const struct dialect_request *request, const struct token *token, void *asked,
                struct http_refusal *refusal);
    /* What is to be changed, which belongs to `asked`; nothing: it is answered as it is. 0;
     * -ENOMEM. */
    int (*decide)(void *asked, const struct subject_rules *rules, struct rules_change *ret_change);
    /* `version`: of what has been changed. 0; -ENOMEM. */
    int (*answer)(void *asked, uint64_t version, struct buffer *ret_body,
                  struct http_answer *ret_answer);
    void (*done)(void *asked);
};

struct dialect_route {
    const char *path;  /* with a * at its end: all that begin so */
    unsigned methods;  /* DIALECT_GET | ... */
    const char *allow; /* the same, as the header says it */
    /* A stream: what is asked for in our words. 0: end *ret_asked with dialect_stream_done();
     * -EPROTO: *refusal; -ENOMEM. */
    int (*read)(const struct dialect_request *request, struct dialect_stream *ret_asked,
                struct http_refusal *refusal);
    /* The same for a WebSocket, also beside read(); without that there is nothing else here. */
    int (*open)(const struct dialect_request *request, struct dialect_stream *ret_asked,
                struct http_refusal *refusal);
    /* Or an answer: its body goes to `ret_body`. 0, -EPROTO, -ENOMEM. */
    int (*answer)(const struct dialect_request *request, struct buffer *ret_body,
                  struct http_answer *ret_answer, struct http_refusal *refusal);
    /* Or what its subject's rules are. */
    const struct dialect_rules *rules;
    /* Or what one's own connections are. */
    const struct dialect_connections *connections;
};

/* What a message on a WebSocket asks for. */
struct dialect_message {
    enum { DIALECT_IGNORE, DIALECT_OPEN, DIALECT_CLOSE } act;
    struct dialect_stream asked; /* to be opened; or its name, which need not be there */
};

/* How a WebSocket ends. */
struct dialect_close {
    uint16_t code; /* WEBSOCKET_CLOSE_NO_STATUS: none is said */
    const char *reason;
};

enum {
    DIALECT_GET = 1 << HTTP_GET,
    DIALECT_POST = 1 << HTTP_POST,
    DIALECT_PUT = 1 << HTTP_PUT,
    DIALECT_DELETE = 1 << HTTP_DELETE
};

struct dialect {
    enum dialect_id id;
    const struct dialect_route *routes;
    unsigned route_count;
    const char *content_type;  /* of streams */
    uint32_t max_keepalive_ms; /* of quiet streams; 0: as ours */
    const char *greeting;      /* what HTTP streams begin with; NULL: nothing */
    bool tells_rate_limits;    /* by x-rate-limit-...: front/use_check.h */
    const char *keepalive;     /* of HTTP streams, which are not compressed then; NULL: as ours */
    /* The token of a request, where this dialect has it; absent: where we have ours. 0; -EPROTO. */
    int (*find_token)(const struct dialect_request *request, struct sl_slice *ret_jwt,
                      struct http_refusal *refusal);
    /* Appends what a client gets instead of the event, or of a message of ours: JSON, or with
     * Server-Sent Events the whole block. Nothing: the client is not told. 0; -ENOMEM. */
    int (*render)(const struct event *event, uint64_t options, struct buffer *ret_text);
    /* The options by which render() says the second message of an event that is two; 0: it is one.
     * NULL: all are. */
    uint64_t (*second)(const struct event *event, uint64_t options);
    /* Of streams that have the rules which their subject keeps: may one begin with these? 0;
     * -EPROTO: *refusal. */
    int (*check_rules)(const struct subject_rules *rules, struct http_refusal *refusal);
    /* And the filter of a rule. 0: one reference is the caller's; -EPROTO: *refusal says why the
     * token does not permit it; -ENOMEM. */
    int (*read_rule)(const struct subject_rule *rule, const struct token *token,
                     struct sl_filter **ret_filter, struct http_refusal *refusal);
    /* What a client says on a WebSocket: text. 0: *ret_message, whose `asked` is ended with
     * dialect_stream_done(); -EPROTO: *refusal; -ENOMEM. */
    int (*hear)(struct sl_slice text, const struct stream_times *times,
                struct dialect_message *ret_message, struct http_refusal *refusal);
    /* The refusal of what a message asks, as one; nothing: it is not told. */
    void (*complain)(const struct http_refusal *refusal, struct buffer *ret_text);
    uint16_t complaint_code; /* with which such a connection is closed; 0: it goes on */
    bool complains_of_first; /* and says so, too, of what the request asks for, not over HTTP */
    bool echoes_protocol;    /* the first subprotocol is chosen, whatever it is */
    /* The JSON that HTTP streams end with; nothing: they end without a word. NULL: all do. */
    void (*farewell)(enum disconnect_reason why, struct buffer *ret_json);
    struct dialect_close (*close_of)(enum disconnect_reason why); /* NULL: as ours */
    /* The same refusal of `http`, in this dialect: fills status, type and headers, appends the
     * body. */
    void (*refuse)(const struct http_request *http, const struct http_refusal *refusal,
                   struct buffer *ret_body, struct http_answer *ret_answer);
};

/* What a dialect's path that has nothing at it is answered: dialect_route.answer; -EPROTO. For a
 * route behind all others. */
int dialect_answer_nothing(const struct dialect_request *request, struct buffer *ret_body,
                           struct http_answer *ret_answer, struct http_refusal *refusal);
#define DIALECT_ANY_METHOD                                                                         \
    .methods = DIALECT_GET | DIALECT_POST | DIALECT_PUT | DIALECT_DELETE,                          \
    .allow = "GET, POST, PUT, DELETE, OPTIONS"

/* For those who read the parameters of a stream: one of ours; an absent value is not asked for. */
void dialect_ask(struct dialect_stream *asked, const char *name, struct sl_slice value);
/* `access_token` of the query, as it is written there: nothing in a token needs an escape. */
struct sl_slice dialect_query_token(const struct http_request *http);
/* form_read() of the query and, with POST, the body; parameters that are not known count for
 * nothing.
 */
int dialect_read_form(const struct dialect_request *request, struct form *form,
                      struct http_refusal *refusal);

/* All of them, by enum dialect_id. */
typedef const struct dialect *const dialect_table[DIALECT_COUNT];

/* `twitter1,...` -> a bit for each. Empty: none. 0; -EINVAL: *reterr names the one that there is
 * not. */
int dialects_parse(struct sl_slice names, unsigned *ret_dialects, struct failure *reterr);

/* Of those in `dialects`, the first of a table; NULL: none has the path. */
const struct dialect_route *dialect_find(dialect_table *table, unsigned dialects,
                                         struct sl_slice path, const struct dialect **ret_dialect);
