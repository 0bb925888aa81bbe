/* gateway/streams/stream.h - inside streams: one stream, from the answer that began it on.
 *
 * It goes through four stages: live; leaving, when the message that says why it ends is sent or
 * held; closing, when all is sent and the peer is waited for; ended. Nothing closes a stream from
 * inside a walk over clients: channel_evict() and stream_end() note it, and the end of the turn
 * does it. */
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
    struct list list; /* of all streams */
    struct list late_answers;
    struct list connection_requests; /* connections.c */
    struct list inquiries;           /* dialect_inquiry.c */
    struct filter_budget *budget;
    struct websocket_inflater *inflater; /* of what clients compress */
    struct http_bodies kept;             /* see stream_memory.c */
    struct hash_key subject_key;
    struct stream **by_ticket; /* by their index in the admission list */
    uv_poll_t *replaced_watch; /* of our streams that make room for others */
    uv_timer_t *survey_timer;
    bool is_ready;
    bool is_draining;
    bool has_successor;          /* while draining */
    unsigned tickets_waited_for; /* requests that wait for Redis to say what theirs is good for */
    struct list rule_requests;   /* rule_request.c */
    struct list rule_waits;      /* kept_rules.h */
    struct list kept_readings;   /* kept_reading.c */
    struct list kept_streams;    /* of struct kept_rules */
    uint32_t kept_part;          /* of the streams, which look next whether their rules are old */
    size_t use_part;             /* of the streams, whose use is added next */
    uint64_t random;             /* state of the spread of retry_ms, and of ids */
    struct hash_key id_key;
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
    /* The peer has sent too much to be read at once: until it is read on. UINT64_MAX: it has not. */
    uint64_t (*pause_left_ms)(const struct stream *stream);
    /* That is over. Evicts the stream if what it reads does. */
    void (*read_on)(struct stream *stream);
    /* Memory of what the peer has begun to say and not ended. */
    size_t (*kept_bytes)(const struct stream *stream);
    /* Forgets that; nothing of the peer is read any more. */
    void (*stop_reading)(struct stream *stream);
    void (*done)(struct stream *stream);
};

/* Of what is sent on it, its own channel is what its request asked for. */
struct stream {
    struct channel own;
    struct list channels; /* this and those that were opened; the first is the next to be sent to */
    const struct stream_protocol *protocol;
    struct wire wire;
    struct streams *streams;
    struct list_node node; /* in streams->list */
    struct turn_task turn_end;
    uv_timer_t timer;                       /* keep-alive, token, leaving, closing */
    uint8_t stage;                          /* enum stream_stage */
    uint8_t end;                            /* enum stream_end */
    bool gives_way;                         /* others need the memory */
    bool was_warned;                        /* that its token ends */
    char connection_id[CONNECTION_ID_SIZE]; /* for its owner, hello and the log */
    uint64_t deadline_ms;                   /* of leaving and closing; clock of the loop */
    uint64_t stuck_ms; /* the same, if one that was opened was too slow for a socket that has had
                          no room since; 0: none was */
    admission_ticket ticket;
    struct http_body_share kept;
    struct kept_rules *kept_rules;   /* that it has; NULL: its rules are its own */
    uint8_t address_size;            /* of its client, as it counts; 0: it does not */
    char address[WIRE_ADDRESS_SIZE]; /* by use_prefix() */
};

/* A stream on a WebSocket. */
struct websocket {
    struct stream stream; /* first */
    struct websocket_reader reader;
    struct buffer pong;           /* payload of the last ping that was not answered */
    bool has_ping;                /* `pong` is one */
    bool was_closed;              /* the peer's close frame has come, or none will be read */
    uint64_t pinged_ms;           /* last ping of ours without an answer; 0: none */
    struct leaky_bucket messages; /* that the client has sent lately; clock of the loop */
    struct buffer unread;         /* received, but to be read when `messages` has room */
    bool is_paused;               /* the socket is not read until then */
    struct dialect_talk *talk;    /* with a client of a dialect; NULL: it is one of ours */
};

/* Neither its own doing nor its peer's has begun to end it. */
static inline bool stream_goes_on(const struct stream *stream)
{
    return stream->stage == STREAM_LIVE && stream->end == STREAM_GOES_ON;
}

/* By which it is here: its own and all that is opened on it. */
static inline const struct token *stream_token(const struct stream *stream)
{
    return &stream->own.request.token;
}

/* Ends it with a message that says why, and where its own channel is now. The first reason wins. */
static inline void stream_evict(struct stream *stream, enum disconnect_reason reason)
{
    channel_evict(&stream->own, reason);
}

/* A token that was shown by a message. */
static inline void stream_count_bad_token(const struct streams *streams, enum token_fault fault)
{
    if (fault != TOKEN_OK)
        metric_add(streams->settings.metrics, metric_at(METRIC_TOKENS_REFUSED, fault - 1), 1);
}

/* NULL: the stream is not on a WebSocket. */
static inline struct websocket *websocket_of(const struct stream *stream)
{
    return stream->own.request.format == FORMAT_WEBSOCKET ? (struct websocket *)stream : NULL;
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

/* --- streams.c --- */

/* What a permitted request has got of this server, before its stream begins. */
struct stream_opening {
    struct stream_request request;
    struct filter_share share;
    admission_ticket ticket;
};
/* May the stream of opening->request, on this connection, begin now? Then it counts as one that
 * there is. 0; -EPROTO: *refusal; -ENOMEM: then the request is done with, too. */
int stream_opening_check(struct streams *streams, const struct wire *wire,
                         struct stream_opening *opening, struct http_refusal *refusal);
/* It will not begin. */
void stream_opening_undo(struct streams *streams, struct stream_opening *opening);
/* The stream, whose wire is to be taken over. NULL: *refusal says why, and it is undone. */
struct stream *stream_opening_take(struct streams *streams, struct stream_opening *opening,
                                   struct http_refusal *refusal);
/* Fills *refusal. Returns -EPROTO. */
int stream_refuse_for_memory(struct http_refusal *refusal);

/* --- stream_checks.c --- */

struct stream_times stream_times_now(const struct streams *streams);
/* Has this server what the request, which is permitted, asks for? Completes it, and puts its filter
 * in the place of what *share was for. 0; -EPROTO: *refusal, and *share is what it was; -ENOMEM. */
int stream_check_request(struct streams *streams, struct stream_request *request,
                         struct filter_share *share, struct http_refusal *refusal);
/* The same for what `path` asks for, on the connection of `stream`; 0: *ret_request is the
 * caller's. */
int stream_check_opened(const struct stream *stream, struct sl_slice path,
                        struct filter_share *share, struct stream_request *ret_request,
                        struct http_refusal *refusal);

/* The same for what is asked for in a dialect. */
int stream_check_asked(const struct stream *stream, const struct dialect_stream *asked,
                       struct filter_share *share, struct stream_request *ret_request,
                       struct http_refusal *refusal);

/* --- stream_memory.c --- */

void stream_memory_init(struct streams *streams);
/* What is kept for the stream has become more or less. Where that is too much for all, those who
 * must give way have `gives_way`, and their turn_end runs. */
void stream_memory_count(struct stream *stream);
void stream_memory_forget(struct stream *stream);

/* --- stream_use.c --- */

/* Its wire has been taken over. */
void stream_use_begin(struct stream *stream);
/* What it has sent since it was added last. Who has had too much of it today is evicted. */
void stream_use_add(struct stream *stream);
/* It does not count as one of its subject's any more. */
void stream_use_end(const struct stream *stream);
/* Some of them, each time others. */
void streams_add_use(struct streams *streams);
/* Until the next day begins. */
uint32_t stream_use_retry_ms(uint64_t random);
/* Counts a stream that its token permits, and that came without showing it, and says in `headers`
 * what is left. 0; -EPROTO: *refusal says 429. */
int stream_use_check(struct streams *streams, struct http_connection *connection,
                     const struct stream_request *request, struct buffer *headers,
                     struct http_refusal *refusal);
/* Is it told what has passed? Then within the day's limit. The same. */
int stream_use_check_replay(struct use_check *check, const struct stream_request *request,
                            struct http_refusal *refusal);
/* The same for one that is opened on the connection of `stream`. */
int stream_use_check_opened(const struct stream *stream, const struct stream_request *request,
                            struct http_refusal *refusal);
/* For a token that a message of `stream` brings: may its address show one more? `headers` are for
 * nobody. */
struct use_check stream_use_check_of_message(const struct stream *stream, struct buffer *headers);
/* Counts what the check has refused, if anything. */
void stream_use_count_refused(const struct streams *streams, const struct use_check *check);
/* How many streams there may be at this gateway, by how many there are at others. */
enum admission_verdict streams_limits_here(const struct streams *streams, const struct token *token,
                                           struct sl_slice address,
                                           struct admission_limits *ret_limits);

/* --- stream_say.c --- */

/* Bytes of ours, complete frames, in order with everything else. A client that does not read them
 * while more and more pile up is broken. */
void stream_say(struct stream *stream, struct sl_slice frames);
/* The same with one frame, which is done with then; on HTTP/1.0 what is inside the chunk. */
void stream_say_frame(struct stream *stream, struct buffer *frame);

/* Ends it, at the end of the turn. */
void stream_end(struct stream *stream, enum stream_end end);

/* --- stream.c --- */

extern const struct wire_callbacks stream_wire_callbacks;

/* Its wire has been taken over: sends the answer to the request, with `headers` in it, joins
 * delivery, starts the keep-alive. What fails ends the stream with this turn. */
void stream_start(struct stream *stream, const struct http_head *head, struct sl_slice headers);

enum { STREAM_LEAVING_MS = 5000 }; /* to read what was said last */

/* The last bytes are said: once they are sent, the closing begins. */
void stream_leave(struct stream *stream, uint64_t within_ms);
/* Nothing is owed to it any more. Delivery's rules go with their last client. */
void stream_leave_delivery(struct stream *stream);
/* Something has become due sooner than it was. */
void stream_arm(struct stream *stream);
/* What has been opened is no more. */
void stream_close_channel(struct channel *channel, const char *why);
/* The server drains: evicts it when it has been sent what it is owed, or at once when it hurries.
 */
void stream_drain(struct stream *stream, bool hurries);

/* --- stream_http.c, stream_websocket.c --- */

extern const struct stream_protocol http_stream_protocol, websocket_protocol;

/* --- rule_entry.c --- */

/* The stream of `request`, which is permitted, has the rules that its subject keeps: it begins, or
 * is refused, when they are there. 0: `request` and the connection are taken over; -EPROTO:
 * *refusal; -ENOMEM: the request is done with, as with -EPROTO. */
int rule_entry_begin(struct streams *streams, struct http_connection *connection,
                     struct stream_request *request, const struct http_head *head,
                     streams_refused_in_fn refused, struct http_refusal *refusal);

/* --- named_filters.c --- */

/* A message of a client of /v1/stream. */
void named_filters_message(struct websocket *websocket, struct sl_slice message);

/* The only message that any other WebSocket listens to is that of another token; what is said
 * besides ends it. */
void named_filters_token_message(struct websocket *websocket, struct sl_slice message);

/* --- dialect_talk.c --- */

/* A WebSocket of a dialect has begun, which asked for `asked`; or for what is refused. */
void dialect_talk_begin(struct websocket *websocket, const struct dialect_stream *asked,
                        const struct http_refusal *refused);
void dialect_talk_message(struct websocket *websocket, struct sl_slice text);
/* How it is closed, once it is evicted. */
struct dialect_close dialect_talk_close(const struct websocket *websocket);

/* --- opened_streams.c --- */

enum { OPENED_STREAMS_MAX = 16 /* of a connection */ };

/* Filters and opened streams, which its token permits so many of together. */
size_t opened_streams_and_rules(const struct stream *stream);
/* `path` opens a stream by this name, in the place of the one that has it. *ret_channel has joined
 * delivery, and is sent nothing before channel_resume(). 0; -EPROTO: *refusal, nothing has changed;
 * -ENOMEM. */
int opened_streams_open(struct stream *stream, struct sl_slice name, struct sl_slice path,
                        struct channel **ret_channel, struct http_refusal *refusal);
/* The same in a dialect. *ret_channel NULL: there is one already, which stays. */
int opened_streams_open_asked(struct stream *stream, const struct dialect_stream *asked,
                              struct channel **ret_channel, struct http_refusal *refusal);
void opened_streams_close(struct channel *channel);
/* NULL: none has this name. */
struct channel *opened_streams_find(const struct stream *stream, struct sl_slice name);

/* --- hello.c --- */

/* {"type":"hello",...}; `cursor` is where the stream begins. */
void hello_print(const struct channel *channel, const struct sl_cursor *cursor,
                 struct buffer *ret_json);

/* What has been asked for, in words, of about `max_bytes` at most. */
void stream_describe(const struct stream_request *request, size_t max_bytes, struct buffer *words);

/* --- stream_audit.c --- */

/* Lines of the auditor's file, if there is one: a channel is there; it has ended. */
void stream_audit_open(const struct channel *channel);
void stream_audit_end(const struct channel *channel, const char *why, uint64_t ms);
/* "filter_add", of `filter` by this id; "filter_remove", with NULL. */
void stream_audit_filter(const struct channel *channel, const char *event, struct sl_slice id,
                         const struct sl_filter *filter);
/* It has another token now. */
void stream_audit_renewed(const struct stream *stream);
/* The one that a message brought is not taken: because of a fault of its own, or, with TOKEN_OK, as
 * the refusal says. */
void stream_audit_token_refused(const struct stream *stream, enum token_fault fault,
                                const struct http_refusal *refusal);
/* What a message asked for is refused; one line if that is 403, else none. */
void stream_audit_refused(const struct stream *stream, const struct http_refusal *refusal);

/* --- survey.c --- */

/* Looks at all streams now and then, for metrics and status. 0 or a negative errno. */
int survey_start(struct streams *streams);
void survey_stop(struct streams *streams);
