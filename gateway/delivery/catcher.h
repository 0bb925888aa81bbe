/* gateway/delivery/catcher.h - internal to catch_up: the position of a client that catches up, and
 * the next events for it.
 *
 * catcher_read() reads the ring or the log and owes the lane's events to the catcher's own outbox.
 * catch_up.c decides when, sends them, and waits for missing data.
 *
 * Both sources are in the order of ids over all shards: the logs are read and merged by id as far
 * as the ring has lost events; the rest is in the ring. So the position is one id, and a lower one
 * for each shard that was behind when the event at the position passed (position.h). Events at or
 * below these ids are skipped. A client may come with an id that has not passed here yet: then it
 * waits at the end of the ring.
 *
 * A late event is in the ring where it passed. If it passed before the client came, the client's
 * cursor says whether it has the event. Of late events since then, it has those that its cursor
 * covers if the shard was behind here already; all others are new to it, and so are all events of a
 * shard whose clock has stepped back since.
 *
 * After a rewind, ids of a shard are lower than earlier ones until they have caught up. Then an id
 * does not say whether the client was there before or after the rewind, but its position in the
 * ring does. A client that is after the gap has everything before the gap, and the gap. */
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
    CATCHER_KEEPS_UP,   /* next to its lane; `sequence` and `at` are from that time */
    CATCHER_LOOKS_BACK, /* may wait for a batch of the log */
    CATCHER_LEAVES
};

struct catcher {
    struct catch_up *catch_up;
    struct client *client;
    struct lane *lane;
    struct outbox outbox;
    struct list_node in_lane, in_all;
    struct list_node node; /* in the list for its state */
    enum catcher_state state;
    struct look_back *look_back; /* events to begin with; NULL: none, or already owed */
    uint32_t waits_for_shard;
    bool has_fallen; /* it was live before */
    bool in_ring;
    bool is_due;              /* send now, although a batch is missing */
    bool has_come;            /* it resumes with a cursor */
    bool is_unsure;           /* its cursor may be in the future */
    uint64_t sequence;        /* next entry of the ring; while reading the log: a guess */
    uint64_t unlogged_from;   /* sequence; earlier events without ids are not owed */
    struct position at;       /* what it was given, or told is missing */
    struct sl_cursor had;     /* what it came with, or was given earlier */
    uint64_t came_at;         /* sequence of the ring when it came */
    uint64_t came_newest;     /* the newest id that had passed then */
    uint64_t claims;          /* shards (bits) whose late events up to `had` it has */
    uint64_t told_behind;     /* of those: shards (bits) that it was told are behind */
    struct gap late;          /* the last range that it was told arrived late */
    struct gap rewound;       /* the last rewind that it was told of since entering the ring */
    uint64_t left_ring_at;    /* id at that time, or of its cursor; a gap of unlogged events begins
                                 there */
    uint64_t batch;           /* number of the current batch */
    uint64_t came_after;      /* number of the last batch requested before it came */
    struct left_out left_out; /* posts not sent by a sampled lane; reported at the end of a step */
    struct counter *counter;  /* if its lane counts; else NULL */
    struct position counts_from; /* what it counts is after this */
    uint64_t close_to;           /* buckets with lower ids can be closed */
    /* When counting, events are read from the logs up to the ids that had passed when
     * `seam_sequence` was the next entry of the ring, and then from the ring. */
    uint64_t seam[SL_SHARDS_MAX], seam_sequence;
    uint64_t max_lag_ms;
    uint64_t fed_wall_ms;          /* time of the newest event that it was given */
    uint64_t last[SL_SHARDS_MAX];  /* by shard: the last event that was given or skipped, or the end
                                      of what it was told is missing; 0: none */
    uint64_t skips[SL_SHARDS_MAX]; /* by shard: after a rewind, entries of the ring up to this
                                      sequence are skipped */
};

struct catch_up {
    struct catch_up_settings settings;
    const struct ring *ring;
    struct log_cache *log;
    struct list all, running, at_head, keeping_up, looking_back;
    uint64_t passed_to; /* sequence; everything earlier in the ring has passed, nothing else has */
    struct list jobs, waiting_jobs;
    struct list waiting[SL_SHARDS_MAX]; /* by shard, for batches of its log */
    struct catcher *pinner; /* its batches are kept until it has one of each log; NULL: none */
    uv_idle_t idle;
    uv_timer_t tick_timer;
    unsigned open_handles;
    uint64_t wall_ms, monotonic_ms; /* at the beginning of the turn or of the current work */
    size_t budget;                  /* bytes left in this turn */
    uint64_t count_until_us; /* clock_monotonic_us(); nothing is counted after it in this turn */
};

enum progress {
    PROGRESS,             /* there may be more */
    PROGRESS_BUCKET,      /* buckets must be closed first; internal to the catcher */
    PROGRESS_LOG_IS_READ, /* the rest is in the ring; internal to the catcher */
    PROGRESS_AT_HEAD,
    PROGRESS_NEEDS_LOG, /* of the shard `waits_for_shard` */
    PROGRESS_NEEDS_LANE,
    PROGRESS_OUT_OF_MEMORY,
    PROGRESS_COMPLETE, /* everything up to the client's `until` was given */
    PROGRESS_OVERTAKEN /* the log was trimmed while it was being read */
};

/* Reads as much as one step and the turn's budget permit. */
enum progress catcher_read(struct catcher *catcher);
/* Requests the batch of this shard's log that it needs, unless one has been requested. */
void catcher_ask_log(struct catcher *catcher, uint32_t shard);

/* The id after which it continues in the log of this shard. */
uint64_t catcher_after(const struct catcher *catcher, uint32_t shard);
/* Whether an event this new has passed, even if a rewind has lost it since. */
bool catch_up_has_heard_of(const struct catch_up *catch_up, uint64_t id);
/* The cursor with which it could resume. */
struct sl_cursor catcher_cursor(const struct catcher *catcher);
/* Whether everything that its cursor covers has passed here, except in shards that are behind. */
bool catcher_is_not_ahead(const struct catcher *catcher);
/* The same, including those shards. Always true when counting, because it only has what it has
 * counted here. */
bool catcher_is_in_step(const struct catcher *catcher);
/* Skips everything that has passed: it does not want it, or has it. */
void catcher_skip_to_head(struct catcher *catcher);
/* Events of the shard with ids in (from, to] are late, or may be: tells the client if its cursor
 * covers them. 0; -ENOMEM. */
int catcher_tell_late(struct catcher *catcher, uint32_t shard, uint64_t from, uint64_t to);
/* It counts, and will not find unlogged events that have passed. 0; -ENOMEM. */
int catcher_tell_unlogged(struct catcher *catcher);
/* Whether the cursor `had` of a client of the lane covers events after `from`, up to `to`. If the
 * lane counts or picks, it covers the whole bucket. *ret_to: the end of what it covers. */
bool catch_up_claims(const struct lane *lane, uint64_t had, uint64_t from, uint64_t to,
                     uint64_t *ret_to);
/* A client with `passed` lacks events of shards that are behind: tells it, once for each shard, if
 * its cursor covers them. 0; -ENOMEM. */
int catcher_tell_behind(struct catcher *catcher, const struct sl_cursor *passed);
/* If its lane counts: what rewinds have lost of the bucket of its cursor, and of later ones, while
 * it was away, of all shards together; `to` 0: nothing. Clients of other lanes find it in the ring
 * or the log. */
struct gap catcher_lost(const struct catcher *catcher);
/* Tells it about that. 0; -ENOMEM. */
int catcher_tell_what_is_lost(struct catcher *catcher);
/* If its lane counts: begins with the bucket after the cursor `had`, or of the first event of
 * `lost`. 0; -ENOMEM. */
int catcher_count_from(struct catcher *catcher, const struct gap *lost);
/* Begins with the open bucket of its counter, which must be empty. */
void catcher_begin_counting(struct catcher *catcher);
/* Begins before these events, which have passed, but were not included in the counts that the
 * client was sent: they are read again, with everything that has passed since the first of them.
 * true: the client must be told that it will not find unlogged ones. */
bool catcher_begin_before(struct catcher *catcher, const struct told_list *held);
/* A plain cursor covers events that have not arrived from a shard that is behind, and events that
 * arrived late after it was issued: tells the client. 0; -ENOMEM. */
int catcher_tell_what_is_late(struct catcher *catcher);
/* Its counts are no longer valid, or the lane's filter has changed. 0; -ENOMEM. */
int catcher_count_again(struct catcher *catcher);
/* It needs no more batches. */
void catcher_release_batches(struct catcher *catcher);
/* The approximate number of events by which it is behind. */
uint64_t catcher_events_behind(const struct catcher *catcher);

/* Gives it a message of ours, and takes the caller's reference; NULL: -ENOMEM. 0; -ENOMEM. */
int catcher_give_control_take(struct catcher *catcher, struct event *event);
/* Reports the posts that were not sent. 0; -ENOMEM: they remain to be reported. */
int catcher_tell_left_out(struct catcher *catcher);

/* Creates a catcher for a client that is live, and will be in this lane then. It continues in the
 * ring with what it is owed, or, if that is nothing, with the entry of this sequence. NULL: out of
 * memory. */
struct catcher *catcher_take_over(struct catch_up *catch_up, struct lane *lane,
                                  struct client *client, uint64_t sequence);
/* catcher_new(): for a reader of the lane's outbox; NULL: out of memory. catcher_start(): moves the
 * client to the catcher's outbox. catcher_enter(): appends it to the list of that state.
 * catcher_evict(): the client must go. */
struct catcher *catcher_new(struct catch_up *catch_up, struct lane *lane, struct client *client);
void catcher_start(struct catcher *catcher);
void catcher_enter(struct catcher *catcher, enum catcher_state state);
void catcher_evict(struct catcher *catcher, enum disconnect_reason reason);
/* Continues in the ring: it has everything before this sequence, and what its position says. */
void catcher_begin_in_ring(struct catcher *catcher, uint64_t sequence);

/* What the client has of the shard before the first event or gap that it is owed. */
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

/* --- catch_up_job.c --- */

/* The job works when the idle handle runs. */
void catch_up_enqueue_job(struct catch_up *catch_up, struct catch_up_job *job);
/* The first job works until clock_monotonic_us() reaches `until_us`, and then moves to the end of
 * the list. */
void catch_up_run_jobs(struct catch_up *catch_up, uint64_t until_us);
/* A batch has arrived that a job may have requested: waiting jobs check it. */
void catch_up_wake_jobs(struct catch_up *catch_up, uint32_t shard, uint64_t to,
                        const struct cached_batch *batch);

void catch_up_sample_clocks(struct catch_up *catch_up);
/* By the clocks as sampled last. */
uint64_t catch_up_happened_ms(const struct catch_up *catch_up, const struct event *event);
