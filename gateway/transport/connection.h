/* gateway/transport/connection.h - inside transport: one connection, from its first request on.
 *
 * libwebsockets owns the socket and the wsi; a connection hangs on the wsi as its opaque user data
 * and goes when the wsi is destroyed. It begins as a plain HTTP exchange and may become a stream:
 * a WebSocket, or a chunked response whose output we write ourselves (http_stream.c says why).
 *
 * A connection is never closed from inside a walk over clients: connection_doom() and the table in
 * delivery/client.h only note it, and server.c does it before the loop waits again. */
#pragma once

#include <libwebsockets.h>
#include <uv.h>

#include "base/buffer.h"
#include "base/list.h"
#include "gateway/delivery/client.h"
#include "gateway/front/request.h"
#include "gateway/transport/server.h"

struct api_request;
struct rule_set;
struct server_door;

enum connection_stage {
    CONNECTION_REQUEST,   /* HTTP: being read, or answered with a plain response */
    CONNECTION_ANSWERING, /* HTTP: the answer is on its way, from the API or to the peer */
    CONNECTION_STREAM,    /* HTTP: an endless chunked response */
    CONNECTION_WEBSOCKET,
    CONNECTION_LEAVING, /* the farewell is sent or held; then comes the close */
    CONNECTION_LEFT,    /* the close is under way; the peer or the deadline ends it */
    CONNECTION_GONE     /* libwebsockets has let go of it */
};

/* What of its request an answer depends on. */
struct response_form {
    bool is_head;
    bool is_http_1_0;
    bool closes;        /* the connection ends with it */
    struct buffer cors; /* header lines */
};

enum doom {
    DOOM_NONE,
    DOOM_FAREWELL,  /* say why, then close */
    DOOM_PEER_LEFT, /* close */
    DOOM_BROKEN     /* close, and count it */
};

struct connection {
    struct client client; /* of delivery; first, see connection_of() */
    struct server *server;
    const struct server_door *door; /* by which it came */
    struct lws *wsi;                /* NULL once gone */
    int fd;
    bool is_tls;
    bool rx_is_off; /* libwebsockets reads nothing from it now */
    enum connection_stage stage;
    bool was_stream; /* it got as far as a stream */
    enum doom doom;
    enum farewell farewell;
    uint64_t farewell_cursor;
    struct list_node node;         /* in the server's list */
    struct list_node scheduled;    /* in the server's list for the end of the turn */
    uv_timer_t timer;              /* deadlines: request, keep-alive, token, leaving */
    uint64_t opened_ms;            /* clocks of the loop from here on */
    uint64_t deadline_ms;          /* of the request, or of the leaving; 0: none */
    uint64_t pinged_ms;            /* WebSocket: last ping of ours without an answer; 0: none */
    struct stream_request request; /* of a stream */
    bool has_request;
    bool is_idle;         /* over TLS: its request is answered, and it may send another */
    bool may_serve_again; /* its request is answered; the socket goes back to the doorway */
    bool is_whole;    /* its request has been read, and nothing else was taken for a part of it */
    size_t body_left; /* of its request's body, to come */
    uint64_t
        read_mark; /* TLS: how much had been read when the last request was answered; 0: none */
    struct api_request *api_request;    /* what the API does for it; NULL: nothing */
    struct response_form response_form; /* of an answer that comes later */
    bool is_admitted;                   /* `ticket` is one */
    admission_ticket ticket;
    struct buffer incoming; /* a request body, or a message in fragments */
    struct buffer held;     /* HTTP: goes out before anything else */
    unsigned held_count;    /* WebSocket: writes that libwebsockets holds */
    bool wants_writable;    /* nothing may be written until the socket has room again */
    struct rule_set *rules; /* of /v1/stream; NULL once it has left delivery, which frees them */
    size_t rule_count;      /* then: how many there were, and of how many bytes */
    size_t rule_bytes;
};

static inline struct connection *connection_of(const struct client *client)
{
    return (struct connection *)client;
}

/* NULL: out of memory. */
struct connection *connection_new(struct server *server, struct lws *wsi);
/* Nothing is owed to it any more. Delivery's rules go with their last client. */
void connection_leave_delivery(struct connection *connection);
/* The wsi is being destroyed: forgets it; the memory goes after this turn of the loop. */
void connection_gone(struct connection *connection);

/* Something is left to do for it at the end of the turn. */
void connection_schedule(struct connection *connection);
void connection_doom(struct connection *connection, enum doom doom);
/* Schedules a farewell; the cursor is taken down now. The first reason wins. */
void connection_evict(struct connection *connection, enum farewell farewell);

/* The server leaves. A stream is evicted once it has been sent what it is owed, or at once when the
 * server hurries; a request is answered first; a connection between two requests is closed, unless
 * a successor gives it time to ask. */
void connection_drain(struct connection *connection);

/* A stream begins: its request is set, its transport is ready to write. Joins delivery, starts the
 * keep-alive. 0; -ENOMEM. */
int connection_start_stream(struct connection *connection, enum connection_stage stage,
                            const struct transport *transport);

/* Bytes of ours, complete frames, in order with everything else. A client that does not read them
 * while more and more pile up is broken. */
void connection_say(struct connection *connection, struct sl_slice frames);

/* Sets the timer to the next deadline. */
void connection_arm(struct connection *connection);

/* The socket has room and nothing is held: goes on with what delivery owes, or with leaving. */
void connection_writable(struct connection *connection);

/* Says farewell now; not from inside a walk over clients. */
void connection_take_leave(struct connection *connection);
/* Everything of the farewell is sent: closes, the way the transport does that. Like the above, and
 * not from a callback of libwebsockets. */
void connection_begin_close(struct connection *connection);

/* --- websocket.c --- */

extern const struct transport websocket_transport;

/* What libwebsockets asks of a WebSocket; the callback's return value. */
int websocket_callback(struct connection *connection, enum lws_callback_reasons reason, void *in,
                       size_t size);
/* The farewell message has been sent: the close handshake. */
void websocket_begin_close(struct connection *connection);

/* --- http_output.c: of answers and streams, plain and over TLS --- */

/* As in delivery's table of a transport. */
ssize_t http_output_send(struct connection *connection, const struct iovec *pieces, int count);
int http_output_hold(struct connection *connection, const struct iovec *pieces, int count);
/* Sends what the socket takes, and holds the rest: then it `wants_writable`. 0 or a negative errno.
 */
int http_output_write(struct connection *connection, struct sl_slice bytes);

/* Libwebsockets shall not read while a response is under way. */
void http_output_stop_reading(struct connection *connection);
void http_output_go_on_reading(struct connection *connection);
/* Stops it after the callback in which the response began: while it still holds the head it was
 * given, switching off makes it wait for room to write, for ever. */
void http_output_settle(struct connection *connection);

/* Calls connection_writable() when everything that is held has gone; `events` of epoll. 0 or a
 * negative errno. */
int http_output_watch(struct connection *connection, uint32_t events);
void http_output_unwatch(struct connection *connection);

int http_output_start(struct server *server); /* 0 or a negative errno */
void http_output_stop(struct server *server);

/* --- http_stream.c --- */

/* Sends the response head and takes the output over. 0, or negative: close the connection. */
int http_stream_open(struct connection *connection, bool is_http_1_0, struct sl_slice cors);
/* Everything is sent: waits for the peer to close. */
void http_stream_begin_close(struct connection *connection);

/* --- rules.c: the conversation on /v1/stream --- */

void rules_message(struct connection *connection, struct sl_slice message);
