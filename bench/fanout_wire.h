/* bench/fanout_wire.h - a client's reading side: bytes of a stream -> messages.
 *
 * The caller keeps what is not used up and offers it again with what comes next. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stream_format { FORMAT_WEBSOCKET, FORMAT_NDJSON, FORMAT_DELIMITED, FORMAT_SSE, FORMAT_COUNT };

extern const char *const format_names[FORMAT_COUNT];

struct wire {
    enum stream_format format;
    bool is_chunked;             /* from the response head */
    int chunk_state;             /* of the chunked coding: size line, its rest, payload, line end */
    uint64_t chunk_left;         /* of the payload; while the size is read: the size so far */
    uint64_t line_size;          /* delimited: announced for the line that follows; 0: none */
    struct z_stream_s *inflater; /* NULL: nothing is compressed */
};

/* What comes out of a wire; `answer` has bytes that the server wants to see (a pong). */
struct wire_reader {
    void (*message)(void *owner, const char *bytes, size_t size);
    void (*answer)(void *owner, const void *bytes, size_t size);
    void *owner;
};

/* Takes the chunked coding off in place; the size of what remains. `ret_ended`: the last chunk. */
size_t wire_dechunk(struct wire *wire, char *bytes, size_t size, bool *ret_ended);

/* From now on the stream is compressed: gzip, or permessage-deflate. wire_done() frees what that
 * takes; on a wire that is zeroed it does nothing. */
void wire_begin_inflating(struct wire *wire);
void wire_done(struct wire *wire);
/* Inflates what wire_dechunk() has left, behind `kept` bytes that were inflated before. NULL: it is
 * not gzip. Valid until the next call of any wire. */
char *wire_inflate(struct wire *wire, const char *bytes, size_t kept, size_t size,
                   size_t *ret_size);

/* Hands out complete messages. The bytes used up, or -1: the stream ended or makes no sense. */
ptrdiff_t wire_take(struct wire *wire, char *bytes, size_t size, const struct wire_reader *reader);
