/* gateway/delivery/compressor.h - deflate and zstd for the streams of a worker, made once and
 * shared.
 *
 * Two kinds of blocks, each ends at a byte:
 *
 * *Independent* ones refer to nothing before them, so that any decoder takes them at any time: with
 * deflate a block, with zstd a frame. One is made of an event in a stream format when it is first
 * needed, and kept with the event.
 *
 * Those of a *history*, with deflate only, refer to what the history has said since its last reset,
 * and are for clients that have had all of that and nothing else. A history costs some 270 kB, so
 * they are bounded: when there is no room, the holder with the fewest clients gives way to one that
 * has twice as many.
 *
 * Belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/list.h"
#include "base/slice.h"
#include "gateway/delivery/dictionary.h"
#include "gateway/delivery/gzip.h"
#include "gateway/intake/event.h"
#include "gateway/metrics/stream_kind.h"

struct compressor;

struct compressor_settings {
    int level;              /* of deflate, 1 to 9 */
    int zstd_level;         /* 1 to 19 */
    uint32_t reset_flushes; /* a history is not reset more often than every so many */
    size_t max_bytes;       /* of all histories */
};

struct compressor_counts {
    uint64_t blocks[ENCODING_COUNT];       /* that were made */
    uint64_t microseconds[ENCODING_COUNT]; /* that compressing took */
    uint64_t resets;                       /* of histories, for clients that had none */
    uint64_t refusals; /* times that a lane would have had a history, and had no room */
    size_t histories, history_bytes; /* now */
    size_t refused;                  /* that had no room when they last asked */
};

/* NULL: out of memory. */
struct compressor *compressor_new(const struct compressor_settings *settings);
/* NULL is fine; nobody holds a history. */
void compressor_free(struct compressor *compressor);
const struct compressor_counts *compressor_counts(const struct compressor *compressor);
uint32_t compressor_reset_flushes(const struct compressor *compressor);

/* --- independent blocks --- */

struct coding {
    enum stream_encoding encoding;
    const struct dictionary *dictionary; /* of ENCODING_ZSTD_DICTIONARY: refers to it, until that is
                                            withdrawn; else NULL */
};

/* The event as one frame of the format, compressed: a WebSocket message, or an HTTP chunk. Kept
 * with the event. Without data: out of memory. */
struct sl_slice compressor_frame(struct compressor *compressor, struct event *event,
                                 enum stream_format format, struct coding coding);
/* The block of its JSON without the last brace, behind which others may follow: with deflate, or of
 * zstd the blocks of a frame. Kept with the event. Without data: out of memory. */
struct sl_slice compressor_open_block(struct compressor *compressor, struct event *event,
                                      struct coding coding);
/* -ENOMEM: nothing is appended. */
int compressor_append_block(struct compressor *compressor, struct coding coding,
                            struct sl_slice plain, struct buffer *block);

/* A deflate block that says `plain` as it is. It has BLOCK_STORED_HEAD bytes more. */
enum { BLOCK_STORED_HEAD = 5, BLOCK_STORED_MAX = UINT16_MAX };
void compressor_stored_head(size_t size, unsigned char ret_head[static BLOCK_STORED_HEAD]);

/* What the last block of a WebSocket message ends with, which is not sent (RFC 7692, 7.2.1). */
enum { BLOCK_END_SIZE = 4 };

/* --- histories --- */

struct deflater;

/* Zeroed: none. */
struct history {
    struct deflater *deflater; /* NULL: none, or it had to give way */
    uint32_t flushes;          /* since the last reset; the owner counts them */
    size_t clients;            /* of the holder; the owner says so */
    uint64_t used_ms;          /* as last said */
    uint64_t asked_ms;         /* when there was no room; 0: there was */
    struct list_node node;     /* of the compressor: it is held */
};

/* Gives the holder a history with a window of 1 << window_bits bytes if it has none and there is
 * room; then it is new. `now_ms`: any clock that goes on. */
void compressor_hold(struct compressor *compressor, struct history *history, unsigned window_bits,
                     uint64_t now_ms);
/* Its owner wants none any more. */
void compressor_release(struct compressor *compressor, struct history *history);
/* What follows refers to nothing that was said before. */
void compressor_reset(struct compressor *compressor, struct history *history);

/* Appends `plain` to what the history has said, and what comes of it to `block`, which ends with
 * this piece if it `is_last`. -ENOMEM: the history is to be reset. */
int compressor_continue(struct compressor *compressor, struct history *history,
                        struct sl_slice plain, bool is_last, struct buffer *block);
/* The same by nobody's history: a block of several pieces that refers to nothing before it. Its
 * first piece `is_first`. */
int compressor_together(struct compressor *compressor, struct coding coding, struct sl_slice plain,
                        bool is_first, bool is_last, struct buffer *block);

/* For what is sent at once; whoever uses it clears it first. */
struct buffer *compressor_scratch(struct compressor *compressor);
