/* gateway/streams/stream.h - inside streams: one stream, from the answer that began it on.
 *
 * It goes through four stages: live; leaving, when the message that says why it ends is sent or
 * held; closing, when all is sent and the peer is waited for; ended. Nothing closes a stream from
 * inside a walk over clients: stream_evict() and stream_end() note it, and the end of the turn does
 * it. */
#pragma once

#include <uv.h>

#include "base/hash.h"
#include "base/list.h"
#include "gateway/delivery/client.h"
#include "gateway/front/stream_request.h"
#include "gateway/http/http_bodies.h"
#include "gateway/http/turn.h"
#include "gateway/http/websocket_reader.h"
#include "gateway/http/wire.h"
#include "gateway/streams/filter_budget.h"
#include "gateway/streams/streams.h"
#include "gateway/streams/user_check.h"

struct rule_set;

struct streams {
    struct streams_settings settings;
    struct list list;        /* of all streams */
    struct list past_counts; /* that are not answered yet */
    struct filter_budget *budget;
    struct websocket_inflater *inflater; /* of what clients compress */
    struct http_bodies kept;             /* see stream_memory.c */
    struct hash_key subject_key;
    struct stream **by_ticket; /* by their index in the admission list */
    uv_poll_t *replaced_watch; /* of our streams that make room for others */
    uv_timer_t *survey_timer;
    bool is_ready;
    bool is_draining;
    bool has_successor; /* while draining */
    uint64_t random;    /* state of the spread of retry_ms, and of ids */
};

enum stream_stage { STREAM_LIVE, STREAM_LEAVING, STREAM_CLOSING, STREAM_ENDED };

/* In order: a later one replaces an earlier one. */
enum stream_end {
    STREAM_GOES_ON,
    STREAM_EVICTED,   /* say why, then close */
    STREAM_PEER_LEFT, /* close */
    STREAM_BROKEN     /* close, and count it */
};

/* What the protocol under a stream does; http_stream_protocol and websocket_protocol fill it. */
struct stream_protocol {
    size_t size; /* of the struct that begins with a struct stream */
    /* Sends the answer that begins the stream. 0; a negative errno: the connection is broken. */
    int (*open)(struct stream *stream, const struct http_head *head, struct sl_slice headers);
    void (*received)(struct stream *stream, char *bytes, size_t size);
    /* There is room: says what could not be said before. */
    void (*writable)(struct stream *stream);
    /* What goes out last, behind the message that says why. */
    void (*say_end)(struct stream *stream, const struct disconnect_row *why);
    /* All of it is sent. */
    void (*begin_close)(struct stream *stream);
    /* Memory of what the peer has begun to say and not ended. */
    size_t (*kept_bytes)(const struct stream *stream);
    /* Forgets that; nothing of the peer is read any more. */
    void (*stop_reading)(struct stream *stream);
    void (*done)(struct stream *stream);
};

struct stream {
    struct client client; /* of delivery; first, see stream_of() */
    const struct stream_protocol *protocol;
    struct wire wire;
    struct streams *streams;
    struct list_node node; /* in streams->list */
    struct turn_task turn_end;
    uv_timer_t timer;          /* keep-alive, token, leaving, closing */
    uint8_t stage;             /* enum stream_stage */
    uint8_t end;               /* enum stream_end */
    uint8_t disconnect_reason; /* enum disconnect_reason, if `is_evicted` */
    bool is_evicted;
    bool gives_way; /* others need the memory */
    struct sl_cursor disconnect_cursor;
    uint64_t id;          /* of the connection: for hello and the log */
    uint64_t opened_ms;   /* clocks of the loop */
    uint64_t deadline_ms; /* of leaving and closing */
    struct user_questions user_questions;
    admission_ticket ticket;
    struct filter_share filters; /* what they cost */
    struct http_body_share kept;
    size_t left_filters; /* how many it had when it left delivery, and of how many bytes of text */
    size_t left_filter_bytes;
    struct stream_request request; /* its filter is NULL then */
};

/* A stream on a WebSocket. */
struct websocket {
    struct stream stream; /* first */
    struct websocket_reader reader;
    struct buffer pong; /* payload of the last ping that was not answered */
    bool has_ping;      /* `pong` is one */
    bool was_closed;    /* the peer's close frame has come, or none will be read */
    uint64_t pinged_ms; /* last ping of ours without an answer; 0: none */
    struct rule_set
        *rules; /* if it takes rules; NULL once it has left delivery, which frees them */
};

static inline struct stream *stream_of(const struct client *client)
{
    return (struct stream *)client;
}

/* NULL: the stream is not on a WebSocket. */
static inline struct websocket *websocket_of(const struct stream *stream)
{
    return stream->request.format == FORMAT_WEBSOCKET ? (struct websocket *)stream : NULL;
}

/* --- stream_filters.c --- */

/* A filter that costs `added` bytes is to take the place of one that costs `replaced` (0: of none),
 * of which `freed` go with it. May the holder of `token` have that? Then it is in `share`.
 * 0; -EPROTO: *refusal, nothing has changed; -ENOMEM. */
struct filter_change {
    size_t added, replaced, freed;
};
int stream_filters_take(struct streams *streams, const struct token *token,
                        const struct filter_change *change, struct filter_share *share,
                        struct http_refusal *refusal);
/* After that: the stream's filters cost `bytes`. */
void stream_filters_settle(struct streams *streams, const struct token *token, size_t bytes,
                           struct filter_share *share);

/* --- stream_memory.c --- */

void stream_memory_init(struct streams *streams);
/* What is kept for the stream has become more or less. Where that is too much for all, those who
 * must give way have `gives_way`, and their turn_end runs. */
void stream_memory_count(struct stream *stream);
void stream_memory_forget(struct stream *stream);

/* --- stream.c --- */

extern const struct wire_callbacks stream_wire_callbacks;

/* Its wire has been taken over: sends the answer to the request, with `headers` in it, joins
 * delivery, starts the keep-alive. What fails ends the stream with this turn. */
void stream_start(struct stream *stream, const struct http_head *head, struct sl_slice headers);

/* Bytes of ours, complete frames, in order with everything else. A client that does not read them
 * while more and more pile up is broken. */
void stream_say(struct stream *stream, struct sl_slice frames);
/* The same with one frame, which is done with then; on HTTP/1.0 what is inside the chunk. */
void stream_say_frame(struct stream *stream, struct buffer *frame);

/* Ends it with a message that says why; the cursor is taken down now. The first reason wins. */
void stream_evict(struct stream *stream, enum disconnect_reason reason);
/* Ends it, at the end of the turn. */
void stream_end(struct stream *stream, enum stream_end end);

enum { STREAM_LEAVING_MS = 5000 }; /* to read what was said last */

/* The last bytes are said: once they are sent, the closing begins. */
void stream_leave(struct stream *stream, uint64_t within_ms);
/* Nothing is owed to it any more. Delivery's rules go with their last client. */
void stream_leave_delivery(struct stream *stream);
/* The server drains: evicts it when it has been sent what it is owed, or at once when it hurries.
 */
void stream_drain(struct stream *stream, bool hurries);

/* --- stream_http.c, stream_websocket.c --- */

extern const struct stream_protocol http_stream_protocol, websocket_protocol;

/* --- named_filters.c --- */

/* A message of a client of /v1/stream. */
void named_filters_message(struct websocket *websocket, struct sl_slice message);

/* --- hello.c --- */

/* {"type":"hello",...}; `cursor` is where the stream begins. */
void hello_print(const struct stream *stream, const struct sl_cursor *cursor,
                 struct buffer *ret_json);

/* --- survey.c --- */

/* Looks at all streams now and then, for metrics and status. 0 or a negative errno. */
int survey_start(struct streams *streams);
void survey_stop(struct streams *streams);
