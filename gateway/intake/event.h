/* gateway/intake/event.h - one fact that happened, shared by everyone who is told of it.
 *
 * Made by event_decode(), never changed afterwards but for its frames, which are built the first
 * time somebody needs them. Reference-counted; belongs to one thread. */
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
    EVENT_USER, /* a user is new, or another name, login or profile is */
    EVENT_HIDE, /* from here on for gateways only, never delivered */
    EVENT_UNHIDE,
    EVENT_MUTE,
    EVENT_UNMUTE,
    EVENT_LATE,   /* the mark of raise_clock.lua, see docs/events.md */
    EVENT_REVOKE, /* of tokens: not of the social core, and heeded before its turn comes */
    EVENT_UNREVOKE,
    EVENT_KIND_COUNT,
    EVENT_GAP = EVENT_KIND_COUNT, /* control messages of ours; no message may say so */
    EVENT_WARNING,
    EVENT_KEEPALIVE, /* has a frame, and no JSON: delivery/frame.h */
    EVENT_COUNTS,    /* of a bucket (counts/counter.h); its id is the bucket's */
    EVENT_SKIPPED,   /* what of a bucket is not sent; the same, or none */
    EVENT_TRENDS,    /* of a bucket, as counts are */
    EVENT_SAMPLING   /* from here on a stream is sent so many of its posts */
};

enum {
    EVENT_REDUCTIONS_MAX = 16 /* that are found again; whoever wants another makes one for itself */
};
enum { EVENT_FRAME_COUNT = 9 }; /* stream formats, plain and deflated: see delivery/frame.h */

/* A frame beside those that every event has room for. */
struct event_frame {
    struct event_frame *next;
    uint64_t key; /* the maker's */
    size_t size;
    char bytes[];
};

struct event {
    uint32_t refs;
    enum event_kind kind;
    uint64_t id;       /* log entry, the client's cursor; 0: published without the log, no cursor */
    uint64_t previous; /* the event before it in its shard's log; 0: none */
    uint32_t shard;
    bool is_late; /* passed behind events of other shards with greater ids than its own, or than
                     that before the gap; set before it passes */
    bool is_unforeseen;        /* late, and its shard was taken to be past it: minted since then */
    struct sl_cursor *cursor;  /* of a client that has it, and all that it got before; NULL: `id` */
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
    struct sl_event_view view; /* slices point into this event's own memory. Of a kind for gateways
                                  only, `user` and `target` count, and no filter matches */
    uint64_t fields;           /* of a reduction: which members are left; else 0 */
    struct event *reductions;  /* those of this event that are alive and may be found, newest
                                  first; not references */
    struct event *next_reduction;
    struct event *reduced_from; /* whose list it is in; NULL: in none */
    struct sl_slice audience; /* of the post, as published: "followers", "only:ID,ID", ...; without
                                 data: public. For the privacy rule, never for clients */
    struct sl_slice json;     /* what clients get: one line that starts with { and ends with } */
    struct sl_slice frames[EVENT_FRAME_COUNT]; /* without data until built, then from mem_alloc();
                                                  freed with the event */
    struct event_frame *more_frames;           /* the same, found by their keys */
    size_t bytes;                              /* memory of the whole event, frames included */
    size_t *account; /* adds up the bytes of the events that are alive; NULL: nobody counts */
};

/* A control message for clients, as an event without an id; `json` is copied. The caller owns one
 * reference; NULL: out of memory. */
struct event *event_new_control(enum event_kind kind, struct sl_slice json);

/* Who has the event has come as far as `cursor`, which is copied; before anybody asks for a frame.
 * 0; -ENOMEM. */
int event_set_cursor(struct event *event, const struct sl_cursor *cursor);
/* The same event for somebody whose cursor is another behind it. `is_late`: he has events with
 * greater ids, and the JSON says so, with the cursor. The caller owns one reference; NULL: out of
 * memory. */
struct event *event_copy_with_cursor(struct event *event, const struct sl_cursor *cursor,
                                     bool is_late);

/* The same event for those who want only some members of it: `json`, which is copied. It is for
 * outboxes, and has neither view nor audience. The caller owns one reference; NULL: out of memory.
 */
struct event *event_new_reduction(struct event *event, uint64_t fields, struct sl_slice json);
/* NULL: none with these members is alive, or it came too late to be found. */
struct event *event_find_reduction(const struct event *event, uint64_t fields);

/* The memory of an event that was decoded and is used by nobody yet, without pointers that mean
 * anything elsewhere but to event_from_bytes(). Good for as long as the event. */
struct sl_slice event_bytes(const struct event *event);
/* The same event, from the bytes that another process of this program gives. 0: the caller owns one
 * reference; -EBADMSG: they are no such event; -ENOMEM. */
int event_from_bytes(struct sl_slice bytes, struct event **ret_event);

struct event *event_ref(struct event *event);
void event_unref(struct event *event); /* NULL is fine */

/* From now on the event's bytes count in *account, which outlives the event. Once only. */
void event_charge(struct event *event, size_t *account);
/* A frame of so many bytes has been built. */
void event_grow(struct event *event, size_t bytes);
/* The frame that was kept under `key`; without data: none was. */
struct sl_slice event_frame_at(const struct event *event, uint64_t key);
/* Copies a frame that is not there yet. Without data: out of memory. */
struct sl_slice event_keep_frame(struct event *event, uint64_t key, struct sl_slice frame);

enum { EVENT_SLICE_COUNT = 14 };
/* The slices of view and audience, but for the URLs, in any order. */
void event_slices(struct sl_event_view *view, struct sl_slice *audience,
                  struct sl_slice *ret_slices[static EVENT_SLICE_COUNT]);

static inline bool event_is_for_clients(const struct event *event)
{
    return event->kind < EVENT_HIDE;
}

/* It tells which tokens are taken back, or not any more: if it is out of a log. */
static inline bool event_is_about_access(const struct event *event)
{
    return event->kind == EVENT_REVOKE || event->kind == EVENT_UNREVOKE;
}

/* A message of ours. */
static inline bool event_is_for_all(const struct event *event)
{
    return event->kind >= EVENT_KIND_COUNT;
}

const char *event_kind_name(enum event_kind kind); /* "post", ...: the member `type` */
/* false: no kind has this name. */
bool event_kind_find(struct sl_slice name, enum event_kind *ret_kind);
