/* gateway/delivery/compressor.h - deflate and zstd for the streams of a worker; results are shared
 * by clients.
 *
 * There are two kinds of blocks; both end at a byte boundary.
 *
 * Independent blocks refer to nothing before them, so every decoder accepts them at any time: with
 * deflate a block, with zstd a frame. The block of an event in a stream format is made when it is
 * first needed, and kept with the event.
 *
 * Blocks of a history (deflate only) refer to earlier data since the last reset, and are for
 * clients that have received exactly that. A history uses about 270 kB, so their number is limited:
 * if there is no room, the holder with the fewest clients loses its history to one with twice as
 * many.
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
    uint32_t reset_flushes; /* minimum number of flushes between two resets of a history */
    size_t max_bytes;       /* for all histories */
};

struct compressor_counts {
    uint64_t blocks[ENCODING_COUNT];       /* blocks made */
    uint64_t microseconds[ENCODING_COUNT]; /* time spent compressing */
    uint64_t resets;                       /* of histories, for clients that lacked earlier data */
    uint64_t refusals;                     /* requests for a history without room */
    size_t histories, history_bytes;       /* at present */
    size_t refused;                        /* histories whose last request was refused */
};

/* NULL: out of memory. */
struct compressor *compressor_new(const struct compressor_settings *settings);
/* NULL is allowed; no history may be held. */
void compressor_free(struct compressor *compressor);
const struct compressor_counts *compressor_counts(const struct compressor *compressor);
uint32_t compressor_reset_flushes(const struct compressor *compressor);

/* --- independent blocks --- */

struct coding {
    enum stream_encoding encoding;
    const struct dictionary *dictionary; /* for ENCODING_ZSTD_DICTIONARY; else NULL */
};

/* The event as one compressed frame of the format: a WebSocket message or an HTTP chunk. Kept with
 * the event. Without data: out of memory. */
struct sl_slice compressor_frame(struct compressor *compressor, struct event *event,
                                 enum stream_format format, struct coding coding);
/* The compressed JSON of the event without its last brace, to which others can be appended: a
 * deflate block, or the blocks of a zstd frame. Kept with the event. Without data: out of
 * memory. */
struct sl_slice compressor_open_block(struct compressor *compressor, struct event *event,
                                      struct coding coding);
/* -ENOMEM: nothing is appended. */
int compressor_append_block(struct compressor *compressor, struct coding coding,
                            struct sl_slice plain, struct buffer *block);

/* The head of a deflate block that contains bytes uncompressed; it has BLOCK_STORED_HEAD bytes. */
enum { BLOCK_STORED_HEAD = 5, BLOCK_STORED_MAX = UINT16_MAX };
void compressor_stored_head(size_t size, unsigned char ret_head[static BLOCK_STORED_HEAD]);

/* The end of the last block of a WebSocket message, which is not sent (RFC 7692, 7.2.1). */
enum { BLOCK_END_SIZE = 4 };

/* --- histories --- */

struct deflater;

/* Zeroed: none. */
struct history {
    struct deflater *deflater; /* NULL: none, or taken away */
    uint32_t flushes;          /* since the last reset; counted by the owner */
    size_t clients;            /* of the holder; set by the owner */
    uint64_t used_ms;          /* last use */
    uint64_t asked_ms;         /* when it was refused; 0: it was not */
    struct list_node node;     /* in the compressor's list of held histories */
};

/* Gives the holder a history with a window of 1 << window_bits bytes, if it has none and there is
 * room; then it is new. `now_ms`: any monotonic clock. */
void compressor_hold(struct compressor *compressor, struct history *history, unsigned window_bits,
                     uint64_t now_ms);
/* The owner no longer needs it. */
void compressor_release(struct compressor *compressor, struct history *history);
/* The following data refer to nothing before. */
void compressor_reset(struct compressor *compressor, struct history *history);

/* Compresses `plain` and appends the result to `block`, which ends with this piece if `is_last`.
 * -ENOMEM: the history must be reset. */
int compressor_continue(struct compressor *compressor, struct history *history,
                        struct sl_slice plain, bool is_last, struct buffer *block);
/* The same without a history: a block of several pieces that refers to nothing before it.
 * `is_first` for its first piece. */
int compressor_together(struct compressor *compressor, struct coding coding, struct sl_slice plain,
                        bool is_first, bool is_last, struct buffer *block);

/* A buffer for data that is sent at once; callers clear it before use. */
struct buffer *compressor_scratch(struct compressor *compressor);
