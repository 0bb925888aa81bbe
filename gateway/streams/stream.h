/* gateway/streams/stream.h - internal to streams: a stream, from its response on.
 *
 * It has four stages: live; leaving, while the message with the reason of its end is being sent;
 * closing, while everything is sent and it waits for the peer; ended. During a walk over clients no
 * stream is closed: channel_evict() and stream_end() mark it, and it is closed at the end of the
 * turn. */
#pragma once

#include <uv.h>

#include "base/hash.h"
#include "base/list.h"
#include "gateway/access/connection_id.h"
#include "gateway/front/dialect.h"
#include "gateway/front/leaky_bucket.h"
#include "gateway/http/http_bodies.h"
#include "gateway/http/turn.h"
#include "gateway/http/websocket_reader.h"
#include "gateway/http/wire.h"
#include "gateway/streams/channel.h"
#include "gateway/streams/filter_budget.h"
#include "gateway/streams/streams.h"

struct streams {
    struct streams_settings settings;
    struct list list; /* all streams */
    struct list late_answers;
    struct list connection_requests; /* connections.c */
    struct list connection_queries;  /* dialect_connection_query.c */
    struct filter_budget *budget;
    struct websocket_inflater *inflater; /* for compressed messages of clients */
    struct http_bodies kept;             /* see stream_memory.c */
    struct hash_key subject_key;
    struct stream **by_ticket; /* indexed by admission ticket */
    uv_poll_t *replaced_watch; /* readable when streams of this worker were replaced */
    uv_timer_t *survey_timer;
    bool is_ready;
    bool is_draining;
    bool has_successor;          /* while draining */
    unsigned tickets_waited_for; /* requests that wait for a ticket, session or rules in Redis */
    struct list rule_requests;   /* rule_request.c */
    struct list rule_waits;      /* kept_rules.h */
    struct list kept_readings;   /* kept_reading.c */
    struct list kept_streams;    /* of struct kept_rules */
    uint32_t kept_part;          /* which part of them checks its rules next */
    size_t use_part;             /* the part of the streams whose use is added next */
    uint64_t random;             /* state of a generator: for retry_ms and connection ids */
    struct hash_key id_key;
};

enum stream_stage { STREAM_LIVE, STREAM_LEAVING, STREAM_CLOSING, STREAM_ENDED };

/* Ascending: a higher value replaces a lower one. */
enum stream_end {
    STREAM_GOES_ON,
    STREAM_EVICTED,   /* send the reason, then close */
    STREAM_PEER_LEFT, /* close */
    STREAM_BROKEN     /* close, and count it as broken */
};

/* The functions of a protocol; see http_stream_protocol and websocket_protocol. */
struct stream_protocol {
    size_t size; /* of the struct whose first member is a struct stream */
    /* Sends the response that begins the stream. 0; a negative errno: the connection is broken. */
    int (*open)(struct stream *stream, const struct http_head *head, struct sl_slice headers);
    void (*received)(struct stream *stream, char *bytes, size_t size);
    /* The socket has room: sends what was delayed. */
    void (*writable)(struct stream *stream);
    /* Sends what follows the message with the reason. */
    void (*say_end)(struct stream *stream, const struct disconnect_row *why);
    /* Everything has been sent. */
    void (*begin_close)(struct stream *stream);
    /* The time until reading resumes after the peer sent too much. UINT64_MAX: reading is not
     * paused. */
    uint64_t (*pause_left_ms)(const struct stream *stream);
    /* Resumes reading. Evicts the stream if what it reads requires that. */
    void (*read_on)(struct stream *stream);
    /* Memory of incomplete and unread messages of the peer, in bytes. */
    size_t (*kept_bytes)(const struct stream *stream);
    /* Frees that memory; nothing more is read. */
    void (*stop_reading)(struct stream *stream);
    void (*done)(struct stream *stream);
};

/* `own` is the channel of the request that began the connection. */
struct stream {
    struct channel own;
    struct list channels; /* `own` and opened streams; the first is sent to next */
    const struct stream_protocol *protocol;
    struct wire wire;
    struct streams *streams;
    struct list_node node; /* in streams->list */
    struct turn_task turn_end;
    uv_timer_t timer;                       /* for keep-alive, token, leaving, closing */
    uint8_t stage;                          /* enum stream_stage */
    uint8_t end;                            /* enum stream_end */
    bool gives_way;                         /* must free memory for others */
    bool was_warned;                        /* that its token expires soon */
    char connection_id[CONNECTION_ID_SIZE]; /* for its owner, hello and the log */
    uint64_t deadline_ms; /* end of leaving or closing; time of the loop's clock */
    uint64_t stuck_ms;    /* deadline after an opened stream was too slow and the socket has had no
                             room since; 0: none */
    admission_ticket ticket;
    struct http_body_share kept;
    struct kept_rules *kept_rules;   /* NULL: its rules are not kept ones */
    uint8_t address_size;            /* 0: unknown, so its address is not limited */
    char address[WIRE_ADDRESS_SIZE]; /* as use_prefix() returns it */
};

/* A stream on a WebSocket. */
struct websocket {
    struct stream stream; /* must be the first member */
    struct websocket_reader reader;
    struct buffer pong;           /* payload of the last ping without an answer */
    bool has_ping;                /* `pong` is set */
    bool was_closed;              /* the peer's close frame has arrived, or none will be read */
    uint64_t pinged_ms;           /* time of our last ping without an answer; 0: none */
    struct leaky_bucket messages; /* recent messages of the client; loop's clock */
    struct buffer unread;         /* received, to be read when `messages` has room */
    bool is_paused;               /* the socket is not read until then */
    struct dialect_websocket *dialect_state; /* for a dialect; NULL: not a dialect */
};

/* Neither the server nor the peer has begun to end it. */
static inline bool stream_goes_on(const struct stream *stream)
{
    return stream->stage == STREAM_LIVE && stream->end == STREAM_GOES_ON;
}

/* The token of all channels of the connection. */
static inline const struct token *stream_token(const struct stream *stream)
{
    return &stream->own.request.token;
}

/* Ends it with a message that contains the reason and the cursor of its own channel. The first
 * reason counts. */
static inline void stream_evict(struct stream *stream, enum disconnect_reason reason)
{
    channel_evict(&stream->own, reason);
}

/* Counts a bad token that came in a message. */
static inline void stream_count_bad_token(const struct streams *streams, enum token_fault fault)
{
    if (fault != TOKEN_OK)
        metric_add(streams->settings.metrics, metric_at(METRIC_TOKENS_REFUSED, fault - 1), 1);
}

/* NULL: the stream is not a WebSocket. */
static inline struct websocket *websocket_of(const struct stream *stream)
{
    return stream->own.request.format == FORMAT_WEBSOCKET ? (struct websocket *)stream : NULL;
}

/* --- stream_filters.c --- */

/* Checks whether the holder of `token` may have a filter that costs `added` bytes and replaces one
 * that costs `replaced` (0: none), which frees `freed` bytes. 0: `share` includes it; -EPROTO:
 * *refusal is set, and nothing has changed; -ENOMEM. */
struct filter_change {
    size_t added, replaced, freed;
};
int stream_filters_take(struct streams *streams, const struct token *token,
                        const struct filter_change *change, struct filter_share *share,
                        struct http_refusal *refusal);
/* To be called after that: the filters of the stream cost `bytes` now. */
void stream_filters_settle(struct streams *streams, const struct token *token, size_t bytes,
                           struct filter_share *share);

/* --- streams.c --- */

/* What is reserved for a permitted request before its stream begins. */
struct stream_opening {
    struct stream_request request;
    struct filter_share share;
    admission_ticket ticket;
};
/* Checks whether the stream of opening->request may begin now. 0: it counts as a stream; -EPROTO:
 * *refusal is set; -ENOMEM. On failure the request is freed. */
int stream_opening_check(struct streams *streams, const struct wire *wire,
                         struct stream_opening *opening, struct http_refusal *refusal);
/* Releases everything; the stream will not begin. */
void stream_opening_undo(struct streams *streams, struct stream_opening *opening);
/* Returns the stream, whose wire must be taken over then. NULL: *refusal is set, and everything is
 * released. */
struct stream *stream_opening_take(struct streams *streams, struct stream_opening *opening,
                                   struct http_refusal *refusal);
/* Sets *refusal. Returns -EPROTO. */
int stream_refuse_for_memory(struct http_refusal *refusal);

/* --- stream_checks.c --- */

struct stream_times stream_times_now(const struct streams *streams);
/* Checks whether this server can provide what the permitted request asks for, and completes the
 * request. Its filter replaces the one in *share. 0; -EPROTO: *refusal is set, and *share is
 * unchanged; -ENOMEM. */
int stream_check_request(struct streams *streams, struct stream_request *request,
                         struct filter_share *share, struct http_refusal *refusal);
/* The same for a stream that `path` opens on the connection of `stream`. 0: the caller frees
 * *ret_request. */
int stream_check_opened(const struct stream *stream, struct sl_slice path,
                        struct filter_share *share, struct stream_request *ret_request,
                        struct http_refusal *refusal);

/* The same for a stream that is asked for in a dialect. */
int stream_check_asked(const struct stream *stream, const struct dialect_stream *asked,
                       struct filter_share *share, struct stream_request *ret_request,
                       struct http_refusal *refusal);

/* --- stream_memory.c --- */

void stream_memory_init(struct streams *streams);
/* To be called when protocol->kept_bytes or held bytes of the stream have changed. If all streams
 * keep too much, `gives_way` is set for those that must free memory, and their turn_end runs. */
void stream_memory_count(struct stream *stream);
void stream_memory_forget(struct stream *stream);

/* --- stream_use.c --- */

/* After its wire has been taken over. */
void stream_use_begin(struct stream *stream);
/* Adds what was sent since the last call. A stream above the limit of the day is evicted. */
void stream_use_add(struct stream *stream);
/* It no longer counts as a stream of its subject. */
void stream_use_end(const struct stream *stream);
/* Calls stream_use_add() for a part of the streams, each time another one. */
void streams_add_use(struct streams *streams);
/* The time until the next day begins, plus a random delay. */
uint32_t stream_use_retry_ms(uint64_t random);
/* Counts a permitted stream whose request had a ticket or session, and adds the remaining limits to
 * `headers`. 0; -EPROTO: *refusal is 429. */
int stream_use_check(struct streams *streams, struct http_connection *connection,
                     const struct stream_request *request, struct buffer *headers,
                     struct http_refusal *refusal);
/* Checks the day's limit of replayed events, if the request needs any. 0; -EPROTO: *refusal is 429.
 */
int stream_use_check_replay(struct use_check *check, const struct stream_request *request,
                            struct http_refusal *refusal);
/* The same for a stream that is opened on the connection of `stream`. */
int stream_use_check_opened(const struct stream *stream, const struct stream_request *request,
                            struct http_refusal *refusal);
/* For checking a token in a message of `stream`: whether its address may send another bad one. The
 * headers are not used. */
struct use_check stream_use_check_of_message(const struct stream *stream, struct buffer *headers);
/* Counts a refusal by the check, if there was one. */
void stream_use_count_refused(const struct streams *streams, const struct use_check *check);
/* The limits of this gateway, given the number of streams at the other gateways. */
enum admission_verdict streams_limits_here(const struct streams *streams, const struct token *token,
                                           struct sl_slice address,
                                           struct admission_limits *ret_limits);

/* --- stream_say.c --- */

/* Sends complete frames, in order with everything else. If a client does not read them and too many
 * bytes are waiting, its connection is broken. */
void stream_say(struct stream *stream, struct sl_slice frames);
/* Sends one frame and frees it; in HTTP/1.0 without the chunk around it. The frame is compressed if
 * the stream is. */
void stream_say_frame(struct stream *stream, struct buffer *frame);
/* Tells the client how many posts it was not sent, if its dialect does so and the number has
 * changed. */
void stream_say_undelivered(struct stream *stream);

/* Ends the stream at the end of the turn. */
void stream_end(struct stream *stream, enum stream_end end);

/* --- stream.c --- */

extern const struct wire_callbacks stream_wire_callbacks;

/* After its wire has been taken over: sends the response, with `headers`, joins delivery, and
 * starts the keep-alive. If that fails, the stream ends with this turn. */
void stream_start(struct stream *stream, const struct http_head *head, struct sl_slice headers);

enum { STREAM_LEAVING_MS = 5000 }; /* for reading the last message */

/* Nothing follows what has been sent; when all is written, closing begins. */
void stream_leave(struct stream *stream, uint64_t within_ms);
/* Drops what it has not been sent. Delivery frees its rules with the last client that uses them. */
void stream_leave_delivery(struct stream *stream);
/* Sets the timer again, because something may be due earlier. */
void stream_arm(struct stream *stream);
/* Frees an opened stream. */
void stream_close_channel(struct channel *channel, const char *why);
/* The server is shutting down: evicts the stream when it has been sent everything; at once with
 * `hurries`. */
void stream_drain(struct stream *stream, bool hurries);

/* --- stream_http.c, stream_websocket.c --- */

extern const struct stream_protocol http_stream_protocol, websocket_protocol;

/* --- rule_entry.c --- */

/* Begins the stream of `request`, which must be permitted, with the kept rules of its subject. 0:
 * `request` and the connection are taken over; the stream begins, or is refused, when the rules
 * have been read. -EPROTO: *refusal is set; -ENOMEM. On failure the request is freed. */
int rule_entry_begin(struct streams *streams, struct http_connection *connection,
                     struct stream_request *request, const struct http_head *head,
                     streams_refused_in_fn refused, struct http_refusal *refusal);

/* --- named_filters.c --- */

/* Processes a message of a client of /v1/stream. */
void named_filters_message(struct websocket *websocket, struct sl_slice message);

/* Processes a message on any other WebSocket, where only a new token is accepted; anything else
 * ends the stream. */
void named_filters_token_message(struct websocket *websocket, struct sl_slice message);

/* --- dialect_websocket.c --- */

/* A WebSocket of a dialect has begun. `asked` is its first stream; `refused` (NULL: nothing) is why
 * that was refused. */
void dialect_websocket_begin(struct websocket *websocket, const struct dialect_stream *asked,
                             const struct http_refusal *refused);
void dialect_websocket_message(struct websocket *websocket, struct sl_slice text);
/* The close code and reason, after its eviction. */
struct dialect_close dialect_websocket_close(const struct websocket *websocket);

/* --- opened_streams.c --- */

enum { OPENED_STREAMS_MAX = 16 /* on a connection */ };

/* The number of opened streams and rules, which the token limits together. */
size_t opened_streams_and_rules(const struct stream *stream);
/* Opens the stream of `path` with this name, replacing the one that has it. *ret_channel has joined
 * delivery, and sends nothing before channel_resume(). 0; -EPROTO: *refusal is set, and nothing has
 * changed; -ENOMEM. */
int opened_streams_open(struct stream *stream, struct sl_slice name, struct sl_slice path,
                        struct channel **ret_channel, struct http_refusal *refusal);
/* The same in a dialect. *ret_channel is NULL if that stream is already open, and stays. */
int opened_streams_open_asked(struct stream *stream, const struct dialect_stream *asked,
                              struct channel **ret_channel, struct http_refusal *refusal);
void opened_streams_close(struct channel *channel);
/* NULL: no open stream has this name. */
struct channel *opened_streams_find(const struct stream *stream, struct sl_slice name);

/* --- hello.c --- */

/* Prints {"type":"hello",...}; `cursor` is where the stream begins. */
void hello_print(const struct channel *channel, const struct sl_cursor *cursor,
                 struct buffer *ret_json);

/* Appends a description of the request in words, of about `max_bytes` at most. */
void stream_describe(const struct stream_request *request, size_t max_bytes, struct buffer *words);

/* --- stream_audit.c --- */

/* Write lines of the audit log, if it is on: a channel was opened; it has ended. */
void stream_audit_open(const struct channel *channel);
void stream_audit_end(const struct channel *channel, const char *why, uint64_t ms);
/* "filter_add", with `filter` and its id; "filter_remove", with NULL. */
void stream_audit_filter(const struct channel *channel, const char *event, struct sl_slice id,
                         const struct sl_filter *filter);
/* A new token has replaced the old one. */
void stream_audit_renewed(const struct stream *stream);
/* A token in a message was refused: for `fault`, or, if that is TOKEN_OK, for the reason in
 * `refusal`. */
void stream_audit_token_refused(const struct stream *stream, enum token_fault fault,
                                const struct http_refusal *refusal);
/* A request in a message was refused; writes a line only for status 403. */
void stream_audit_refused(const struct stream *stream, const struct http_refusal *refusal);

/* --- survey.c --- */

/* Looks at all streams every second, for metrics and the status page. 0 or a negative errno. */
int survey_start(struct streams *streams);
void survey_stop(struct streams *streams);
