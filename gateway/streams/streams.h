/* gateway/streams/streams.h - the streams of a worker: what a stream is on HTTP and on WebSocket.
 *
 * A request that asks for a stream is checked here (token, parameters, limits), and then its
 * connection is taken over from HTTP: it joins delivery, is kept alive, and ends with a message
 * that says why. */
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
    struct control_channel *control; /* by which all workers are asked */
    struct turn *turn;               /* where streams are closed */
    struct deliver *deliver;
    struct dictionaries *dictionaries;  /* NULL: nothing is compressed */
    const struct front_settings *front; /* as it is at each request */
    struct admission *admission;
    struct fair_use *uses; /* NULL: nothing is counted */
    unsigned worker;
    struct metrics *metrics;
    struct slow_board *slow_board;   /* of all workers; we write our part */
    struct user_checks *user_checks; /* NULL: nobody is asked for */
    struct pass_store *passes;       /* of tickets; NULL: there are none */
    struct rule_store *rules;        /* that subjects keep; NULL: there are none */
    struct audit_log *audit;         /* NULL: none */
};

/* NULL: out of memory or descriptors. */
struct streams *streams_new(const struct streams_settings *settings);

/* Whether there is a source of events. */
void streams_set_ready(struct streams *streams, bool is_ready);
/* May streams begin now? 0; -EPROTO: *refusal says why not. */
int streams_check_readiness(const struct streams *streams, struct http_refusal *refusal);

/* Before the body of such a request is read: may it ask for a stream? 0; -EPROTO: *refusal, and
 * *ret_fault for log and metrics. A token that is in the body is not asked for, if that is small.
 */
int streams_check_head(struct streams *streams, const struct http_head *head,
                       struct http_refusal *refusal, enum token_fault *ret_fault);
/* Begins the stream `kind` that the request asks for, by WebSocket if it is an upgrade. 0: the
 * connection is taken over; -EPROTO: *refusal is the answer, and *ret_fault, if it is not TOKEN_OK,
 * what was wrong with the token. */
int streams_begin(struct streams *streams, struct http_connection *connection,
                  enum stream_kind kind, const struct http_head *head, struct http_refusal *refusal,
                  enum token_fault *ret_fault);

/* A request of a dialect that is answered later, with a refusal. */
typedef void (*streams_refused_in_fn)(struct http_connection *connection,
                                      const struct dialect *dialect,
                                      const struct http_refusal *refusal);
/* The same for a route of a dialect that is a stream; one that has kept rules begins later. */
int streams_begin_dialect(struct streams *streams, struct http_connection *connection,
                          const struct dialect *dialect, const struct dialect_route *route,
                          bool is_private, const struct http_head *head,
                          streams_refused_in_fn refused, struct http_refusal *refusal,
                          enum token_fault *ret_fault);
/* Before its body is read, as streams_check_head(). */
int streams_check_dialect(struct streams *streams, const struct dialect *dialect, bool is_private,
                          const struct http_head *head, struct http_refusal *refusal,
                          enum token_fault *ret_fault);
/* A request that is answered later, with a refusal. */
typedef void (*streams_refused_fn)(struct http_connection *connection,
                                   const struct http_refusal *refusal);
/* As streams_begin(), of a request with this ticket: 0: it is taken over, or answered, later. By
 * `may_have_session` it may come by a cookie instead, and be given one. */
int streams_begin_with_ticket(struct streams *streams, struct http_connection *connection,
                              enum stream_kind kind, const struct http_head *head,
                              struct sl_slice ticket, bool may_have_session,
                              streams_refused_fn refused, struct http_refusal *refusal);
/* Answers, later, what a route of a dialect asks of the rules of the token's subject. */
int streams_rules(struct streams *streams, struct http_connection *connection,
                  const struct dialect *dialect, const struct dialect_route *route,
                  const struct http_head *head, streams_refused_in_fn refused,
                  struct http_refusal *refusal, enum token_fault *ret_fault);
/* Answers, later, with a ticket for the path in the body: a POST of JSON. */
int streams_make_ticket(struct streams *streams, struct http_connection *connection,
                        const struct http_head *head, streams_refused_fn refused,
                        struct http_refusal *refusal, enum token_fault *ret_fault);

/* Answers, later, what the filter in the body would bring: a POST of JSON. */
int streams_estimate(struct streams *streams, struct http_connection *connection,
                     const struct http_head *head, struct http_refusal *refusal,
                     enum token_fault *ret_fault);

/* Answers, perhaps later, what is asked of connections (connections.h). */
int streams_connections(struct streams *streams, struct http_connection *connection,
                        const struct http_head *head, struct http_refusal *refusal,
                        enum token_fault *ret_fault);

/* Streams are sent what they are owed and then told that the server drains; call it now and then.
 * `hurries`: nobody waits for a queue to empty any more. */
void streams_drain(struct streams *streams, bool has_successor, bool hurries);
size_t streams_count(const struct streams *streams);

/* Closes what is left. The loop must then run until it is empty. */
void streams_close(struct streams *streams);
void streams_free(struct streams *streams);
