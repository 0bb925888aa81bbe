/* filters/event_view.h - what a filter may look at of an event.
 *
 * One event, reduced to the facts that filters ask for. A plain value: the slices belong to
 * whoever decoded the event, strings are valid UTF-8 without U+0000, and an absent member is a
 * slice without data. The members are those of an event (docs/events.md); optional members that
 * were mistyped or out of range have been made absent by the decoder. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

enum sl_event_type {
    SL_EVENT_POST,
    SL_EVENT_DELETE, /* the members are those of the post that is removed */
    SL_EVENT_FOLLOW,
    SL_EVENT_UNFOLLOW,
};

struct sl_point {
    double lon, lat; /* degrees, |lon| <= 180, |lat| <= 90 */
};

/* Degrees; west > east crosses the antimeridian; south <= north; the edges belong to it. */
struct sl_box {
    double west, south, east, north;
};

/* The post that this one answers, repeats or quotes. */
struct sl_post_ref {
    bool has_post;        /* its `post` member is a post id */
    struct sl_slice user; /* user id */
    struct sl_slice login;
};

struct sl_event_view {
    enum sl_event_type type;
    uint64_t sample_id;     /* what sample and partition hash: the post's id; of follow and
                               unfollow the event's */
    bool restricted;        /* audience other than public: matches no filter at all */
    struct sl_slice text;   /* absent on a delete: "bare", goes to everyone who takes deletes */
    struct sl_slice user;   /* user id: the author, or who follows */
    struct sl_slice login;  /* of the author, as written */
    struct sl_slice target; /* follow, unfollow: the user id that is followed */
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
