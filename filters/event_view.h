/* filters/event_view.h - the parts of an event that filters look at.
 *
 * A plain value. The slices belong to whoever decoded the event, strings are valid UTF-8 without
 * U+0000, and an absent member is a slice without data. The members are those of an event
 * (docs/events.md); the decoder has made optional members absent if their type was wrong or their
 * value out of range. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum sl_event_type {
    SL_EVENT_POST,
    SL_EVENT_DELETE, /* the members are those of the deleted post */
    SL_EVENT_FOLLOW,
    SL_EVENT_UNFOLLOW,
    SL_EVENT_USER, /* a user is new or has changed */
    SL_EVENT_TYPE_COUNT
};

struct sl_point {
    double lon, lat; /* degrees, |lon| <= 180, |lat| <= 90 */
};

/* Degrees. west > east crosses the antimeridian; south <= north; the edges belong to the box. */
struct sl_box {
    double west, south, east, north;
};

/* The post that this one replies to, reposts or quotes. */
struct sl_post_ref {
    bool has_post;        /* its member `post` is a post id */
    struct sl_slice user; /* user id */
    struct sl_slice login;
};

struct sl_event_view {
    enum sl_event_type type;
    uint64_t sample_id;     /* hashed for sample and partition: the post's id; for other events
                               their own */
    bool restricted;        /* audience other than public: matches no filter */
    struct sl_slice text;   /* absent for a "bare" deletion, which goes to everyone who takes
                               deletions */
    struct sl_slice user;   /* user id of the author, of the one who follows, or of the one
                               who has changed */
    struct sl_slice login;  /* of the author, as written */
    struct sl_slice target; /* follow, unfollow: user id of the one who is followed */
    struct sl_slice lang;   /* absent or empty counts as "und" */
    struct sl_post_ref reply_to, repost_of, quote_of;
    bool has_point, has_box;
    struct sl_point point; /* geo */
    struct sl_box box;     /* place.bbox */
    struct sl_slice place, country;
    const struct sl_slice *urls; /* expanded links */
    size_t url_count;
    bool has_media;
};
