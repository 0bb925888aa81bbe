/* gateway/streams/ticket_wait.h - inside streams: a connection that waits for what Redis says of a
 * ticket.
 *
 * Who waits is embedded in its owner, and outlives the connection until the answer comes. */
#pragma once

#include "gateway/streams/stream.h"

enum { TICKETS_WAITED_FOR_MAX = 1024 /* on a worker */ };

struct ticket_wait {
    struct streams *streams;
    struct http_connection *connection; /* NULL: it has ended */
    streams_refused_fn refused;
};

/* 0; -EPROTO: *refusal says busy. */
int ticket_wait_check_room(const struct streams *streams, struct http_refusal *refusal);
/* It counts from now on, until it is done. */
void ticket_wait_init(struct ticket_wait *wait, struct streams *streams,
                      struct http_connection *connection, streams_refused_fn refused);
void ticket_wait_done(struct ticket_wait *wait);
/* The connection waits for the answer. */
void ticket_wait_begin(struct ticket_wait *wait);
/* Which is this, if anybody waits for it still. */
void ticket_wait_refuse(struct ticket_wait *wait, const struct http_refusal *refusal);

/* Fills *refusal: Redis is away. Returns -EPROTO. */
int ticket_refuse_for_redis(struct http_refusal *refusal, const char *message);
