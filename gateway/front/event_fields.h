/* gateway/front/event_fields.h - which members of an event a client wants: the parameter `fields`.
 *
 * A set of members is a number, so that sets are compared, and are part of a lane's key, for
 * nothing. The same members in another order are the same set. What each name means is in
 * docs/streaming-api.md. */
#pragma once

#include <stdint.h>

#include "base/buffer.h"
#include "base/failure.h"
#include "base/slice.h"

/* A bit each. Members of an object stand behind it; `FIELD_USER` is the whole of it. */
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
    FIELD_USER, /* the author, or who follows */
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

/* All that was published; and all of it but what it says twice. */
#define EVENT_FIELDS_FULL  UINT64_C(0)
#define EVENT_FIELDS_SHORT (UINT64_C(1) << 63)

/* No members of ours, but the event as a dialect says it (front/dialect.h); `options` are its own,
 * below 2^48. */
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

/* `full`, `short`, `ids`, or names separated by commas, each once. 0; -EINVAL: *reterr names the
 * one that is wrong. */
int event_fields_parse(struct sl_slice text, uint64_t *ret_fields, struct failure *reterr);
/* The set as the parameter, in the order of the enum. */
void event_fields_print(uint64_t fields, struct buffer *ret_text);
