/* gateway/delivery/outbox_parts.h - inside outbox: what its files share.
 *
 *     outbox.c       who is a member, what is owed, who is sent what
 *     batch.c        entries as the bytes that are sent
 *
 * The first calls the second. */
#pragma once

#include <sys/uio.h>

#include "gateway/delivery/frame.h"
#include "gateway/delivery/outbox.h"
#include "gateway/delivery/zstd_writer.h"

enum { BATCH_MAX_PIECES = 256, ENTRY_MAX_PIECES = 4 };

/* The parts of a frame that are one client's own: its header and what precedes the last brace. */
struct wrapping {
    unsigned char head[FRAME_WEBSOCKET_HEAD_SIZE + ZSTD_HEAD_MAX];
    uint8_t head_size;
    struct sl_slice open; /* the event's open block, and the tail ends the message; without data:
                             between head and tail is the event as it is */
    struct sl_slice end; /* behind that, of an event as it is: the brace, and what ends the frame */
    struct sl_slice said; /* the tail as it came, without what a compressed one has around it */
    uint32_t tail_size;
    char tail[];
};

struct outbox_entry {
    struct event *event;
    struct wrapping *wrapping; /* NULL: the shared frame as it is */
    uint32_t size;             /* bytes on the wire; of what is compressed: of what is in the frame,
                                  before that */
    uint32_t crc_before;       /* with gzip: of all entries before this one */
    uint64_t cursor;           /* of a client that has everything before a logged event, or a gap */
    struct sl_cursor *compound;  /* the same, when it is not plain; else NULL */
    uint64_t bytes_before;       /* of all entries before this one */
    uint64_t undelivered_before; /* outbox->undelivered before this one */
};

static inline struct outbox_entry *entry_at(const struct outbox *outbox, uint64_t position)
{
    assert(position >= outbox->first && position < outbox->next);
    return &outbox->entries[position & (outbox->capacity - 1)];
}

/* Entries from `from` on as frames, of which a client gets all or none. They are valid until the
 * next batch of any outbox of the worker, and until an entry is let go of. */
struct batch {
    struct iovec pieces[BATCH_MAX_PIECES];
    uint32_t frames[BATCH_MAX_PIECES]; /* bytes of each */
    int count, frame_count;
    bool is_one_frame; /* of all entries; else each is one */
    uint64_t from, to; /* positions */
    size_t bytes;
    uint64_t received_us; /* the oldest event */
    bool is_timed;        /* it is one, and not a keep-alive */
    uint64_t untimed;     /* sends that took something of it, since time_sends() */
};

/* Some of the entries before `to`, at least one, or (history, together) all of an HTTP stream. 0;
 * -ENOMEM. */
typedef int (*batch_fill_fn)(struct outbox *outbox, uint64_t from, uint64_t to,
                             struct batch *batch);
/* Each by itself: for anybody. */
int batch_fill(struct outbox *outbox, uint64_t from, uint64_t to, struct batch *batch);
/* For who has all that the outbox's history has said. On failure, it has to be reset. */
int batch_fill_with_history(struct outbox *outbox, uint64_t from, uint64_t to, struct batch *batch);
/* For anybody, and with one frame for all entries where the format permits it. */
int batch_fill_together(struct outbox *outbox, uint64_t from, uint64_t to, struct batch *batch);

/* `sent` bytes, fewer than all, have been sent. Returns the position of the frame that the next
 * byte belongs to, and if it has been cut into, or stands between two, what is left of it. */
uint64_t batch_rest(const struct batch *batch, size_t sent,
                    struct iovec ret_pieces[static ENTRY_MAX_PIECES], int *ret_count);
/* The position behind the frame at `position`. */
static inline uint64_t batch_behind(const struct batch *batch, uint64_t position)
{
    return batch->is_one_frame ? batch->to : position + 1;
}

/* The wrapping of an event for one client, with `tail` before its closing brace, compressed where
 * that pays and the outbox is. NULL: out of memory. */
struct wrapping *batch_wrap(const struct outbox *outbox, struct event *event, struct sl_slice tail);
