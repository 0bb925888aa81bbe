/* gateway/transport/server_private.h - inside transport: what a server is made of. */
#pragma once

#include <libwebsockets.h>
#include <openssl/types.h>

#include "base/buffer.h"
#include "base/list.h"
#include "base/log.h"
#include "gateway/http/listener.h"
#include "gateway/transport/server.h"

struct doorway;

struct server_door {
    struct server *server;
    struct lws_vhost *vhost; /* with TLS, or without */
    struct doorway *doorway; /* NULL: there is no such door, or all is closed */
};

struct server {
    struct server_settings settings;
    struct lws_context *context;
    SSL_CTX *tls; /* of the public door's vhost; NULL: plain */
    struct server_door doors[DOOR_COUNT];
    const struct server_door *entered; /* by whom libwebsockets is being given */
    struct list connections;
    struct connection **by_ticket; /* streams by their place in the admission list */
    uv_poll_t *replaced_watch;     /* of our streams that make room for others */
    struct list scheduled;         /* connections with something to do at the end of the turn */
    uv_prepare_t *turn_end;        /* runs before the loop waits */
    int output_watch_fd;           /* epoll of the sockets that http_output.c writes to; -1: none */
    uv_poll_t *output_watch;
    uv_timer_t *drain_timer;
    uv_timer_t *survey_timer;
    struct buffer *given_body; /* while libwebsockets is being given a head that was read for it */
    bool is_ready;             /* Redis is heard */
    bool is_draining;
    bool has_successor; /* while draining */
    bool hurries;       /* while draining: nobody waits for a queue to empty any more */
    uint64_t drain_began_ms, drain_timeout_ms;
    void (*drained)(void *owner);
    void *drain_owner;
    struct buffer scratch;      /* of one call: responses, joined pieces */
    struct buffer request_room; /* of one request: its text */
    struct log_rate refusal_rate, token_rate;
    uint64_t random; /* state of the spread of retry_ms */
};

/* 64 bits nobody needs to keep secret; for spreading reconnects. */
uint64_t server_random(struct server *server);

/* --- survey.c --- */

enum { SURVEY_EVERY_MS = 1000 };

/* Looks at all connections now and then, for metrics and status. 0 or a negative errno. */
int survey_start(struct server *server);
