/* gateway/delivery/outbox.h - what all clients with the same filter and stream format are owed.
 *
 * An outbox is an ordered list of references to events, in which each client has a position. So a
 * match costs one append, however many clients share the filter. A flush writes everything new to
 * all clients that are in step, from one shared array of pieces. A client whose socket is full
 * stays behind at its own position, and continues on its own when the socket is writable. An entry
 * is freed when the last client has passed it. If a client is owed more than `max_owed_bytes`, the
 * owner is called. Belongs to one thread. */
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
    bool unchunked; /* HTTP/1.0: only the content of chunks */
    enum stream_encoding encoding;
    const struct dictionary *dictionary; /* for ENCODING_ZSTD_DICTIONARY */
    bool has_history;              /* if there is room for one: flushes refer to earlier data */
    uint8_t window_bits;           /* of the history */
    struct compressor *compressor; /* may be NULL for ENCODING_NONE */
    uint64_t fields;               /* members of events to send; front/event_fields.h */
    struct reducer *reducer;       /* may be NULL for EVENT_FIELDS_FULL */
    uint32_t gather_ms;
    struct sl_slice tail;  /* for all entries without a tail of their own, see outbox_append();
                              outlives the outbox */
    size_t max_owed_bytes; /* for each client; reduced events also count with their own memory */
    /* Called for a client that is owed more. It is in none of the lists any more, but what it is
     * owed can still be read. It may be removed in the call. */
    void (*overrun)(struct client *client);
    /* For each send, records how long ago its oldest event was read; may be NULL. */
    struct metrics *metrics;
};

struct outbox_counts {
    uint64_t events; /* deliveries: events times clients */
    uint64_t bytes;
    uint64_t sends; /* system calls */
    /* Of compressed data: bytes before compression, and as sent. */
    uint64_t before_bytes[ENCODING_COUNT], after_bytes[ENCODING_COUNT];
};

struct outbox_entry;

struct outbox {
    struct outbox_settings settings;
    struct outbox_counts *counts;  /* the owner's; increased by every send */
    struct outbox_entry *entries;  /* a ring; position p is at p & (capacity - 1) */
    uint64_t first, flushed, next; /* positions: oldest entry, first unflushed, after the newest */
    uint64_t capacity;             /* a power of two, or 0 */
    uint64_t bytes;                /* of all entries ever appended */
    uint32_t crc;                  /* CRC-32 of these bytes, for gzip */
    uint64_t undelivered;          /* posts that the dialect has left out */
    uint64_t keepalives_end;       /* position after the newest keep-alive; 0: none */
    struct history history;        /* of clients in step */
    struct list in_step, fresh, joining, behind;
    size_t members;     /* clients that have joined and not left */
    bool oldest_moved;  /* the client furthest behind may have advanced */
    bool is_incomplete; /* entries after `complete_until` may be missing yet */
    struct sl_cursor complete_until;
    uint64_t first_unflushed_ms; /* when the entry at `flushed` was appended */
    uint64_t last_flush_ms;      /* 0: never */
    struct list_node node;       /* for the owner: waits to be flushed */
    uint64_t due_ms;             /* for the owner: when */
};

void outbox_init(struct outbox *outbox, const struct outbox_settings *settings,
                 struct outbox_counts *counts);
/* It must have no clients. */
void outbox_done(struct outbox *outbox);

/* The client is owed everything that is appended from now on. */
void outbox_join(struct outbox *outbox, struct client *client);
void outbox_leave(struct client *client); /* does nothing for a client in no outbox */
/* Sends nothing to the client any more; it remains a member until it leaves. */
void outbox_set_aside(struct client *client);

/* In a gzip body the client has been sent something of its own, with the checksum `said`. Does
 * nothing for a client in no outbox. After outbox_leave(), client->sum is the checksum of
 * everything that it was sent. */
void outbox_client_sent_own(struct client *client, const struct gzip_sum *said);

/* The number of posts that the client was not sent because its dialect left them out. */
uint64_t outbox_client_undelivered(struct client *client);

bool outbox_has_clients(const struct outbox *outbox);
/* Whether the client has been sent everything that it is owed. */
bool outbox_client_is_served(const struct client *client);
/* The cursor with which the client would resume: before the first logged event, or gap, that it is
 * owed, or `head` if it has everything. Not for a broken client, or one that was set aside, because
 * its entries may have been freed. */
struct sl_cursor outbox_client_cursor(const struct client *client, const struct sl_cursor *head);

struct client_owed {
    uint64_t events, bytes;
    uint64_t waited_ms; /* how long ago the first of them arrived; 0: nothing is owed */
};

/* What the client's socket has not accepted; nothing for a broken client, or one that was set
 * aside. `now_ms`: clock_monotonic_ms(). */
void outbox_client_owed(const struct client *client, uint64_t now_ms, struct client_owed *ret_owed);

/* Visits the clients that are owed something, or were when their sockets became full. false: there
 * are none, and will be none before the next append. */
bool outbox_visit_owed(const struct outbox *outbox, client_visit_fn visit, void *owner);

/* Visits the clients that are not catching up, broken or set aside. `visit` may remove the current
 * client. */
void outbox_visit_all(const struct outbox *outbox, client_visit_fn visit, void *owner);

/* It will be known later which events clients are owed after `cursor`: until outbox_set_complete()
 * no client counts as having been sent everything. */
void outbox_set_incomplete(struct outbox *outbox, const struct sl_cursor *cursor);
void outbox_set_complete(struct outbox *outbox);

/* Owes `event` to all clients; takes a reference. `head`: the cursor of a client that has
 * everything before it. `tail` (may be absent; must be if the outbox has one): inserted before the
 * closing brace, on WebSockets; copied. 0; -ENOMEM: nobody is owed it, and the caller must evict
 * the clients. */
int outbox_append(struct outbox *outbox, struct event *event, const struct sl_cursor *head,
                  struct sl_slice tail, uint64_t now_ms);

/* Bytes appended since the last flush; reduced events also count with their own memory. */
size_t outbox_gathered_bytes(const struct outbox *outbox);

/* Sends what is owed to every client whose socket has room. */
void outbox_flush(struct outbox *outbox, uint64_t now_ms);

/* Whether all clients share a history in gzip bodies, so that keep-alives must be shared, too. */
bool outbox_shares_gzip(const struct outbox *outbox);
/* Sends an event of the kind EVENT_KEEPALIVE to every client whose socket has room, without waiting
 * for a flush. It is added to the history, without resetting it or counting as use. Out of memory:
 * nobody is sent it. */
void outbox_keep_alive(struct outbox *outbox, struct event *event, const struct sl_cursor *head,
                       uint64_t now_ms);

/* The client's socket has room again, and no bytes are held. */
void outbox_client_writable(struct client *client, uint64_t now_ms);

/* The event at this position that the client is owed; NULL: none. Begin with client->at. */
const struct event *outbox_owed(const struct client *client, uint64_t position);
/* The arguments with which outbox_append() can owe that event in another outbox: the client's
 * cursor before it, and its own tail, valid as long as it is owed. */
void outbox_owed_with(const struct client *client, uint64_t position, struct sl_cursor *ret_head,
                      struct sl_slice *ret_tail);

/* Calls `overrun` for all clients that are behind, and frees what only they are owed. */
void outbox_overrun_behind(struct outbox *outbox);
void outbox_evict_all(struct outbox *outbox, enum disconnect_reason reason);
