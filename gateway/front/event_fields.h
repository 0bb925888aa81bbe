/* gateway/front/event_fields.h - the parameter `fields`: which members of an event a client wants.
 *
 * A set of members is a number, which is cheap to compare and to use in a lane's key. The order of
 * the members does not matter. The names are explained in docs/streaming-api.md. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "base/slice.h"

/* A bit for each. Members of an object follow it; `FIELD_USER` means the whole object. */
enum event_field {
    FIELD_ID, /* every event has these two */
    FIELD_TYPE,
    FIELD_AT,
    FIELD_POST_ID,
    FIELD_TEXT,
    FIELD_LANG,
    FIELD_CREATED_AT,
    FIELD_URLS,
    FIELD_MEDIA,
    FIELD_SOURCE,
    FIELD_AUDIENCE,
    FIELD_USER, /* the author, or the user who follows */
    FIELD_USER_ID,
    FIELD_USER_LOGIN,
    FIELD_USER_NAME,
    FIELD_TARGET,
    FIELD_TARGET_ID,
    FIELD_TARGET_LOGIN,
    FIELD_TARGET_NAME,
    FIELD_GEO,
    FIELD_GEO_LON,
    FIELD_GEO_LAT,
    FIELD_PLACE,
    FIELD_PLACE_NAME,
    FIELD_PLACE_COUNTRY,
    FIELD_PLACE_BBOX,
    FIELD_REPLY_TO,
    FIELD_REPLY_TO_POST,
    FIELD_REPLY_TO_USER,
    FIELD_REPLY_TO_LOGIN,
    FIELD_REPOST_OF,
    FIELD_REPOST_OF_POST,
    FIELD_REPOST_OF_USER,
    FIELD_REPOST_OF_LOGIN,
    FIELD_QUOTE_OF,
    FIELD_QUOTE_OF_POST,
    FIELD_QUOTE_OF_USER,
    FIELD_QUOTE_OF_LOGIN,
    FIELD_COUNT
};

static inline uint64_t event_field_bit(enum event_field field)
{
    return UINT64_C(1) << field;
}

/* Everything that was published; and everything except what it contains twice. */
#define EVENT_FIELDS_FULL  UINT64_C(0)
#define EVENT_FIELDS_SHORT (UINT64_C(1) << 63)

/* Not members of ours, but the event in the form of a dialect (front/dialect.h), whose own
 * `options` are below 2^48. */
#define EVENT_FIELDS_DIALECT (UINT64_C(1) << 62)
static inline uint64_t event_fields_of_dialect(unsigned dialect, uint64_t options)
{
    return EVENT_FIELDS_DIALECT | (uint64_t)dialect << 48 | options;
}
static inline unsigned event_fields_dialect(uint64_t fields)
{
    return fields >> 48 & 0xff;
}
static inline uint64_t event_fields_options(uint64_t fields)
{
    return fields & ((UINT64_C(1) << 48) - 1);
}

/* Parses `full`, `short`, `ids`, or names separated by commas, without repetitions. 0; -EINVAL:
 * *reterr names the wrong one. */
int event_fields_parse(struct sl_slice text, uint64_t *ret_fields, struct failure *reterr);
/* Prints the set as a parameter, in the order of the enum. */
void event_fields_print(uint64_t fields, struct buffer *ret_text);
