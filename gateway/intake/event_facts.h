/* gateway/intake/event_facts.h - the members of an event that somebody needs, out of its JSON.
 *
 * Reads one message whole and leaves slices of it, and of the reader's own memory for strings with
 * escapes. Says nothing about which members an event must have: event_decode() does. */
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
    double value; /* infinite when too large for a double */
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
            size_t count;    /* items of the array */
            bool has_other;  /* one of them is no number */
        } bbox;
    } place;
    struct {
        size_t first, count; /* in event_reader.urls */
    } urls;
    struct {
        size_t count;
    } media;
};

/* Members that are absent, null or mistyped are 0 or slices without data. Ids are in range. */
struct event_facts {
    uint64_t id; /* 0: none */
    struct sl_slice type, at;
    uint64_t from, to; /* ids; 0: none */
    struct {
        struct sl_slice id;
    } user, target;
    struct event_post_facts post;
};

/* An audience in the message that clients must not see as it is. */
struct event_edit {
    size_t from, to; /* bytes of the message: behind the key, behind the value */
    struct sl_slice kind;
};

/* Memory that is used again from one message to the next. All zero: a new one. */
struct event_reader {
    char *scratch;
    size_t scratch_size;
    struct buffer urls;  /* struct sl_slice */
    struct buffer edits; /* struct event_edit, in the message's order */
};

void event_reader_done(struct event_reader *reader);
/* Gives back what an uncommonly large message needed. The facts read last are gone. */
void event_reader_trim(struct event_reader *reader);
void event_buffer_trim(struct buffer *buffer);

/* `message` has no white space around it. 0; -EBADMSG: it is not one JSON object that may be passed
 * on, *reterr says why; -ENOMEM.
 * The facts are good until the next call or the end of `message`. */
int event_facts_read(struct event_reader *reader, struct sl_slice message,
                     struct event_facts *ret_facts, struct json_breaks *ret_breaks,
                     struct failure *reterr);
