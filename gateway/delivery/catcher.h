/* gateway/delivery/catcher.h - inside catch_up: where one client stands that catches up, and what
 * it is given next.
 *
 * catcher_read() reads the ring or the log and owes the lane's events to the catcher's own outbox;
 * catch_up.c decides when, sends what is owed, and waits for what is missing.
 *
 * Both are in the order of ids over all shards: logs are read, merged by id, as far as the ring has
 * lost something, and the ring has the rest. So one id says where a catcher stands, and a lower one
 * for each shard that was behind when what stands there passed (position.h). Events at or below
 * these ids are passed over. A client may come with an id that has not passed here yet: it waits at
 * the end of the ring until that has.
 *
 * A late event is in the ring where it passed. If that was before the client came, the cursor that
 * it came with says whether it has the event. Of what has passed since, it has what its cursor
 * covers of a shard that was behind here already, and the rest is new: so is all of a shard whose
 * clock has stepped back since, whatever the cursor says.
 *
 * After a rewind ids of a shard are lower than some before, until they have caught up. Then an id
 * alone does not say whether the client was there before or after; where it stands in the ring
 * does. One that stands behind the gap only has everything before the gap, and the gap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/counts/counter.h"
#include "gateway/delivery/catch_up.h"
#include "gateway/delivery/look_back.h"
#include "gateway/delivery/position.h"
#include "gateway/intake/gap.h"

enum catcher_state {
    CATCHER_RUNS,
    CATCHER_WAITS_FOR_SOCKET,
    CATCHER_WAITS_FOR_LANE,
    CATCHER_WAITS_FOR_LOG,
    CATCHER_WAITS_FOR_HEAD,
    CATCHER_KEEPS_UP,   /* beside its lane; `sequence` and `at` are as old as that */
    CATCHER_LOOKS_BACK, /* and waits for a batch of the log to do so */
    CATCHER_LEAVES
};

struct catcher {
    struct catch_up *catch_up;
    struct client *client;
    struct lane *lane;
    struct outbox outbox;
    struct list_node in_lane, in_all;
    struct list_node node; /* by state */
    enum catcher_state state;
    struct look_back
        *look_back; /* what it begins with; NULL: nothing, or it is owed that already */
    uint32_t waits_for_shard;
    bool has_fallen; /* it was live */
    bool in_ring;
    bool is_due;              /* what has gathered is sent, though a batch of the log is missing */
    bool has_come;            /* with a cursor */
    bool is_unsure;           /* has what it came with happened, or is it in the future? */
    uint64_t sequence;        /* the next to read in the ring; while reading the log: a guess */
    uint64_t unlogged_from;   /* sequence: events without an id are owed from here on */
    struct position at;       /* what it has been given, or told */
    struct sl_cursor had;     /* what it came with, or was given before */
    uint64_t came_at;         /* sequence: from here on it has had nothing before it came */
    uint64_t came_newest;     /* the newest id that had passed then */
    uint64_t claims;          /* a bit for each shard of which it has what comes late up to `had` */
    uint64_t told_behind;     /* of those: a bit for each that it was told is behind */
    struct gap late;          /* of which it was told last that it came late */
    struct gap rewound;       /* the last it was told of since it entered the ring */
    uint64_t left_ring_at;    /* its id then; where a gap of unlogged events begins */
    uint64_t batch;           /* the number of the one it reads */
    uint64_t came_after;      /* the number of the last batch that was asked for before it came */
    struct left_out left_out; /* what its lane leaves out; told at the end of each step */
    struct counter *counter;  /* of a lane that counts; else NULL */
    struct position counts_from; /* it has counted nothing at or below, and all that has passed */
    uint64_t close_to;           /* its buckets with ids below this one can be closed */
    /* What it counts comes from the logs, as far as that had passed when this was the next sequence
     * of the ring, and then from there. */
    uint64_t seam[SL_SHARDS_MAX], seam_sequence;
    uint64_t max_lag_ms;
    uint64_t fed_wall_ms;          /* when the newest event that it was given happened */
    uint64_t last[SL_SHARDS_MAX];  /* by shard: the last event that it was given, or passed over, or
                                      the end of what it was told is missing; 0: none yet */
    uint64_t skips[SL_SHARDS_MAX]; /* by shard, because of rewound gaps: the ring's entries of it up
                                      to this sequence are behind it */
};

struct catch_up {
    struct catch_up_settings settings;
    const struct ring *ring;
    struct log_cache *log;
    struct list all, running, at_head, keeping_up, looking_back;
    uint64_t passed_to; /* sequence: what the ring has before it has passed, and nothing else */
    struct list guests, waiting_guests;
    struct list waiting[SL_SHARDS_MAX]; /* for batches of this shard's log */
    struct catcher *pinner; /* whose batches stay until it has one of each log; NULL: nobody's */
    uv_idle_t idle;
    uv_timer_t tick_timer;
    unsigned open_handles;
    uint64_t wall_ms, monotonic_ms; /* when the turn, or what is done now, began */
    size_t budget;                  /* left in this turn; bytes */
    uint64_t count_until_us;        /* clock_monotonic_us: and nothing is counted later in it */
};

enum progress {
    PROGRESS,             /* there may be more, now */
    PROGRESS_BUCKET,      /* buckets are to be closed before more is read; never seen either */
    PROGRESS_LOG_IS_READ, /* the ring has the rest; never seen by catch_up */
    PROGRESS_AT_HEAD,
    PROGRESS_NEEDS_LOG, /* of the shard in `waits_for_shard` */
    PROGRESS_NEEDS_LANE,
    PROGRESS_OUT_OF_MEMORY,
    PROGRESS_COMPLETE, /* everything up to the client's `until` has been given */
    PROGRESS_OVERTAKEN /* the log was trimmed while it was read */
};

/* As much as one step may, and the turn's budget allows. */
enum progress catcher_read(struct catcher *catcher);
/* Asks for the batch of this shard's log that it needs, unless one is under way. */
void catcher_ask_log(struct catcher *catcher, uint32_t shard);

/* Where it goes on in the log of this shard: behind the event of this id. */
uint64_t catcher_after(const struct catcher *catcher, uint32_t shard);
/* Something as new as this has passed, even if a rewind has lost it since. */
bool catch_up_has_heard_of(const struct catch_up *catch_up, uint64_t id);
/* Where it would go on if it left now. */
struct sl_cursor catcher_cursor(const struct catcher *catcher);
/* What it came with has passed here, too; but for shards that are behind. */
bool catcher_is_not_ahead(const struct catcher *catcher);
/* And of these, too. Who counts is, for it has nothing but what it has counted here. */
bool catcher_is_in_step(const struct catcher *catcher);
/* All that has passed is behind it; it wants none of it, or has it. */
void catcher_skip_to_head(struct catcher *catcher);
/* Events of the shard with ids in (from, to] have come late, or may: tells it if its cursor claims
 * them. 0; -ENOMEM. */
int catcher_tell_late(struct catcher *catcher, uint32_t shard, uint64_t from, uint64_t to);
/* Does the cursor `had` of a client of the lane say something of what lies behind `from`, up to
 * `to`? Where the lane counts, or picks, it says something of the whole bucket. *ret_to: up to
 * where it does. */
bool catch_up_claims(const struct lane *lane, uint64_t had, uint64_t from, uint64_t to,
                     uint64_t *ret_to);
/* Who has `passed` lacks something of shards that are behind: tells it, once for each, if its
 * cursor claims that. 0; -ENOMEM. */
int catcher_tell_behind(struct catcher *catcher, const struct sl_cursor *passed);
/* Its lane counts: it begins with the bucket behind the cursor. 0; -ENOMEM. */
int catcher_count_from(struct catcher *catcher, const struct sl_cursor *cursor);
/* It begins with the open bucket of its counter, which has nothing in it yet. */
void catcher_begin_counting(struct catcher *catcher);
/* The event has passed, but has not been counted where it was told all up to now: so it is to come,
 * with all that has passed since. */
void catcher_begin_before(struct catcher *catcher, const struct event *event);
/* A plain cursor claims what has not come of a shard that is behind, and what has come late since
 * it was given out. 0; -ENOMEM. */
int catcher_tell_what_is_late(struct catcher *catcher);
/* What it counts does not hold any more, or its lane wants something else. 0; -ENOMEM. */
int catcher_count_again(struct catcher *catcher);
/* It needs no batches any more. */
void catcher_let_go_of_batches(struct catcher *catcher);
/* About how many events it is behind. */
uint64_t catcher_events_behind(const struct catcher *catcher);

/* A message of ours, of which the caller's reference is taken; NULL: -ENOMEM. 0; -ENOMEM. */
int catcher_give_control_take(struct catcher *catcher, struct event *event);
/* What it has left out is told. 0; -ENOMEM: it is still to be told. */
int catcher_tell_left_out(struct catcher *catcher);

/* A catcher for a client that is live, and will be in this lane then: it goes on in the ring with
 * what it is owed, or, if that is nothing, with the entry of this sequence. NULL: out of memory. */
struct catcher *catcher_take_over(struct catch_up *catch_up, struct lane *lane,
                                  struct client *client, uint64_t sequence);
/* A catcher for a reader of the lane's outbox; NULL: out of memory. From one outbox to the other.
 * Behind all others in the list of that state. It has to go. */
struct catcher *catcher_new(struct catch_up *catch_up, struct lane *lane, struct client *client);
void catcher_start(struct catcher *catcher);
void catcher_enter(struct catcher *catcher, enum catcher_state state);
void catcher_evict(struct catcher *catcher, enum disconnect_reason reason);
/* It goes on in the ring, where it has had everything before this sequence, and what its position
 * says. */
void catcher_begin_in_ring(struct catcher *catcher, uint64_t sequence);

/* What the client has of the shard of the first event, or gap, that it is owed of it. */
static inline uint64_t catch_up_had_before(const struct event *owed)
{
    if (owed->gap_to)
        return owed->is_rewound ? owed->gap_to : owed->gap_from;
    return owed->previous;
}

static inline void catch_up_spend(struct catch_up *catch_up, size_t bytes)
{
    catch_up->budget -= bytes < catch_up->budget ? bytes : catch_up->budget;
}

/* --- catch_up_guest.c --- */

/* It has its turn when the idle handle runs. */
void catch_up_enqueue_guest(struct catch_up *catch_up, struct catch_up_guest *guest);
/* The first guest works until clock_monotonic_us() is `until_us`, and is then behind the others. */
void catch_up_work_for_guests(struct catch_up *catch_up, uint64_t until_us);
/* A batch has come that a guest may have asked for: those who wait look at it. */
void catch_up_wake_guests(struct catch_up *catch_up, uint32_t shard, uint64_t to,
                          const struct cached_batch *batch);

void catch_up_sample_clocks(struct catch_up *catch_up);
/* By the clocks as sampled last. */
uint64_t catch_up_happened_ms(const struct catch_up *catch_up, const struct event *event);
