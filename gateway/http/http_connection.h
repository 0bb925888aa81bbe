/* gateway/http/http_connection.h - internal to http: a connection, and its server. */
#pragma once

#include "base/buffer.h"
#include "base/list.h"
#include "base/log.h"
#include "gateway/http/http_bodies.h"
#include "gateway/http/http_date.h"
#include "gateway/http/http_server.h"
#include "gateway/http/http_waiting.h"
#include "gateway/http/proxy_gate.h"

enum http_stage {
    HTTP_STAGE_HEAD,      /* reads a head, or waits for one */
    HTTP_STAGE_BODY,      /* reads the body that belongs to it */
    HTTP_STAGE_ANSWERING, /* the handler has the request */
    HTTP_STAGE_LAST,      /* the last response was given, but may not be sent yet */
    HTTP_STAGE_LINGERING, /* it was sent; further input is discarded */
    HTTP_STAGE_GATE,      /* reads the PROXY header, before the wire is opened */
    HTTP_STAGE_ENDED      /* closed or taken over; freed at the end of the turn */
};

/* A request whose body did not arrive together with its head. */
struct http_incoming {
    struct buffer head;
    struct buffer body;
    size_t left; /* bytes of the body still to come */
    struct http_body_share share;
};

struct http_connection {
    struct wire wire;
    struct proxy_gate *gate; /* in HTTP_STAGE_GATE */
    struct http_server *server;
    struct list_node node;     /* in the server's list */
    struct list_node put_off;  /* in the server's list of connections with pipelined requests */
    struct turn_task turn_end; /* closes and frees the connection */
    struct http_waiter waiter;
    struct buffer input;            /* received, but not used yet */
    size_t seen;                    /* bytes of it that contain no end of a head */
    size_t held_before;             /* bytes held when it began to wait for the peer to read */
    size_t thrown_away;             /* bytes discarded while lingering */
    struct http_incoming *incoming; /* in HTTP_STAGE_BODY */
    struct buffer headers;          /* for the next response */
    void (*abandoned)(void *owner); /* set while the response comes later */
    void *answerer;                 /* passed to `abandoned` */
    uint8_t listener;
    uint8_t stage;       /* enum http_stage */
    bool with_tls : 1;   /* of the wire, when it is opened after the PROXY header */
    bool is_gated : 1;   /* a PROXY header has named the client */
    bool is_served : 1;  /* at least one request was answered */
    bool is_serving : 1; /* its input is being processed: responses are collected */
    bool is_head : 1;    /* of the current request: see http_answer_form */
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
    struct wire *taken;    /* set when the current connection is taken over; NULL: it is not */
    struct buffer output;  /* responses of the connection that is being processed */
    struct buffer scratch; /* one response of another connection */
    struct http_date date;
    struct log_rate proxy_rate; /* for connections without a PROXY header */
    bool is_draining, has_successor;
};

extern const struct wire_callbacks http_wire_callbacks;

/* Starts a new connection, which waits for its first request. */
void http_connection_start(struct http_connection *connection);
/* Closes the connection at the end of the turn. */
void http_connection_end(struct http_connection *connection);
/* Handles the end of the time for what the connection waited for. */
void http_connection_time_out(struct http_connection *connection, enum http_wait wait);
/* Whether no part of a request was received and no response is being sent. */
bool http_connection_is_silent(const struct http_connection *connection);
