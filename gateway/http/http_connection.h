/* gateway/http/http_connection.h - inside http: one connection, and the server it belongs to. */
#pragma once

#include "base/buffer.h"
#include "base/list.h"
#include "base/log.h"
#include "gateway/http/http_bodies.h"
#include "gateway/http/http_server.h"
#include "gateway/http/http_waiting.h"
#include "gateway/http/proxy_gate.h"

enum http_stage {
    HTTP_STAGE_HEAD,      /* reads a head, or waits for one to begin */
    HTTP_STAGE_BODY,      /* reads the body that belongs to it */
    HTTP_STAGE_ANSWERING, /* the handler has the request */
    HTTP_STAGE_LAST,      /* the last answer is given, but perhaps not sent */
    HTTP_STAGE_LINGERING, /* it is sent; what still comes is thrown away */
    HTTP_STAGE_GATE,      /* reads the PROXY header, before there is a wire */
    HTTP_STAGE_ENDED      /* closed, or taken over; the memory goes with this turn */
};

/* A request whose body did not come together with its head. */
struct http_incoming {
    struct buffer head;
    struct buffer body;
    size_t left; /* of the body, to come */
    struct http_body_share share;
};

struct http_connection {
    struct wire wire;
    struct proxy_gate *gate; /* in HTTP_STAGE_GATE */
    struct http_server *server;
    struct list_node node;     /* in the server's list */
    struct list_node put_off;  /* in the server's list of those with requests sent ahead */
    struct turn_task turn_end; /* closes it and frees it */
    struct http_waiter waiter;
    struct buffer input;            /* received, and not used yet */
    size_t seen;                    /* of it: no head ends there */
    size_t held_before;             /* when it began to wait for the peer to read */
    size_t thrown_away;             /* while it lingers */
    struct http_incoming *incoming; /* in HTTP_STAGE_BODY */
    struct buffer headers;          /* of the answer to come */
    void (*abandoned)(void *owner); /* the answer comes later, unless this is called */
    void *answerer;                 /* its owner */
    uint8_t listener;
    uint8_t stage;       /* enum http_stage */
    bool with_tls : 1;   /* the wire, when it is opened behind the gate */
    bool is_gated : 1;   /* a PROXY header has said who the client is */
    bool is_served : 1;  /* one of its requests has been answered */
    bool is_serving : 1; /* its input is being served: answers are collected */
    bool is_head : 1;    /* of the request at hand: see http_answer_form */
    bool is_http_1_0 : 1;
    bool closes : 1;
};

struct http_server {
    struct http_server_settings settings;
    struct list connections;
    struct http_waiting waiting;
    struct http_bodies bodies;
    struct list put_off;
    uv_idle_t *next_turn;  /* runs while `put_off` is not empty; NULL: the server is closed */
    struct wire *taken;    /* over, from the connection that is being served; NULL: it is not */
    struct buffer output;  /* answers of the connection that is being served */
    struct buffer scratch; /* one answer of another one */
    struct log_rate proxy_rate; /* of connections without a PROXY header */
    bool is_draining, has_successor;
};

extern const struct wire_callbacks http_wire_callbacks;

/* A new one waits for its first request. */
void http_connection_start(struct http_connection *connection);
/* Closes it, at the end of the turn. */
void http_connection_end(struct http_connection *connection);
/* The time for what it waited for is up. */
void http_connection_time_out(struct http_connection *connection, enum http_wait wait);
/* Is nothing of a request there, nor of an answer on its way? */
bool http_connection_is_silent(const struct http_connection *connection);
