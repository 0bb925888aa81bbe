/* gateway/dialects/twitter2_fields.h - reads which members of Tweets, users, places and media a
 * client of X's API 2 asks for.
 *
 * Names that X has and we have no data for are accepted and have no effect. */
#pragma once

#include <stdint.h>

#include "base/slice.h"
#include "gateway/http/http.h"

/* Bits of the options of a dialect (front/dialect.h). */
enum twitter2_option {
    /* tweet.fields */
    TWITTER2_ATTACHMENTS,
    TWITTER2_AUTHOR_ID,
    TWITTER2_CONVERSATION_ID,
    TWITTER2_CREATED_AT,
    TWITTER2_DISPLAY_TEXT_RANGE,
    TWITTER2_EDIT_CONTROLS,
    TWITTER2_ENTITIES,
    TWITTER2_GEO,
    TWITTER2_IN_REPLY_TO_USER_ID,
    TWITTER2_LANG,
    TWITTER2_PUBLIC_METRICS,
    TWITTER2_REFERENCED_TWEETS,
    TWITTER2_REPLY_SETTINGS,
    TWITTER2_SOURCE,
    /* user.fields */
    TWITTER2_USER_PROTECTED,
    TWITTER2_USER_VERIFIED,
    TWITTER2_USER_VERIFIED_TYPE,
    /* place.fields */
    TWITTER2_PLACE_COUNTRY,
    TWITTER2_PLACE_COUNTRY_CODE,
    TWITTER2_PLACE_GEO,
    TWITTER2_PLACE_NAME,
    TWITTER2_PLACE_TYPE,
    /* media.fields */
    TWITTER2_MEDIA_ALT_TEXT,
    TWITTER2_MEDIA_DURATION_MS,
    TWITTER2_MEDIA_HEIGHT,
    TWITTER2_MEDIA_PREVIEW_IMAGE_URL,
    TWITTER2_MEDIA_URL,
    TWITTER2_MEDIA_VARIANTS,
    TWITTER2_MEDIA_WIDTH,
    /* expansions; each includes the member that names what it expands */
    TWITTER2_WITH_AUTHOR,
    TWITTER2_WITH_MEDIA,
    TWITTER2_WITH_MENTIONED,
    TWITTER2_WITH_PLACE,
    TWITTER2_WITH_REFERENCED_AUTHORS,
    TWITTER2_WITH_REPLIED_TO,
    /* of a stream */
    TWITTER2_DELETIONS,
    TWITTER2_OPTIONS
};

static inline uint64_t twitter2_bit(enum twitter2_option option)
{
    return UINT64_C(1) << option;
}

enum twitter2_list {
    TWITTER2_LIST_EXPANSIONS,
    TWITTER2_LIST_MEDIA_FIELDS,
    TWITTER2_LIST_PLACE_FIELDS,
    TWITTER2_LIST_POLL_FIELDS,
    TWITTER2_LIST_TWEET_FIELDS,
    TWITTER2_LIST_USER_FIELDS,
    TWITTER2_LISTS
};

/* The name of the parameter. */
const char *twitter2_list_name(enum twitter2_list list);
/* `lists` is indexed by enum twitter2_list; without data: not given. 0; -EPROTO: *refusal names an
 * unknown value. */
int twitter2_fields_read(const struct sl_slice lists[static TWITTER2_LISTS], uint64_t *ret_options,
                         struct http_refusal *refusal);
