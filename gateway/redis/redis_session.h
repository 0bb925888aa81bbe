/* gateway/redis/redis_session.h - a connection to a Redis or a sentinel, from the host name to
 * replies.
 *
 * redis_session_open() looks up the name, connects, does the TLS handshake, logs in, selects the
 * database and sets the client name; then on_ready is called. Everything sent from then on is
 * answered by on_reply, in order. A session has `connect_ms` to connect and `timeout_ms` more until
 * its owner calls it settled; after that it can check by itself whether the peer is alive. If it
 * ends in any way except redis_session_close(), on_lost gives the reason: later, from the loop,
 * never during a call. Reconnecting is up to the owner.
 *
 * All connections of sluiced to Redis use this module: the subscriber, the sentinels and all
 * commands. */
#pragma once

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "src/call/call.h"
#include "src/redis/redis_address.h"

struct redis_session;

struct redis_session_settings {
    uv_loop_t *loop;
    const struct sl_redis_address *address; /* copied */
    /* The initial address: of a node, or a sentinel. NULL: that of `address`. */
    const struct sl_redis_endpoint *endpoint;
    bool is_sentinel;        /* use its login; no database, no client name */
    const char *name;        /* for CLIENT LIST; borrowed as long as the session exists */
    uint32_t connect_ms;     /* to connect; 0: timeout_ms / 4 */
    uint32_t timeout_ms;     /* from then until the owner calls it settled */
    size_t max_unsent_bytes; /* limit of data that could not be sent yet */
};

/* Each may open, close or free the session. */
struct redis_session_callbacks {
    void (*on_ready)(void *context);
    /* The reply belongs to the session. */
    void (*on_reply)(void *context, const redisReply *reply);
    /* All replies of this turn of the loop were delivered. May be NULL. */
    void (*on_turn_end)(void *context);
    /* The session is already closed. `reason` is for humans, and is valid until it is opened
     * again. */
    void (*on_lost)(void *context, const char *reason);
};

/* NULL: out of memory. */
struct redis_session *redis_session_new(const struct redis_session_settings *settings,
                                        const struct redis_session_callbacks *callbacks,
                                        void *context);
/* No callback is called any more. The loop must run once more to close the handles. */
void redis_session_free(struct redis_session *session);

/* The session must be closed. on_ready follows, or on_lost. */
void redis_session_open(struct redis_session *session);
/* No effect if it is closed. */
void redis_session_close(struct redis_session *session);

/* Sets another address to connect to. The address must have no path, and the session must be
 * closed. */
void redis_session_set_endpoint(struct redis_session *session,
                                const struct sl_redis_endpoint *endpoint);
const struct sl_redis_endpoint *redis_session_endpoint(const struct redis_session *session);

/* redis_session_is_open(): opened, and neither closed nor lost. redis_session_is_ready(): also
 * ready. */
bool redis_session_is_open(const struct redis_session *session);
bool redis_session_is_ready(const struct redis_session *session);

/* Sends the call. The session must be ready. 0; -ENOMEM: too much is unsent, or out of memory. */
int redis_session_send_call(struct redis_session *session, const struct sl_call *call);
/* Sends words, up to a NULL. Otherwise like redis_session_send_call(). */
int redis_session_send_words(struct redis_session *session, const char *const *words);

/* The answer to a PING of a Redis that cannot write to its disk: it refuses even that (MISCONF), in
 * order with other replies. */
bool redis_session_is_refused_ping(const redisReply *reply);

/* Reads nothing for this time (redis_socket_rest()). The session must be ready. */
void redis_session_rest(struct redis_session *session, uint32_t ms);

/* The session has fulfilled its purpose: `timeout_ms` no longer applies. With `ping_ms`, for a
 * connection that has subscribed: if it is silent for this time a PING is sent, and after three
 * times as long it is given up. The answer to this PING is not passed to on_reply; the answer to a
 * PING with a text, which the owner may send, is. */
void redis_session_settle(struct redis_session *session, uint32_t ping_ms);
