/* gateway/intake/event_facts.h - reads the relevant members of an event from its JSON.
 *
 * It parses a whole message and returns slices of it, and of the reader's own memory for strings
 * with escapes. It does not check which members an event must have; event_decode() does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "base/json_text.h"
#include "base/slice.h"

enum { EVENT_MAX_DEPTH = 32 };

struct event_number {
    bool is_given;
    double value; /* infinite if it is too large for a double */
};

struct event_reference {
    uint64_t post; /* 0: none */
    struct sl_slice user, login;
};

struct event_post_facts {
    uint64_t id; /* 0: none */
    struct {
        struct sl_slice id, login;
    } user;
    struct sl_slice text, lang;
    struct sl_slice audience; /* "restricted" for anything but a string */
    struct event_reference reply_to, repost_of, quote_of;
    struct {
        struct event_number lon, lat;
    } geo;
    struct {
        struct sl_slice name, country;
        struct {
            double edges[4]; /* west, south, east, north */
            size_t count;    /* number of items in the array */
            bool has_other;  /* an item is not a number */
        } bbox;
    } place;
    struct {
        size_t first, count; /* in event_reader.urls */
    } urls;
    struct {
        size_t count;
    } media;
};

/* Members that are absent, null or of the wrong type are 0 or slices without data. Ids are in
 * range. */
struct event_facts {
    uint64_t id; /* 0: none */
    struct sl_slice type, at;
    uint64_t from, to; /* ids; 0: none */
    struct {
        struct sl_slice id;
    } user, target;
    struct event_post_facts post;
};

/* An audience in the message that clients must not see unchanged. */
struct event_edit {
    size_t from, to; /* offsets in the message: after the key, after the value */
    struct sl_slice kind;
};

/* Memory reused for each message. Initially zero. */
struct event_reader {
    char *scratch;
    size_t scratch_size;
    struct buffer urls;  /* struct sl_slice */
    struct buffer edits; /* struct event_edit, in the order of the message */
};

void event_reader_done(struct event_reader *reader);
/* Frees what an unusually large message needed. The facts become invalid. */
void event_reader_trim(struct event_reader *reader);
void event_buffer_trim(struct buffer *buffer);

/* `message` must have no white space around it. 0; -EBADMSG: not one JSON object that may be
 * passed on, *reterr says why; -ENOMEM. The facts are valid until the next call, and as long as
 * `message`. */
int event_facts_read(struct event_reader *reader, struct sl_slice message,
                     struct event_facts *ret_facts, struct json_breaks *ret_breaks,
                     struct failure *reterr);
