/* gateway/streams/streams.h - the streams of a worker, over HTTP and WebSocket.
 *
 * A request for a stream is checked here (token, parameters, limits). Then its connection is taken
 * over from HTTP: it joins delivery, is kept alive, and ends with a message that contains the
 * reason. Belongs to the thread of its loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/delivery/deliver.h"
#include "gateway/front/admission.h"
#include "gateway/front/stream_request.h"
#include "gateway/http/http_server.h"
#include "gateway/metrics/metrics.h"

struct audit_log;
struct dialect;
struct dialect_route;
struct dictionaries;
struct fair_use;
struct pass_store;
struct rule_store;
struct slow_board;
struct streams;
struct user_checks;

struct streams_settings {
    uv_loop_t *loop;
    struct control_channel *control; /* for questions to all workers */
    struct turn *turn;               /* at its end streams are closed */
    struct deliver *deliver;
    struct dictionaries *dictionaries;  /* NULL: no compression */
    const struct front_settings *front; /* may change between requests */
    struct admission *admission;
    struct fair_use *uses; /* NULL: nothing is counted or limited */
    unsigned worker;
    struct metrics *metrics;
    struct slow_board *slow_board;   /* of all workers; this one writes its part */
    struct user_checks *user_checks; /* NULL: logins are not checked */
    struct pass_store *passes;       /* for tickets; NULL: there are none */
    struct rule_store *rules;        /* kept rules; NULL: there are none */
    struct audit_log *audit;         /* NULL: off */
};

/* NULL: out of memory or descriptors. */
struct streams *streams_new(const struct streams_settings *settings);

/* Whether there is a source of events. */
void streams_set_ready(struct streams *streams, bool is_ready);
/* Whether streams can begin now. 0; -EPROTO: *refusal says why not. */
int streams_check_readiness(const struct streams *streams, struct http_refusal *refusal);

/* Checks the token and scope of a request for a stream before its body is read. 0; -EPROTO: respond
 * with *refusal; *ret_fault is for log and metrics. If the head has no token, it may be in the
 * body, if that is small. */
int streams_check_head(struct streams *streams, const struct http_head *head,
                       struct http_refusal *refusal, enum token_fault *ret_fault);
/* Begins the stream `kind` of the request, as a WebSocket if it is an upgrade. 0: the connection is
 * taken over; -EPROTO: respond with *refusal; if *ret_fault is not TOKEN_OK, it is what was wrong
 * with the token. */
int streams_begin(struct streams *streams, struct http_connection *connection,
                  enum stream_kind kind, const struct http_head *head, struct http_refusal *refusal,
                  enum token_fault *ret_fault);

/* Called when a request of a dialect is refused later. */
typedef void (*streams_refused_in_fn)(struct http_connection *connection,
                                      const struct dialect *dialect,
                                      const struct http_refusal *refusal);
/* The same for a route of a dialect that is a stream; a stream with kept rules begins later. */
int streams_begin_dialect(struct streams *streams, struct http_connection *connection,
                          const struct dialect *dialect, const struct dialect_route *route,
                          bool is_private, const struct http_head *head,
                          streams_refused_in_fn refused, struct http_refusal *refusal,
                          enum token_fault *ret_fault);
/* Like streams_check_head(), for a dialect. */
int streams_check_dialect(struct streams *streams, const struct dialect *dialect, bool is_private,
                          const struct http_head *head, struct http_refusal *refusal,
                          enum token_fault *ret_fault);
/* Called when a request is refused later. */
typedef void (*streams_refused_fn)(struct http_connection *connection,
                                   const struct http_refusal *refusal);
/* Like streams_begin(), for a request with a ticket. 0: it will be taken over or answered later.
 * With `may_have_session`, it may have a session cookie instead, and is given one. */
int streams_begin_with_ticket(struct streams *streams, struct http_connection *connection,
                              enum stream_kind kind, const struct http_head *head,
                              struct sl_slice ticket, bool may_have_session,
                              streams_refused_fn refused, struct http_refusal *refusal);
/* Processes a request of a dialect about the kept rules of the token's subject. 0: answered
 * later. */
int streams_rules(struct streams *streams, struct http_connection *connection,
                  const struct dialect *dialect, const struct dialect_route *route,
                  const struct http_head *head, streams_refused_in_fn refused,
                  struct http_refusal *refusal, enum token_fault *ret_fault);
/* Processes a POST of JSON with the path of a stream; the response, sent later, contains a ticket
 * for it. */
int streams_make_ticket(struct streams *streams, struct http_connection *connection,
                        const struct http_head *head, streams_refused_fn refused,
                        struct http_refusal *refusal, enum token_fault *ret_fault);

/* Processes a POST of JSON with a filter; the response, sent later, estimates what it matches. */
int streams_estimate(struct streams *streams, struct http_connection *connection,
                     const struct http_head *head, struct http_refusal *refusal,
                     enum token_fault *ret_fault);

/* Processes a request about connections (connections.h), now or later. */
int streams_connections(struct streams *streams, struct http_connection *connection,
                        const struct http_head *head, struct http_refusal *refusal,
                        enum token_fault *ret_fault);

/* The server is shutting down: ends each stream when it has been sent everything; at once with
 * `hurries`. To be called repeatedly. */
void streams_drain(struct streams *streams, bool has_successor, bool hurries);
size_t streams_count(const struct streams *streams);

/* Closes the remaining streams. The loop must then run until nothing is left to do. */
void streams_close(struct streams *streams);
void streams_free(struct streams *streams);
