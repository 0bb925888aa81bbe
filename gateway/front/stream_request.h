/* gateway/front/stream_request.h - a request for a stream, understood and permitted, or refused.
 *
 * Pure: no sockets, no Redis. Who asks (token), what (stream, filter, types), how (stream format,
 * gathering), from where (since). Checked in this order: the stream format, the token, the
 * parameters, the scope; so whoever has no token learns nothing about parameters. Path and method
 * (GET or POST; GET for an upgrade) are the router's business. */
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
    struct sl_filter *filter; /* one reference is ours; NULL: on STREAM_HOME, or it takes rules */
    struct sl_filter_warnings *warnings; /* of it; ours; NULL: there are none */
    unsigned types;                      /* bits 1 << SL_EVENT_...; 0: it takes rules */
    struct count_question counts;        /* what is sent of each bucket; or .bucket_ms 0 */
    enum since_kind since;               /* SINCE_UNUSABLE: a Last-Event-ID that is no cursor */
    struct sl_cursor since_cursor;       /* where it begins, of SINCE_CURSOR and SINCE_TIME */
    uint32_t last;                       /* the newest so many come first; 0: not asked for */
    uint64_t until;                      /* nothing behind this id; 0: no end */
    uint64_t fields;                     /* of events: front/event_fields.h */
    const struct dialect *dialect;       /* in which it is asked and answered; NULL: ours */
    const char *path;                    /* of a route of that; static */
    int gather_ms;                       /* -1: the server's default */
    bool samples_when_slow;              /* is sent a part of its posts then */
    bool cursors;                        /* wants {"type":"cursor"} with each keep-alive */
    bool hello;                          /* wants {"type":"hello"} first */
    bool track_is_verbatim;              /* see struct sl_filter_text */
    bool authors_only;                   /* the same */
    bool echo_protocol;                  /* the client offered sluice.v1 */
    enum stream_encoding encoding;
    uint8_t window_bits; /* see delivery/client.h */
    uint32_t dictionary; /* the id that it asks for, of ENCODING_ZSTD_DICTIONARY; else 0 */
    struct websocket_deflate deflate; /* on a WebSocket, what has been agreed on */
};

enum { STREAM_LAST_MAX = 1000 };
enum { STREAM_FUTURE_MS = 60000 }; /* how far ahead of both times `since` may lie */

/* Clocks differ, and step: what was given out is no future, whatever our own clock says. Unix time.
 */
struct stream_times {
    uint64_t now_ms;
    uint64_t newest_ms; /* of the newest event that has been heard of; 0: none */
    uint32_t shards;    /* of the database; 0: that is not known */
};

/* What may change while the server runs. */
struct front_settings {
    const struct token_policy *policy;
    uint32_t max_gather_ms;
    struct admission_limits admission; /* of streams */
    struct use_limits subject_uses, address_uses;
    size_t max_filter_bytes; /* of all streams of a worker */
    size_t max_filter_bytes_per_subject;
    uint32_t keepalive_ms;      /* so long a stream may be silent */
    uint32_t token_warning_ms;  /* so long before its token ends a stream is warned; 0: never */
    bool has_deflate, has_zstd; /* for streams that ask for it */
    unsigned dialects;          /* a bit for each that is served: front/dialect.h */
    bool takes_plain_oauth;     /* of OAuth 1.0a, from other machines without TLS */
    uint32_t ticket_ms;         /* so long a ticket is good */
    bool has_sessions;          /* an EventSource may come back by a cookie */
};

/* true: `path` is one of the streams. */
bool stream_path(struct sl_slice path, enum stream_kind *ret_stream);

/* Of each stream; NULL: there is none of this number. */
const char *stream_path_of(enum stream_kind stream);

/* 0: *ret_request is filled, end it with stream_request_done(); -EPROTO: *refusal is the answer,
 * and *ret_fault (TOKEN_OK: the token was not the reason) is for log and metrics. -ENOMEM. */
int stream_request_read(const struct front_settings *settings, enum stream_kind stream,
                        const struct http_request *http, const struct stream_times *times,
                        struct stream_request *ret_request, struct http_refusal *refusal,
                        enum token_fault *ret_fault);
/* The same with the token of a pass, which this must be the request for; no other token may be
 * there.
 */
int stream_request_read_passed(const struct front_settings *settings, enum stream_kind stream,
                               const struct http_request *http, const struct stream_times *times,
                               const struct stream_pass *pass, struct stream_request *ret_request,
                               struct http_refusal *refusal);
/* May `token` ask for this path, with its query? As a request for it would be checked, however it
 * came. 0 fills *ret_print; -EPROTO: *refusal; -ENOMEM. */
int stream_request_check_path(const struct front_settings *settings, const struct token *token,
                              struct sl_slice path, const struct stream_times *times,
                              struct stream_print *ret_print, struct http_refusal *refusal);
/* The ticket that a request comes with: a GET, with `ticket` in its query. Without data: none. It
 * is a slice of the query. */
struct sl_slice stream_request_ticket(const struct http_request *http);
/* 0; -EPROTO: the query cannot be read; -ENOMEM. */
int stream_request_print(enum stream_kind stream, struct sl_slice query,
                         struct stream_print *ret_print);
/* Fills *refusal: whoever held this ticket, or session, may not come in by it. Returns -EPROTO. */
int stream_request_refuse_ticket(struct http_refusal *refusal, const char *why);

/* The same for a stream that is opened by its path, with its query, on the connection that another
 * request has got: with its token, and compressed as that is, but so that no message refers to
 * another, nor is a home stream compressed. It has none of the parameters of connections:
 * `access_token`, `delimited`, `hello`, `zstd_dictionary`. */
int stream_request_read_opened(const struct front_settings *settings,
                               const struct stream_request *connection, struct sl_slice path,
                               const struct stream_times *times, struct stream_request *ret_request,
                               struct http_refusal *refusal);
/* What is asked for in the words of a dialect, in ours. */
enum { DIALECT_PARAMETERS_MAX = 12, DIALECT_ROOM_SIZE = 256 };
struct dialect_stream {
    enum stream_kind stream;
    enum stream_format format;
    bool is_uncompressed;   /* whatever the client takes */
    bool has_kept_rules;    /* of STREAM_MANY over HTTP: those of its subject */
    bool track_is_verbatim; /* see struct sl_filter_text */
    bool authors_only;      /* the same */
    uint64_t options;       /* of how events are said: event_fields_of_dialect() */
    struct {
        const char *name; /* of a parameter of that stream */
        struct sl_slice value;
    } parameters[DIALECT_PARAMETERS_MAX];
    unsigned parameter_count;
    char room[DIALECT_ROOM_SIZE]; /* for one that is no part of the request */
    char *memory;                 /* to which the values point */
    /* On a WebSocket: its name, by which messages speak of it (never sent; may be empty), and what
     * goes before the closing brace of all that it is sent (absent: nothing). */
    struct sl_slice name, tail;
    enum {
        DIALECT_REPLACES, /* the stream that has its name, if there is one; begins by its `since` */
        DIALECT_CONTINUES, /* the same, but goes on where that was; or, of DIALECT_WAITS */
        DIALECT_KEEPS      /* that: this one is not opened */
    } again;
    enum {
        DIALECT_BEGINS, /* at once */
        DIALECT_WAITS,  /* for a message that opens one: where it begins counts for that, if it
                           continues */
        DIALECT_IDLES   /* the request asks for no stream: only messages do */
    } first;            /* of a route's open() */
};
void dialect_stream_done(struct dialect_stream *asked);
/* As stream_request_read(), of a token that has been found; refusals name our parameters. `dialect`
 * is the number of `request.dialect`. */
int stream_request_read_asked(const struct front_settings *settings,
                              const struct dialect_stream *asked, struct sl_slice jwt,
                              const struct http_request *http, const struct stream_times *times,
                              struct stream_request *ret_request, struct http_refusal *refusal,
                              enum token_fault *ret_fault);
/* `refusal` says what is wrong with what is asked; whose token is not good is told only that.
 * -EPROTO, -ENOMEM. */
int stream_request_refuse_asked(const struct front_settings *settings,
                                const struct dialect_stream *asked, struct sl_slice jwt,
                                const struct http_request *http, const struct stream_times *times,
                                struct http_refusal *refusal, enum token_fault *ret_fault);
/* Reads what is asked for on the connection that another request has got, as
 * stream_request_read_opened(). */
int stream_request_read_asked_opened(const struct front_settings *settings,
                                     const struct stream_request *connection,
                                     const struct dialect_stream *asked,
                                     const struct stream_times *times,
                                     struct stream_request *ret_request,
                                     struct http_refusal *refusal);
/* Its filters have names, and come by messages. */
static inline bool stream_request_takes_rules(const struct stream_request *request)
{
    return request->stream == STREAM_MANY || request->counts.by == COUNT_BY_RULE;
}
/* Does it begin where it ends? */
static inline bool stream_request_is_over(const struct stream_request *request)
{
    return request->until && request->since == SINCE_CURSOR &&
           sl_cursor_is_plain(&request->since_cursor) && request->since_cursor.id >= request->until;
}
/* What its filters may ask for: as the token says, and what is wide (lang: and country: alone)
 * where no event is owed for each match. */
static inline struct sl_filter_limits stream_request_limits(const struct stream_request *request)
{
    struct sl_filter_limits limits = request->token.limits;

    limits.allows_wide = request->counts.bucket_ms > 0; /* counted, or picked from */
    return limits;
}
void stream_request_done(struct stream_request *request);

/* The parameter `fields`, wherever it comes from. 0; -EPROTO: *refusal says bad_fields. */
int stream_fields_read(struct sl_slice text, uint64_t *ret_fields, struct http_refusal *refusal);

/* Does its token permit the stream, and its filter if it has one? 0; -EPROTO: *refusal. */
int stream_request_permitted(const struct stream_request *request, struct http_refusal *refusal);

/* May this token hold this filter, wherever it comes from? All events by name take
 * stream:firehose (deletions alone, which are ids only, stream:filter), all of a sample or
 * partition stream:sample, the rest stream:filter; `lim.sample` bounds the first two.
 * 0; -EPROTO: *refusal says not_permitted. */
int stream_filter_permitted(const struct token *token, const struct sl_filter *filter,
                            struct http_refusal *refusal);
