/* gateway/delivery/outbox_parts.h - internal to outbox: what its files share.
 *
 *     outbox.c           members, and sending to them
 *     outbox_entries.c   the entries, and sums over them
 *     batch.c            converts entries to bytes
 *
 * Each file calls only those below it. */
#pragma once

#include <sys/uio.h>

#include "gateway/delivery/frame.h"
#include "gateway/delivery/outbox.h"
#include "gateway/delivery/zstd_writer.h"

enum { BATCH_MAX_PIECES = 256, ENTRY_MAX_PIECES = 4 };

/* The parts of a frame that differ between clients: its header and what precedes the last brace. */
struct wrapping {
    unsigned char head[FRAME_WEBSOCKET_HEAD_SIZE + ZSTD_HEAD_MAX];
    uint8_t head_size;
    struct sl_slice open; /* the event's open block, followed by the tail; without data: the event
                             is sent uncompressed between head and tail */
    struct sl_slice end;  /* after an uncompressed event: the brace, and the end of the frame */
    struct sl_slice said; /* the uncompressed tail */
    uint32_t tail_size;
    char tail[];
};

struct outbox_entry {
    struct event *event;
    struct wrapping *wrapping; /* NULL: the shared frame */
    uint32_t size;       /* bytes to be sent; for compressed data: of the uncompressed content */
    uint32_t crc_before; /* for gzip: of all entries before this one */
    uint64_t cursor;     /* of a client that has everything before a logged event or gap */
    struct sl_cursor *compound;  /* the same if it is not a plain cursor; else NULL */
    uint64_t bytes_before;       /* of all entries before this one */
    uint64_t undelivered_before; /* outbox->undelivered before this one */
};

static inline struct outbox_entry *entry_at(const struct outbox *outbox, uint64_t position)
{
    assert(position >= outbox->first && position < outbox->next);
    return &outbox->entries[position & (outbox->capacity - 1)];
}

static inline bool outbox_is_gzip(const struct outbox *outbox)
{
    return outbox->settings.encoding == ENCODING_DEFLATE &&
           outbox->settings.format != FORMAT_WEBSOCKET;
}

/* Sums over all entries before `position`. */
uint64_t entries_bytes_before(const struct outbox *outbox, uint64_t position);
uint64_t entries_undelivered_before(const struct outbox *outbox, uint64_t position);
struct gzip_sum entries_sum_before(const struct outbox *outbox, uint64_t position);
/* The number of entries that are not keep-alives. */
uint64_t entries_events_between(const struct outbox *outbox, uint64_t from, uint64_t to);
/* The memory needed to owe the entries from `position` on. A reduced event may be small, and not be
 * owed to anybody else. */
uint64_t entries_cost_from(const struct outbox *outbox, uint64_t position);

/* Frees the entries before `oldest`, and the ring if a burst has made it large. */
void entries_release(struct outbox *outbox, uint64_t oldest);
/* Frees all entries. */
void entries_free(struct outbox *outbox);

/* Entries from `from` on as frames; a client gets a frame completely or not at all. Valid until the
 * next batch of any outbox of the worker, or until an entry is freed. */
struct batch {
    struct iovec pieces[BATCH_MAX_PIECES];
    uint32_t frames[BATCH_MAX_PIECES]; /* bytes of each */
    int count, frame_count;
    bool is_one_frame; /* for all entries; else one for each */
    uint64_t from, to; /* positions */
    size_t bytes;
    uint64_t received_us; /* of the oldest event */
    bool is_timed;        /* there is one, not only keep-alives */
    uint64_t untimed;     /* sends that accepted part of it, since time_sends() */
};

/* Fills in some of the entries before `to`, at least one; with a history, or together, all of an
 * HTTP stream. 0; -ENOMEM. */
typedef int (*batch_fill_fn)(struct outbox *outbox, uint64_t from, uint64_t to,
                             struct batch *batch);
/* Each entry separately, for any client. */
int batch_fill(struct outbox *outbox, uint64_t from, uint64_t to, struct batch *batch);
/* For clients that have everything in the outbox's history. On failure it must be reset. */
int batch_fill_with_history(struct outbox *outbox, uint64_t from, uint64_t to, struct batch *batch);
/* For any client, with one frame for all entries if the format permits it. */
int batch_fill_together(struct outbox *outbox, uint64_t from, uint64_t to, struct batch *batch);

/* `sent` bytes, but not all, have been sent. Returns the position of the frame with the next byte,
 * and the rest of that frame if a part of it was sent, or the byte is between two frames. */
uint64_t batch_rest(const struct batch *batch, size_t sent,
                    struct iovec ret_pieces[static ENTRY_MAX_PIECES], int *ret_count);
/* The position after the frame at `position`. */
static inline uint64_t batch_behind(const struct batch *batch, uint64_t position)
{
    return batch->is_one_frame ? batch->to : position + 1;
}

/* The wrapping of an event for one client, with `tail` before its closing brace; compressed if the
 * outbox is, and that makes it smaller. NULL: out of memory. */
struct wrapping *batch_wrap(const struct outbox *outbox, struct event *event, struct sl_slice tail);
