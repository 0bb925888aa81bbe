/* gateway/front/stream_request.h - parses and checks a request for a stream.
 *
 * Pure functions: no sockets, no Redis. A request consists of the token, the stream with its filter
 * and types, the stream format and gathering, and the beginning (since). Checked in this order: the
 * stream format, the token, the parameters, the scope; so a client without a token learns nothing
 * about parameters. The router checks path and method (GET or POST; GET for an upgrade). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "filters/filter.h"
#include "gateway/front/admission.h"
#include "gateway/front/count_question.h"
#include "gateway/front/stream_pass.h"
#include "gateway/front/token.h"
#include "gateway/front/use_limits.h"
#include "gateway/http/http.h"
#include "gateway/http/websocket_deflate.h"
#include "gateway/metrics/stream_kind.h"
#include "src/model/cursor.h"
#include "src/model/id.h"

struct dialect;

enum since_kind { SINCE_NOW, SINCE_CURSOR, SINCE_TIME, SINCE_UNUSABLE };

struct stream_request {
    enum stream_kind stream;
    enum stream_format format;
    struct token token;
    struct sl_filter *filter; /* one reference is owned; NULL: on STREAM_HOME, or it takes rules */
    struct sl_filter_warnings *warnings; /* of the filter; owned; NULL: none */
    unsigned types;                      /* bits 1 << SL_EVENT_...; 0: it takes rules */
    struct count_question counts;        /* what is counted or picked; otherwise .bucket_ms is 0 */
    enum since_kind since;               /* SINCE_UNUSABLE: a Last-Event-ID that is not a cursor */
    struct sl_cursor since_cursor;       /* where it begins, for SINCE_CURSOR and SINCE_TIME */
    uint32_t last;                       /* send this many of the newest events first; 0: not
                                            requested */
    uint64_t until;                      /* nothing after this id; 0: no end */
    uint64_t fields;                     /* members of events: front/event_fields.h */
    const struct dialect *dialect;       /* of the request and the responses; NULL: ours */
    const char *notice;                  /* of the dialect: see struct dialect_stream */
    const char *path;                    /* of the dialect's route; static */
    int gather_ms;                       /* -1: the server's default */
    bool samples_when_slow;              /* then it is sent a part of its posts */
    bool cursors;                        /* wants {"type":"cursor"} with each keep-alive */
    bool hello;                          /* wants {"type":"hello"} first */
    bool track_is_verbatim;              /* see struct sl_filter_text */
    bool authors_only;                   /* see struct sl_filter_text */
    bool echo_protocol;                  /* the client offered sluice.v1 */
    enum stream_encoding encoding;
    uint8_t window_bits;              /* see delivery/client.h */
    uint32_t dictionary;              /* requested id, for ENCODING_ZSTD_DICTIONARY; otherwise 0 */
    struct websocket_deflate deflate; /* on a WebSocket: the negotiated extension */
};

enum { STREAM_LAST_MAX = 1000 };
enum { STREAM_FUTURE_MS = 60000 }; /* how far `since` may be after both times below */

/* Clocks differ and may be set back: what was already delivered is not in the future, whatever our
 * own clock says. Unix times. */
struct stream_times {
    uint64_t now_ms;
    uint64_t newest_ms; /* of the newest event known; 0: none */
    uint32_t shards;    /* of the database; 0: unknown */
};

/* Settings that may change while the server runs. */
struct front_settings {
    const struct token_policy *policy;
    uint32_t max_gather_ms;
    struct admission_limits admission; /* for streams */
    struct use_limits subject_uses, address_uses;
    size_t max_filter_bytes; /* of all streams of a worker */
    size_t max_filter_bytes_per_subject;
    uint32_t keepalive_ms;      /* how long a stream may be silent */
    uint32_t token_warning_ms;  /* how long before its token expires a stream is warned; 0: never */
    bool has_deflate, has_zstd; /* for streams that request it */
    unsigned dialects;          /* those that are served, as bits: front/dialect.h */
    bool takes_plain_oauth;     /* OAuth 1.0a from other machines without TLS */
    uint32_t ticket_ms;         /* lifetime of a ticket */
    bool has_sessions;          /* an EventSource may reconnect with a cookie */
};

/* true: `path` is that of a stream. */
bool stream_path(struct sl_slice path, enum stream_kind *ret_stream);

/* The path of a stream; NULL: there is no stream with this number. */
const char *stream_path_of(enum stream_kind stream);

/* 0: *ret_request is filled, call stream_request_done() at the end; -EPROTO: respond with *refusal;
 * *ret_fault (TOKEN_OK: not because of the token) is for log and metrics; -ENOMEM. */
int stream_request_read(const struct front_settings *settings, enum stream_kind stream,
                        const struct http_request *http, const struct stream_times *times,
                        struct stream_request *ret_request, struct http_refusal *refusal,
                        enum token_fault *ret_fault);
/* The same with the token of a pass, which must have been made for this request; there must be no
 * other token. */
int stream_request_read_passed(const struct front_settings *settings, enum stream_kind stream,
                               const struct http_request *http, const struct stream_times *times,
                               const struct stream_pass *pass, struct stream_request *ret_request,
                               struct http_refusal *refusal);
/* Whether `token` permits this path with its query, by the same checks as for a request in any way.
 * 0 fills *ret_print; -EPROTO: *refusal; -ENOMEM. */
int stream_request_check_path(const struct front_settings *settings, const struct token *token,
                              struct sl_slice path, const struct stream_times *times,
                              struct stream_print *ret_print, struct http_refusal *refusal);
/* The ticket of a GET request with `ticket` in its query, a slice of the query. Without data:
 * none. */
struct sl_slice stream_request_ticket(const struct http_request *http);
/* 0; -EPROTO: the query is malformed; -ENOMEM. */
int stream_request_print(enum stream_kind stream, struct sl_slice query,
                         struct stream_print *ret_print);
/* Fills *refusal: the ticket or session is not valid. Returns -EPROTO. */
int stream_request_refuse_ticket(struct http_refusal *refusal, const char *why);

/* The same for a stream that is opened by its path and query on an existing connection: it uses the
 * token and compression of the connection, but no message refers to another, and home streams are
 * not compressed. It has no parameters of connections: `access_token`, `delimited`, `hello`,
 * `zstd_dictionary`. */
int stream_request_read_opened(const struct front_settings *settings,
                               const struct stream_request *connection, struct sl_slice path,
                               const struct stream_times *times, struct stream_request *ret_request,
                               struct http_refusal *refusal);
/* A request of a dialect, translated to ours. */
enum { DIALECT_PARAMETERS_MAX = 12, DIALECT_ROOM_SIZE = 256 };
struct dialect_stream {
    enum stream_kind stream;
    enum stream_format format;
    bool is_uncompressed;   /* even if the client accepts compression */
    bool has_kept_rules;    /* for STREAM_MANY over HTTP: uses the stored rules of its subject */
    bool track_is_verbatim; /* see struct sl_filter_text */
    bool authors_only;      /* the same */
    uint64_t options;       /* for rendering events: event_fields_of_dialect() */
    const char *notice;     /* static JSON, the first message over HTTP; NULL: there is none */
    struct {
        const char *name; /* of a parameter of the stream */
        struct sl_slice value;
    } parameters[DIALECT_PARAMETERS_MAX];
    unsigned parameter_count;
    char room[DIALECT_ROOM_SIZE]; /* for values that are not part of the request */
    char *memory;                 /* owns the values */
    /* On a WebSocket: the name, by which messages refer to the stream (never sent; may be empty),
     * and what is inserted before the closing brace of everything sent on it (absent: nothing). */
    struct sl_slice name, tail;
    enum {
        DIALECT_REPLACES,  /* replaces the stream with its name, if there is one; begins at its own
                              `since` */
        DIALECT_CONTINUES, /* the same, but continues where that one was; or where the waiting
                              request (DIALECT_WAITS) begins */
        DIALECT_KEEPS      /* keeps the existing stream: this one is not opened */
    } again;
    enum {
        DIALECT_BEGINS, /* at once */
        DIALECT_WAITS,  /* for a message that opens a stream; the beginning in the request applies
                           to that if it continues */
        DIALECT_IDLES   /* the request opens no stream: only messages do */
    } first;            /* set by a route's open() */
};
void dialect_stream_done(struct dialect_stream *asked);
/* Like stream_request_read(), for a token that was already found; refusals name our parameters.
 * `dialect` is the number of `request.dialect`. */
int stream_request_read_asked(const struct front_settings *settings,
                              const struct dialect_stream *asked, struct sl_slice jwt,
                              const struct http_request *http, const struct stream_times *times,
                              struct stream_request *ret_request, struct http_refusal *refusal,
                              enum token_fault *ret_fault);
/* `refusal` says what is wrong with the request; a client with an invalid token is told only that.
 * -EPROTO, -ENOMEM. */
int stream_request_refuse_asked(const struct front_settings *settings,
                                const struct dialect_stream *asked, struct sl_slice jwt,
                                const struct http_request *http, const struct stream_times *times,
                                struct http_refusal *refusal, enum token_fault *ret_fault);
/* Reads a request for a stream on an existing connection, like stream_request_read_opened(). */
int stream_request_read_asked_opened(const struct front_settings *settings,
                                     const struct stream_request *connection,
                                     const struct dialect_stream *asked,
                                     const struct stream_times *times,
                                     struct stream_request *ret_request,
                                     struct http_refusal *refusal);
/* Its filters have names, and are set by messages. */
static inline bool stream_request_takes_rules(const struct stream_request *request)
{
    return request->stream == STREAM_MANY || request->counts.by == COUNT_BY_RULE;
}
/* Whether the range is empty. */
static inline bool stream_request_is_over(const struct stream_request *request)
{
    return request->until && request->since == SINCE_CURSOR &&
           sl_cursor_is_plain(&request->since_cursor) && request->since_cursor.id >= request->until;
}
/* The limits for its filters: those of the token, with wide filters (lang: and country: alone)
 * allowed if not each match is sent. */
static inline struct sl_filter_limits stream_request_limits(const struct stream_request *request)
{
    struct sl_filter_limits limits = request->token.limits;

    limits.allows_wide = request->counts.bucket_ms > 0; /* counted, or picked from */
    return limits;
}
void stream_request_done(struct stream_request *request);

/* Reads the parameter `fields`. 0; -EPROTO: *refusal says bad_fields. */
int stream_fields_read(struct sl_slice text, uint64_t *ret_fields, struct http_refusal *refusal);

/* Whether the token permits the stream, and its filter if it has one. 0; -EPROTO: *refusal. */
int stream_request_permitted(const struct stream_request *request, struct http_refusal *refusal);

/* Whether the token permits this filter. A firehose needs stream:firehose (for deletions only,
 * which are just ids, stream:filter), a whole sample or partition stream:sample, anything else
 * stream:filter; `lim.sample` limits the first two. 0; -EPROTO: *refusal says not_permitted. */
int stream_filter_permitted(const struct token *token, const struct sl_filter *filter,
                            struct http_refusal *refusal);
