/* gateway/streams/ticket_wait.h - internal to streams: a connection that waits for Redis to look up
 * or store a ticket.
 *
 * The struct is embedded in its owner, which exists until Redis answers, even if the connection has
 * been closed. */
#pragma once

#include "gateway/streams/stream.h"

enum { TICKETS_WAITED_FOR_MAX = 1024 /* on a worker */ };

struct ticket_wait {
    struct streams *streams;
    struct http_connection *connection; /* NULL: it has been closed */
    streams_refused_fn refused;
};

/* 0; -EPROTO: *refusal says busy. */
int ticket_wait_check_room(const struct streams *streams, struct http_refusal *refusal);
/* Counts as waiting until ticket_wait_done(). */
void ticket_wait_init(struct ticket_wait *wait, struct streams *streams,
                      struct http_connection *connection, streams_refused_fn refused);
void ticket_wait_done(struct ticket_wait *wait);
/* The connection waits for the answer. */
void ticket_wait_begin(struct ticket_wait *wait);
/* Sends the refusal, unless the connection has been closed. */
void ticket_wait_refuse(struct ticket_wait *wait, const struct http_refusal *refusal);

/* Sets *refusal: Redis is not reachable. Returns -EPROTO. */
int ticket_refuse_for_redis(struct http_refusal *refusal, const char *message);
