/* gateway/redis/redis_session.h - one connection to a Redis or a sentinel: from a name to replies.
 *
 * redis_session_open() looks the name up, connects, agrees on TLS, logs in, selects the database
 * and says who it is; then on_ready comes, and what is sent from then on is answered by on_reply,
 * in order. A session has `connect_ms` until it is connected and `timeout_ms` more until its owner
 * calls it settled; after that it can look for itself whether the other side is still there.
 * However it ends, but for redis_session_close(), on_lost says why: later, from the loop, never
 * from within a call. Trying again is the owner's.
 *
 * This is the only way to Redis in sluiced: the subscriber, the sentinels and all commands come
 * through here. */
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
    /* Where to, until another is set: of a node, or a sentinel. NULL: as the address says. */
    const struct sl_redis_endpoint *endpoint;
    bool is_sentinel;        /* its login; no database, no name */
    const char *name;        /* for CLIENT LIST; lives as long as the session */
    uint32_t connect_ms;     /* until the connection stands; 0: timeout_ms / 4 */
    uint32_t timeout_ms;     /* from then until the owner calls it settled */
    size_t max_unsent_bytes; /* what is sent and cannot leave yet */
};

/* Each may open, close or free the session. */
struct redis_session_callbacks {
    void (*on_ready)(void *context);
    /* Belongs to the session. */
    void (*on_reply)(void *context, const redisReply *reply);
    /* The replies of this turn of the loop are all there. NULL: nobody wants to know. */
    void (*on_turn_end)(void *context);
    /* It is closed already. `reason` is for humans, and lives until the next opening. */
    void (*on_lost)(void *context, const char *reason);
};

/* NULL: out of memory. */
struct redis_session *redis_session_new(const struct redis_session_settings *settings,
                                        const struct redis_session_callbacks *callbacks,
                                        void *context);
/* No callback comes any more. The loop must run once more to let go of the handles. */
void redis_session_free(struct redis_session *session);

/* The session is closed. on_ready comes, or on_lost. */
void redis_session_open(struct redis_session *session);
/* Without effect on one that is closed. */
void redis_session_close(struct redis_session *session);

/* Another endpoint to connect to; the address has no path. The session is closed. */
void redis_session_set_endpoint(struct redis_session *session,
                                const struct sl_redis_endpoint *endpoint);
const struct sl_redis_endpoint *redis_session_endpoint(const struct redis_session *session);

/* Opened, and neither closed nor lost; and also ready. */
bool redis_session_is_open(const struct redis_session *session);
bool redis_session_is_ready(const struct redis_session *session);
/* The greeting has begun. */
bool redis_session_is_connected(const struct redis_session *session);

/* Sends the call. The session is ready. 0; -ENOMEM: too much is unsent, or there is no memory. */
int redis_session_send_call(struct redis_session *session, const struct sl_call *call);
/* Sends words, up to a NULL. The same. */
int redis_session_send_words(struct redis_session *session, const char *const *words);

/* The answer to a PING of a Redis that cannot write to its disk: it refuses that, too (MISCONF), in
 * its turn. */
bool redis_session_is_refused_ping(const redisReply *reply);

/* Reads nothing for so many milliseconds (redis_socket_rest()). The session is ready. */
void redis_session_rest(struct redis_session *session, uint32_t ms);

/* It has done what it was opened for: `timeout_ms` ends. With `ping_ms`, for a connection that has
 * subscribed: when it was silent for so long it is asked whether it is there, and given up when it
 * was for three times as long. What answers that is not given to on_reply; the answer to a PING
 * with a text, which the owner may send, is. */
void redis_session_settle(struct redis_session *session, uint32_t ping_ms);
