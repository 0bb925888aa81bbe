/* gateway/front/dialect.h - dialects: the protocols of other services, for clients written for
 * these.
 *
 * A dialect is a table: the paths it answers, how its parameters of a stream are translated to
 * ours, and how an event is rendered. Everything else (tokens, limits, delivery, catching up,
 * compression) is common. An event is rendered once for all clients that want it in the same form,
 * like reduced events (delivery/reducer.h).
 *
 * On a WebSocket (a route with open()) a client may have several streams at the same time, each
 * with a name and with its own tail, which is added to everything that is sent on it; or a single
 * stream, which it changes:
 *
 * - open() reads the request, like read(). The stream it requests begins at once, or waits for a
 *   message; or it requests no stream (struct dialect_stream, `first`).
 * - hear() reads a message, and says which stream to open or close. If a stream with the same name
 *   is open, it is replaced, continues with other parameters, or stays as it is (`again`).
 * - print_refusal() renders a refusal as a message; with `refusal_close_code` the connection then
 *   ends.
 * - close_of() says how the connection is closed, if not like our own streams.
 *
 * Each event is a text frame, and must be a JSON object if there are tails; quiet connections are
 * kept alive by pings. None of our own messages are sent. If one stream must end, the connection
 * does.
 *
 *     .path = "/subscribe", .methods = DIALECT_GET, .allow = "GET, OPTIONS", .open = open_it
 *
 *     asked->first = requires_hello ? DIALECT_WAITS : DIALECT_BEGINS;   in open_it()
 *     message->act = DIALECT_OPEN;                                      in hear()
 *     message->asked.again = DIALECT_CONTINUES;
 *
 * without a name and a tail is a single stream, whose parameters each message replaces.
 *
 * The tables are in gateway/dialects; the setting `dialects` says which of them are served. */
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
    bool is_secure;          /* TLS, here or at a trusted proxy */
    enum token_fault *fault; /* for answer(): what was wrong with the token, for log and metrics */
    bool is_private;         /* TLS, or from this machine: nobody else can read it */
    struct buffer *room;     /* buffer of find_token(), for a token that must be decoded */
};

/* A request about the stored rules of a token's subject (front/subject_rules.h). decide() is called
 * with the current rules, and again if they have changed before the change could be made. */
struct dialect_rules {
    size_t asked_size; /* of the parsed request, which is initially zero, and freed at the end */
    /* 0; -EPROTO: *refusal; -ENOMEM. */
    int (*read)(const struct dialect_request *request, const struct token *token, void *asked,
                struct http_refusal *refusal);
    /* Returns the change, which belongs to `asked`; none: answered without a change. 0; -ENOMEM. */
    int (*decide)(void *asked, const struct subject_rules *rules, struct rules_change *ret_change);
    /* `version`: of the changed rules. 0; -ENOMEM. */
    int (*answer)(void *asked, uint64_t version, struct buffer *ret_body,
                  struct http_answer *ret_answer);
    void (*done)(void *asked);
};

struct dialect_route {
    const char *path;  /* with * at its end: all paths that begin like this */
    unsigned methods;  /* DIALECT_GET | ... */
    const char *allow; /* the same for the header */
    /* A stream: translates the request. 0: call dialect_stream_done() at the end; -EPROTO:
     * *refusal; -ENOMEM. */
    int (*read)(const struct dialect_request *request, struct dialect_stream *ret_asked,
                struct http_refusal *refusal);
    /* The same for a WebSocket, possibly in addition to read(); without read() there is nothing
     * else at this path. */
    int (*open)(const struct dialect_request *request, struct dialect_stream *ret_asked,
                struct http_refusal *refusal);
    /* Or a plain answer, whose body is written to `ret_body`. 0, -EPROTO, -ENOMEM. */
    int (*answer)(const struct dialect_request *request, struct buffer *ret_body,
                  struct http_answer *ret_answer, struct http_refusal *refusal);
    /* Or a request about the subject's rules. */
    const struct dialect_rules *rules;
    /* Or a request about the subject's connections. */
    const struct dialect_connections *connections;
};

/* A message of a client on a WebSocket, translated. */
struct dialect_message {
    enum { DIALECT_IGNORE, DIALECT_OPEN, DIALECT_CLOSE } act;
    struct dialect_stream asked; /* to be opened; or the name of one to close, which need not
                                    exist */
};

/* How a WebSocket is closed. */
struct dialect_close {
    uint16_t code; /* WEBSOCKET_CLOSE_NO_STATUS: without a code */
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
    const char *content_type;  /* for streams */
    uint32_t max_keepalive_ms; /* for quiet streams; 0: as ours */
    const char *greeting;      /* the beginning of HTTP streams; NULL: nothing */
    bool tells_rate_limits;    /* sends x-rate-limit-...: front/use_check.h */
    const char *keepalive;     /* for HTTP streams, which are then not compressed; NULL: as ours */
    /* Finds the token of a request, where this dialect has it; absent: where we have ours. 0;
     * -EPROTO. */
    int (*find_token)(const struct dialect_request *request, struct sl_slice *ret_jwt,
                      struct http_refusal *refusal);
    /* Appends what a client gets for the event, or for a message of ours: JSON, or for Server-Sent
     * Events the whole block. Nothing: the client gets nothing. 0; -ENOMEM. */
    int (*render)(const struct event *event, uint64_t options, struct buffer *ret_text);
    /* The options with which render() writes the second message of an event that has two; 0: it has
     * one. NULL: all have one. */
    uint64_t (*second)(const struct event *event, uint64_t options);
    /* For streams with the stored rules of their subject: whether one may begin with these. 0;
     * -EPROTO: *refusal. */
    int (*check_rules)(const struct subject_rules *rules, struct http_refusal *refusal);
    /* Translates a stored rule to a filter. 0: the caller owns one reference; -EPROTO: *refusal
     * says why the token does not permit it; -ENOMEM. */
    int (*read_rule)(const struct subject_rule *rule, const struct token *token,
                     struct sl_filter **ret_filter, struct http_refusal *refusal);
    /* Reads a text message of a client on a WebSocket. 0: *ret_message, whose `asked` must be ended
     * with dialect_stream_done(); -EPROTO: *refusal; -ENOMEM. */
    int (*hear)(struct sl_slice text, const struct stream_times *times,
                struct dialect_message *ret_message, struct http_refusal *refusal);
    /* Renders the refusal of a message as a message; nothing: the client is not told. */
    void (*print_refusal)(const struct http_refusal *refusal, struct buffer *ret_text);
    uint16_t refusal_close_code; /* close code after a refusal; 0: the connection continues */
    bool sends_first_refusal; /* refusals of the request itself are also sent as a message, not over
                                HTTP */
    bool echoes_protocol;     /* the first subprotocol offered is chosen, whatever it is */
    /* Prints the JSON that tells the client of an HTTP stream how many posts it was not sent since
     * the stream began, because render() left them out. NULL: clients are not told. */
    void (*limit)(uint64_t posts, uint64_t now_ms, struct buffer *ret_json);
    /* The JSON at the end of HTTP streams; nothing: they just end. NULL: all do. */
    void (*disconnect)(enum disconnect_reason why, struct buffer *ret_json);
    struct dialect_close (*close_of)(enum disconnect_reason why); /* NULL: as ours */
    /* Renders the refusal of `http` in this dialect: sets status, type and headers, and appends the
     * body. */
    void (*refuse)(const struct http_request *http, const struct http_refusal *refusal,
                   struct buffer *ret_body, struct http_answer *ret_answer);
};

/* Answers an unknown path of a dialect: a dialect_route.answer that returns -EPROTO. For a route
 * after all others. */
int dialect_answer_nothing(const struct dialect_request *request, struct buffer *ret_body,
                           struct http_answer *ret_answer, struct http_refusal *refusal);
#define DIALECT_ANY_METHOD                                                                         \
    .methods = DIALECT_GET | DIALECT_POST | DIALECT_PUT | DIALECT_DELETE,                          \
    .allow = "GET, POST, PUT, DELETE, OPTIONS"

/* For functions that translate parameters: adds one of ours; absent values are ignored. */
void dialect_ask(struct dialect_stream *asked, const char *name, struct sl_slice value);
/* `access_token` of the query, undecoded: tokens need no escapes. */
struct sl_slice dialect_query_token(const struct http_request *http);
/* form_read() of the query and, with POST, the body; unknown parameters are ignored. */
int dialect_read_form(const struct dialect_request *request, struct form *form,
                      struct http_refusal *refusal);

/* All dialects, by enum dialect_id. */
typedef const struct dialect *const dialect_table[DIALECT_COUNT];

/* Parses `twitter1,...` to a bit for each. Empty: none. 0; -EINVAL: *reterr names the unknown
 * one. */
int dialects_parse(struct sl_slice names, unsigned *ret_dialects, struct failure *reterr);

/* The first route for the path in the tables of `dialects`; NULL: none. */
const struct dialect_route *dialect_find(dialect_table *table, unsigned dialects,
                                         struct sl_slice path, const struct dialect **ret_dialect);
