/* gateway/intake/event.h - an event, shared by all clients that receive it.
 *
 * Created by event_decode() and immutable, except for its frames, which are built when they are
 * first needed. Reference-counted; belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "filters/event_view.h"
#include "src/model/cursor.h"

enum event_kind {
    EVENT_POST,
    EVENT_DELETE,
    EVENT_FOLLOW,
    EVENT_UNFOLLOW,
    EVENT_USER, /* a user was created, or the name, login or profile changed */
    EVENT_HIDE, /* the following are for gateways only, never delivered */
    EVENT_UNHIDE,
    EVENT_MUTE,
    EVENT_UNMUTE,
    EVENT_LATE,   /* the marker of raise_clock.lua, see docs/events.md */
    EVENT_REVOKE, /* about tokens: not of the social core, and handled before its turn */
    EVENT_UNREVOKE,
    EVENT_KIND_COUNT,
    EVENT_GAP = EVENT_KIND_COUNT, /* control messages of ours; messages cannot have these kinds */
    EVENT_WARNING,
    EVENT_KEEPALIVE, /* has a frame, but no JSON: delivery/frame.h */
    EVENT_COUNTS,    /* of a bucket (counts/counter.h), whose id it has */
    EVENT_SKIPPED,   /* what was left out of a bucket; with its id, or none */
    EVENT_TRENDS,    /* of a bucket, as counts are */
    EVENT_SAMPLING   /* from here on a stream is sent only this many of its posts */
};

enum {
    EVENT_REDUCTIONS_MAX = 16 /* that can be found again; further ones are not shared */
};
enum { EVENT_FRAME_COUNT = 9 }; /* stream formats, plain and deflated: see delivery/frame.h */

/* A frame in addition to those for which every event has room. */
struct event_frame {
    struct event_frame *next;
    uint64_t key; /* chosen by the code that built it */
    size_t size;
    char bytes[];
};

struct event {
    uint32_t refs;
    enum event_kind kind;
    uint64_t id;       /* id of the log entry, and cursor of clients; 0: published without the log,
                          not a cursor */
    uint64_t previous; /* id of the event before it in its shard's log; 0: none */
    uint32_t shard;
    bool is_late; /* passed after events of other shards with greater ids than its own, or than that
                     before the gap; set before it passes */
    bool is_unforeseen;        /* late, but its shard was thought to be past it: minted since
                                  then */
    struct sl_cursor *cursor;  /* of a client that has received it and everything before; NULL:
                                  `id` */
    struct event *original;    /* a reference to the event whose memory the view points into; NULL:
                                  its own */
    bool is_rewound;           /* of a gap: what is missing may have been delivered */
    uint64_t gap_from, gap_to; /* of a gap in the log: what is missing lies behind `gap_from`, up to
                                  `gap_to`; else 0 */
    uint64_t late_from, late_to; /* of EVENT_LATE: events of the shard behind the one, up to the
                                    other, may have come late. Of what came late for a pick, and is
                                    told without an id: `late_to` is the event's */
    uint64_t sequence;    /* its number among all that has passed (delivery/ring.h); 0: has not */
    uint64_t received_us; /* clock_monotonic_us when it arrived */
    struct sl_event_view view; /* slices point into this event's own memory. For kinds that are
                                  for gateways only, `user` and `target` are set, and no filter
                                  matches */
    uint64_t fields;           /* of a reduction: which members are left; otherwise 0 */
    struct event *reductions;  /* existing reductions of this event that can be found, newest first;
                                  not references */
    struct event *next_reduction;
    struct event *reduced_from; /* whose list contains it; NULL: none */
    struct sl_slice audience; /* of the post, as published: "followers", "only:ID,ID", ...; without
                                 data: public. For the privacy rule, never for clients */
    struct sl_slice json;     /* sent to clients: one line that begins with { and ends with } */
    struct sl_slice frames[EVENT_FRAME_COUNT]; /* without data until built, then allocated with
                                                  mem_alloc(); freed with the event */
    struct event_frame *more_frames;           /* further frames, found by their keys */
    size_t bytes;                              /* memory of the whole event, including frames */
    size_t *account; /* sum of the bytes of existing events; NULL: not counted */
};

/* Creates a control message for clients, as an event without an id; `json` is copied. The caller
 * owns one reference; NULL: out of memory. */
struct event *event_new_control(enum event_kind kind, struct sl_slice json);

/* Sets the cursor of clients that have this event; it is copied. Must be called before a frame is
 * built. 0; -ENOMEM. */
int event_set_cursor(struct event *event, const struct sl_cursor *cursor);
/* Copies the event for a client that has another cursor after it. `is_late`: the client has
 * received events with greater ids, and the JSON says so. The JSON of late and unlogged events
 * contains the cursor. The caller owns one reference; NULL: out of memory. */
struct event *event_copy_with_cursor(struct event *event, const struct sl_cursor *cursor,
                                     bool is_late);
/* An unlogged event for clients that are at this cursor: itself if they are where it passed,
 * otherwise a copy. The caller owns one reference; NULL: out of memory. */
struct event *event_at_cursor(struct event *event, const struct sl_cursor *cursor);

/* Creates the event for clients that want only some of its members: `json`, which is copied. It is
 * for outboxes, and has neither view nor audience. The caller owns one reference; NULL: out of
 * memory. */
struct event *event_new_reduction(struct event *event, uint64_t fields, struct sl_slice json);
/* NULL: there is none with these members, or it was created too late to be found. */
struct event *event_find_reduction(const struct event *event, uint64_t fields);

/* The memory of a decoded event that is not used yet. Pointers in it are only meaningful to
 * event_from_bytes(). Valid as long as the event. */
struct sl_slice event_bytes(const struct event *event);
/* Creates the same event from bytes of another process of this program. 0: the caller owns one
 * reference; -EBADMSG: invalid bytes; -ENOMEM. */
int event_from_bytes(struct sl_slice bytes, struct event **ret_event);

struct event *event_ref(struct event *event);
void event_unref(struct event *event); /* NULL is allowed */

/* From now on the event's bytes are counted in *account, which must outlive the event. May be
 * called once. */
void event_charge(struct event *event, size_t *account);
/* A frame of this size was built. */
void event_grow(struct event *event, size_t bytes);
/* The frame stored under `key`; without data: there is none. */
struct sl_slice event_frame_at(const struct event *event, uint64_t key);
/* Stores a copy of a frame that is not stored yet. Without data: out of memory. */
struct sl_slice event_keep_frame(struct event *event, uint64_t key, struct sl_slice frame);

enum { EVENT_SLICE_COUNT = 14 };
/* The slices of view and audience, without the URLs, in any order. */
void event_slices(struct sl_event_view *view, struct sl_slice *audience,
                  struct sl_slice *ret_slices[static EVENT_SLICE_COUNT]);

static inline bool event_is_for_clients(const struct event *event)
{
    return event->kind < EVENT_HIDE;
}

/* Published without the log: the id that clients see is the producer's, and no cursor. */
static inline bool event_is_unlogged(const struct event *event)
{
    return event_is_for_clients(event) && !event->id && !event->is_late;
}

/* Whether it announces or withdraws a revocation, if it comes from a log. */
static inline bool event_is_about_access(const struct event *event)
{
    return event->kind == EVENT_REVOKE || event->kind == EVENT_UNREVOKE;
}

/* A control message of ours. */
static inline bool event_is_for_all(const struct event *event)
{
    return event->kind >= EVENT_KIND_COUNT;
}

const char *event_kind_name(enum event_kind kind); /* the member `type`: "post", ... */
/* false: there is no kind with this name. */
bool event_kind_find(struct sl_slice name, enum event_kind *ret_kind);
