/* gateway/delivery/outbox.h - what all clients with the same filter and stream format are owed.
 *
 * An outbox is one ordered list of references to events; its clients are positions in it. A match
 * therefore costs one append however many clients share the filter. A flush writes everything new
 * to every client that keeps step, from one shared array of pieces; a client whose socket is full
 * stays behind at its own position and goes on alone when it is writable. An entry is let go when
 * the last client has passed it. What a client is owed is bounded: past `max_owed_bytes` the
 * owner is told to do something about it. Belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/slice.h"
#include "gateway/delivery/client.h"
#include "gateway/delivery/compressor.h"
#include "gateway/intake/event.h"

struct metrics;
struct reducer;

struct outbox_settings {
    enum stream_format format;
    bool unchunked; /* HTTP/1.0: the insides of the chunks */
    enum stream_encoding encoding;
    const struct dictionary *dictionary; /* of ENCODING_ZSTD_DICTIONARY */
    bool has_history;              /* if there is room for one: flushes refer to earlier ones */
    uint8_t window_bits;           /* of the history */
    struct compressor *compressor; /* NULL with ENCODING_NONE only */
    uint64_t fields;               /* the members that events have here; front/event_fields.h */
    struct reducer *reducer;       /* NULL with EVENT_FIELDS_FULL only */
    uint32_t gather_ms;
    struct sl_slice tail;  /* of all entries that come without one, as in outbox_append(); outlives
                              the outbox */
    size_t max_owed_bytes; /* a client; a reduced event counts with its own memory, too */
    /* What becomes of a client that is owed more: it is on none of the lists any more, and what it
     * is owed can still be looked at. It may be made to leave. */
    void (*overrun)(struct client *client);
    /* Where it is noted, send by send, how long the oldest event in it has taken since it was read;
     * NULL: nowhere. */
    struct metrics *metrics;
};

struct outbox_counts {
    uint64_t events; /* deliveries: events times clients */
    uint64_t bytes;
    uint64_t sends; /* system calls */
    /* Before compression, and as sent; of what is not compressed neither. */
    uint64_t before_bytes[ENCODING_COUNT], after_bytes[ENCODING_COUNT];
};

struct outbox_entry;

struct outbox {
    struct outbox_settings settings;
    struct outbox_counts *counts; /* the owner's, added to by every send */
    struct outbox_entry *entries; /* a ring; position p is at p & (capacity - 1) */
    uint64_t first, flushed,
        next;                /* positions: oldest kept, first unflushed, one past the newest */
    uint64_t capacity;       /* a power of two, or 0 */
    uint64_t bytes;          /* of all entries ever appended */
    uint32_t crc;            /* CRC-32 of them, with gzip */
    uint64_t undelivered;    /* posts that a dialect has left out */
    uint64_t keepalives_end; /* position behind the newest keep-alive; 0: there was none */
    struct history history;  /* of those in step */
    struct list in_step, fresh, joining, behind;
    size_t members;     /* clients that joined and have not left */
    bool oldest_moved;  /* the client furthest behind may have moved on */
    bool is_incomplete; /* what is owed after `complete_until` has not been appended yet */
    struct sl_cursor complete_until;
    uint64_t first_unflushed_ms; /* when the entry at `flushed` was appended */
    uint64_t last_flush_ms;      /* 0: never */
    struct list_node node;       /* the owner's: waiting to be flushed */
    uint64_t due_ms;             /* the owner's: when */
};

void outbox_init(struct outbox *outbox, const struct outbox_settings *settings,
                 struct outbox_counts *counts);
/* No client is left in it. */
void outbox_done(struct outbox *outbox);

/* From the next append on, the client is owed what comes. */
void outbox_join(struct outbox *outbox, struct client *client);
void outbox_leave(struct client *client); /* a client in no outbox is fine */
/* Nothing is sent to the client any more; it stays a member until it leaves. */
void outbox_set_aside(struct client *client);

/* Inside a body of gzip the client has been sent something of its own, whose sum is `said`. One in
 * no outbox is fine. After outbox_leave() the sum of all that it was sent is client->sum. */
void outbox_client_said(struct client *client, const struct gzip_sum *said);

/* The number of posts that the client was not sent because its dialect left them out. */
uint64_t outbox_client_undelivered(struct client *client);

bool outbox_is_deserted(const struct outbox *outbox);
/* Has the client been sent all that it is owed? */
bool outbox_client_is_served(const struct client *client);
/* Where the client would go on: before the first logged event, or gap, that it is owed, or at
 * `head`, behind all that has passed, when it has everything. Not for a client that is broken or
 * set aside: what it was owed may be gone. */
struct sl_cursor outbox_client_cursor(const struct client *client, const struct sl_cursor *head);

struct client_owed {
    uint64_t events, bytes;
    uint64_t waited_ms; /* how long ago the first of them arrived; 0: nothing is owed */
};

/* What has not been handed to the client's socket; nothing for one that is broken or set aside.
 * `now_ms`: clock_monotonic_ms. */
void outbox_client_owed(const struct client *client, uint64_t now_ms, struct client_owed *ret_owed);

/* Visits the clients that are owed something, or were when their sockets became full. false: there
 * are none, and will not be before the next append. */
bool outbox_visit_owed(const struct outbox *outbox, client_visit_fn visit, void *owner);

/* Visits those that are not catching up, broken or set aside. It may make the client at hand leave.
 */
void outbox_visit_all(const struct outbox *outbox,
                      void (*visit)(void *owner, struct client *client), void *owner);

/* Which events the clients are owed after `cursor` will turn out later: until outbox_set_complete()
 * nobody counts as served. */
void outbox_set_incomplete(struct outbox *outbox, const struct sl_cursor *cursor);
void outbox_set_complete(struct outbox *outbox);

/* Owes `event` to all clients; takes a reference. `head`: of who has all before it. `tail` (may
 * be absent, and is if the outbox has one): what goes before the closing brace, on WebSockets;
 * copied. 0; -ENOMEM: nobody is owed it, and the caller evicts the clients. */
int outbox_append(struct outbox *outbox, struct event *event, const struct sl_cursor *head,
                  struct sl_slice tail, uint64_t now_ms);

/* Bytes appended since the last flush; reduced events count with their own memory, too. */
size_t outbox_gathered_bytes(const struct outbox *outbox);

/* Sends what is owed to every client that can take it. */
void outbox_flush(struct outbox *outbox, uint64_t now_ms);

/* All clients share a history inside bodies of gzip, so keep-alives have to be shared, too. */
bool outbox_shares_gzip(const struct outbox *outbox);
/* Sends an event of the kind EVENT_KEEPALIVE to every client that can take it. Nothing waits for a
 * flush. A history goes on with it, and is not begun anew, nor counts as used. Without memory
 * nobody is sent it. */
void outbox_keep_alive(struct outbox *outbox, struct event *event, const struct sl_cursor *head,
                       uint64_t now_ms);

/* The client's socket has room again and nothing is held. */
void outbox_client_writable(struct client *client, uint64_t now_ms);

/* The event at this position that the client is owed; NULL: that was all. Begin with the
 * client's `at`. */
const struct event *outbox_owed(const struct client *client, uint64_t position);
/* Of that event, with which outbox_append() owes it elsewhere: where the client stands before it,
 * and its own tail, valid as long as it is owed. */
void outbox_owed_with(const struct client *client, uint64_t position, struct sl_cursor *ret_head,
                      struct sl_slice *ret_tail);

/* All those behind have overrun, and what only they are owed is let go of. */
void outbox_overrun_behind(struct outbox *outbox);
void outbox_evict_all(struct outbox *outbox, enum disconnect_reason reason);
