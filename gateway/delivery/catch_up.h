/* gateway/delivery/catch_up.h - sends a client everything from a cursor to the head: from the ring
 * or the log; then the client is live.
 *
 * A client that resumes with a cursor, or is owed more than permitted, leaves the readers of its
 * lane's outbox and gets a catcher. This has a position and a small outbox of its own, which is
 * filled again only when the socket has accepted everything in it. So a client that does not read
 * uses the same small memory, however long it does not read. The catcher reads
 *
 *     the ring    by sequence, if the ring has lost nothing after its ids
 *     the log     by ids, in batches that all catchers share, until the ring has what follows
 *
 * At the end of the ring the client rejoins the readers of its lane, between two events. So it
 * misses nothing and gets nothing twice, in the order of ids over all shards.
 *
 * A shard may be behind here and not have been where the client was before, or vice versa. Then the
 * client's cursor differs from that of the lane's readers, and some late events are not new to it.
 * Such a client keeps up next to the lane with its own outbox until the shard has caught up. It is
 * woken when the lane is owed something, and reads that in the ring, so a client with few events
 * costs little. If its cursor does not say what it has, it is told what it may lack (`late`).
 *
 * In a turn of the loop, all catchers together do a limited amount of work, one after the other, so
 * that live clients are not delayed. Internal to delivery; belongs to the thread of its loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/delivery/deliver.h"
#include "gateway/delivery/lane.h"
#include "gateway/delivery/log_cache.h"
#include "gateway/delivery/position.h"
#include "gateway/delivery/ring.h"

struct catch_up;
struct catcher;

/* Events of a shard with ids in (from, to] have arrived late. */
struct late_range {
    uint64_t from, to; /* both 0: none */
};

struct catch_up_settings {
    uv_loop_t *loop;
    struct metrics *metrics;
    const struct ring *ring;
    const struct position *passed;
    const struct late_range *late; /* indexed by shard */
    const uint64_t *closed;        /* everything at or below this id has passed */
    struct outbox_counts *counts;
    uint64_t max_lag_ms;
};

/* Other work within the time budget of clients that catch up. Jobs run one at a time. */
enum job_progress { JOB_GOES_ON, JOB_WAITS_FOR_LOG, JOB_IS_DONE };

struct catch_up_job {
    /* Works until clock_monotonic_us() reaches `until_us`. `log` NULL: there is none. */
    enum job_progress (*work)(struct catch_up_job *job, struct log_cache *log, uint64_t until_us);
    /* A batch has arrived that was requested with log_cache_ask_back(), by any job. The job
     * works again. */
    void (*batch)(struct catch_up_job *job, uint32_t shard, uint64_t to,
                  const struct cached_batch *batch);
    struct list_node node; /* in the list of working or waiting jobs */
    bool waits;
};

/* NULL: out of memory. */
struct catch_up *catch_up_new(const struct catch_up_settings *settings);
/* No client may be catching up. The loop must run once more to close the handles. */
void catch_up_free(struct catch_up *catch_up);

/* Sets where the log is read; NULL: nowhere. */
void catch_up_set_log(struct catch_up *catch_up, struct log_cache *log);
/* The log of the shard has lost what was logged after this id. */
void catch_up_rewind(struct catch_up *catch_up, uint32_t shard, uint64_t from);
/* For clients that begin to catch up later. */
void catch_up_set_max_lag(struct catch_up *catch_up, uint64_t max_lag_ms);

/* The client, a reader of the lane's outbox that has been sent nothing yet, begins after `cursor`.
 * 0; -ENOMEM: nothing has changed. */
int catch_up_begin(struct catch_up *catch_up, struct lane *lane, struct client *client,
                   const struct sl_cursor *cursor);
/* The same, but it begins with the newest `last` past events that it wants, oldest first
 * (look_back.h), and is live then. */
int catch_up_begin_last(struct catch_up *catch_up, struct lane *lane, struct client *client,
                        uint32_t last, bool keeps_deletions);
/* The client, which is behind in the lane's outbox, continues on its own with what it is owed. 0;
 * -ENOMEM: nothing has changed. */
int catch_up_begin_behind(struct catch_up *catch_up, struct lane *lane, struct client *client);
/* The client, which is live in a lane that counts, has been sent counts that are no longer valid,
 * or would not be sent the next ones: it counts on its own until it can be live again. If that
 * fails, it is evicted. */
void catch_up_count_again(struct catch_up *catch_up, struct lane *lane, struct client *client);
/* The lane's filter has changed: its clients that catch up count their open buckets again. */
void catch_up_recount(struct lane *lane);
/* The mark of late events has been appended to the ring: live clients of the lane whose plain
 * cursor covers some of these events go back to that cursor, and are told. If that fails, a client
 * is evicted. */
void catch_up_tell_mark(struct catch_up *catch_up, struct lane *lane, const struct event *mark);
/* --- catch_up_sample.c --- */

/* The client of `from`, live or not, continues in `to`, which may be the same lane, and is told
 * that `percent` of its posts are sent from there on. 0; -ENOMEM: nothing has changed. */
int catch_up_sample(struct catch_up *catch_up, struct lane *from, struct lane *to,
                    struct client *client, uint32_t percent);
/* Whether it can be moved now. */
bool catch_up_may_sample(const struct catcher *catcher);
/* Whether it still resumes from the cursor that it came with. */
bool catch_up_is_resuming(const struct catcher *catcher);
/* Whether its socket is full. */
bool catch_up_waits_for_socket(const struct catcher *catcher);

/* The job works from the next turn on, until it is done. */
void catch_up_job_start(struct catch_up *catch_up, struct catch_up_job *job);
/* Stops the job in any state, also if it is done. */
void catch_up_job_stop(struct catch_up *catch_up, struct catch_up_job *job);

/* Removes the client, which is in no outbox then. */
void catch_up_leave(struct catcher *catcher);

/* Everything up to this cursor has been sent. */
struct sl_cursor catch_up_cursor(const struct catcher *catcher);
/* The id of the last event that it has read. */
uint64_t catch_up_reached(const struct catcher *catcher);
/* Its approximate distance from the head: the number of events, wanted or not, and the age of the
 * newest event that it was given. */
void catch_up_distance(const struct catcher *catcher, uint64_t wall_ms, uint64_t *ret_events,
                       uint64_t *ret_ms);
/* Visits all clients that catch up. */
void catch_up_visit(const struct catch_up *catch_up, client_visit_fn visit, void *owner);
/* The socket has accepted everything that was offered. */
bool catch_up_is_unblocked(const struct catcher *catcher);

/* The client's socket has room again. */
void catch_up_writable(struct catcher *catcher);
/* Nothing is sent to the client any more; it leaves soon. */
void catch_up_suspend(struct catcher *catcher);

/* Time has passed, so that those who count may have something to do. */
void catch_up_wake_counting(struct catch_up *catch_up);
/* Events that are in the ring have passed. */
void catch_up_head_moved(struct catch_up *catch_up);
/* Owes the newest event of the ring to the lane's clients, like lane_append(), and to those that
 * keep up next to it. */
void catch_up_owe(struct lane *lane, struct event *event, struct sl_slice tail);
/* Wakes those that keep up next to the lane, or next to any lane: an event follows that they may
 * have to look at, even if they do not want it, or one that cannot be matched yet. */
void catch_up_wake_lane(struct lane *lane);
void catch_up_wake(struct catch_up *catch_up);
/* The lane can match events now. */
void catch_up_lane_ready(struct lane *lane);

/* The client's lane, whether it is live or catches up; NULL: none. */
struct lane *catch_up_lane_of(const struct client *client);
/* Evicts all clients of the lane, live or catching up. */
void catch_up_evict_lane(struct lane *lane, enum disconnect_reason reason);
