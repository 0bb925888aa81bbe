/* bench/fanout_wire.h - a client's reading side: bytes of a stream -> messages.
 *
 * The caller keeps the bytes that were not used up and passes them again together with the next
 * ones. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stream_format { FORMAT_WEBSOCKET, FORMAT_NDJSON, FORMAT_DELIMITED, FORMAT_SSE, FORMAT_COUNT };

extern const char *const format_names[FORMAT_COUNT];

struct wire {
    enum stream_format format;
    bool is_chunked;             /* from the response head */
    int chunk_state;             /* in the chunked coding: size line, its rest, payload, line end */
    uint64_t chunk_left;         /* of the payload; while the size is read: the size so far */
    uint64_t line_size;          /* delimited: announced size of the next line; 0: none */
    struct z_stream_s *inflater; /* NULL: not compressed */
};

/* Receives the messages of a wire; `answer` gets bytes to send to the server (a pong). */
struct wire_reader {
    void (*message)(void *owner, const char *bytes, size_t size);
    void (*answer)(void *owner, const void *bytes, size_t size);
    void *owner;
};

/* Removes the chunked coding in place; returns the remaining size. `ret_ended`: it was the last
 * chunk. */
size_t wire_dechunk(struct wire *wire, char *bytes, size_t size, bool *ret_ended);

/* From now on the stream is compressed: gzip, or permessage-deflate. wire_done() frees the memory
 * for this; on a zeroed wire it does nothing. */
void wire_begin_inflating(struct wire *wire);
void wire_done(struct wire *wire);
/* Inflates the output of wire_dechunk(), after `kept` bytes that were inflated before. NULL: not
 * gzip. Valid until the next call with any wire. */
char *wire_inflate(struct wire *wire, const char *bytes, size_t kept, size_t size,
                   size_t *ret_size);

/* Passes on complete messages. Returns the number of bytes used up, or -1: the stream ended or is
 * malformed. */
ptrdiff_t wire_take(struct wire *wire, char *bytes, size_t size, const struct wire_reader *reader);
