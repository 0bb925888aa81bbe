/* gateway/delivery/catch_up.h - from a cursor to the head: ring first, else the log, then live.
 *
 * A client that comes with a cursor, or was owed more than it may be, leaves the readers of its
 * lane's outbox and gets a catcher: its position, and a small outbox of its own, which is filled
 * only when the socket has taken all that was in it. So a client that does not read costs the same
 * little memory however long it does not. The catcher reads
 *
 *     the ring    by sequence, when nothing behind its ids has been lost from it
 *     the log     by ids, in batches that all catchers share, until the ring holds what follows
 *
 * and at the end of the ring the client joins the readers of its lane again, between two events:
 * none missing, none twice, in the order of ids over all shards. Unless it came with more of a
 * shard than has passed here, because the shard is behind here and was not, or less, where the
 * client was: then its cursor is not that of the lane's readers, and some of what comes late is
 * nothing new to it. It keeps up beside the lane, with its own outbox, until the shard has come as
 * far. It is woken when the lane is owed something, and reads that in the ring; so one that wants
 * little costs little. It is told what it may lack (`late`), if its cursor does not say what it
 * has.
 *
 * All catchers together do a bounded amount of work in a turn of the loop, each in its turn, so
 * that those who are live wait for no one. Inside of delivery; belongs to the thread of its loop.
 */
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

/* Events of a shard with ids in (from, to] have come late. */
struct late_range {
    uint64_t from, to; /* 0, 0: none */
};

struct catch_up_settings {
    uv_loop_t *loop;
    struct metrics *metrics;
    const struct ring *ring;
    const struct position *passed;
    const struct late_range *late; /* by shard */
    const uint64_t *closed;        /* everything at or below this id has passed */
    struct outbox_counts *counts;
    uint64_t max_lag_ms;
};

/* Work of another kind in the time of those who catch up, of which all such guests have one at a
 * time. */
enum guest_progress { GUEST_GOES_ON, GUEST_WAITS_FOR_LOG, GUEST_IS_DONE };

struct catch_up_guest {
    /* Works until clock_monotonic_us() is `until_us`. `log` NULL: there is none. */
    enum guest_progress (*work)(struct catch_up_guest *guest, struct log_cache *log,
                                uint64_t until_us);
    /* A batch has come that was asked for by log_cache_ask_back(), by whomever. It works again. */
    void (*batch)(struct catch_up_guest *guest, uint32_t shard, uint64_t to,
                  const struct cached_batch *batch);
    struct list_node node; /* in the list of those who work, or that of those who wait */
    bool waits;
};

/* NULL: out of memory. */
struct catch_up *catch_up_new(const struct catch_up_settings *settings);
/* No client is catching up. The loop must run once more to let go of the handles. */
void catch_up_free(struct catch_up *catch_up);

/* Where the log is read; NULL: nowhere. */
void catch_up_set_log(struct catch_up *catch_up, struct log_cache *log);
/* Of those who begin from now on. */
void catch_up_set_max_lag(struct catch_up *catch_up, uint64_t max_lag_ms);

/* The client, a reader of the lane's outbox that has been sent nothing yet, begins behind `cursor`.
 * 0; -ENOMEM: nothing has changed. */
int catch_up_begin(struct catch_up *catch_up, struct lane *lane, struct client *client,
                   const struct sl_cursor *cursor);
/* The same, but it begins with the newest `last` events that it wants of what has passed, the
 * oldest of them first (look_back.h), and is live then. */
int catch_up_begin_last(struct catch_up *catch_up, struct lane *lane, struct client *client,
                        uint32_t last, bool keeps_deletions);
/* The client, which is behind in the lane's outbox, goes on by itself with what it is owed. 0;
 * -ENOMEM: nothing has changed. */
int catch_up_fall(struct catch_up *catch_up, struct lane *lane, struct client *client);
/* The client, which is live in a lane that counts, has been told counts that do not hold any more,
 * or will not be told the next ones: it counts by itself, and is live again then. Who cannot has to
 * go. */
void catch_up_count_again(struct catch_up *catch_up, struct lane *lane, struct client *client);
/* The lane wants something else: those of its clients that catch up count their open buckets again.
 */
void catch_up_recount(struct lane *lane);
/* The mark of late events has just been appended to the ring: live clients of the lane that came
 * with a plain cursor which claims some of them go back to it, and are told. Who cannot be has to
 * go. */
void catch_up_tell_mark(struct catch_up *catch_up, struct lane *lane, const struct event *mark);
/* --- catch_up_sample.c --- */

/* The client, which is `from`'s, live or not, goes on in `to`, which may be the same lane, and is
 * told that `percent` of its posts are sent from there on. 0; -ENOMEM: nothing has changed. */
int catch_up_sample(struct catch_up *catch_up, struct lane *from, struct lane *to,
                    struct client *client, uint32_t percent);
/* Can it be moved like that now? */
bool catch_up_may_sample(const struct catcher *catcher);
/* Is it on its way from a cursor that it came with? */
bool catch_up_is_resuming(const struct catcher *catcher);
/* Its socket is full. */
bool catch_up_waits_for_socket(const struct catcher *catcher);

/* From the next turn on, until it is done. */
void catch_up_guest_start(struct catch_up *catch_up, struct catch_up_guest *guest);
/* Wherever it is; fine if it is done. */
void catch_up_guest_stop(struct catch_up *catch_up, struct catch_up_guest *guest);

/* Takes the client out; it is nowhere then. */
void catch_up_leave(struct catcher *catcher);

/* Everything up to there has been sent. */
struct sl_cursor catch_up_cursor(const struct catcher *catcher);
/* The id of what it has read last. */
uint64_t catch_up_reached(const struct catcher *catcher);
/* About how far it is behind the head: events, wanted by its filter or not, and the age of the
 * newest that it has been given. */
void catch_up_distance(const struct catcher *catcher, uint64_t wall_ms, uint64_t *ret_events,
                       uint64_t *ret_ms);
/* All that catch up. */
void catch_up_visit(const struct catch_up *catch_up, client_visit_fn visit, void *owner);
/* The socket has taken all that it was offered. */
bool catch_up_is_unblocked(const struct catcher *catcher);

/* The client's socket has room again. */
void catch_up_writable(struct catcher *catcher);
/* Nothing is sent to the client any more; it leaves soon. */
void catch_up_suspend(struct catcher *catcher);

/* Time has passed, of which those who count may have waited for more. */
void catch_up_wake_counting(struct catch_up *catch_up);
/* All that the ring has passed, or something has. */
void catch_up_head_moved(struct catch_up *catch_up);
/* Owes the lane's clients the event that the ring has got last: as lane_append(), and to those who
 * keep up beside it. */
void catch_up_owe(struct lane *lane, struct event *event, struct sl_slice tail);
/* Those who keep up beside the lane, or beside any, read on from what has passed: an event comes
 * which they may have to look at, whether they want it or not, or one that cannot be judged yet. */
void catch_up_wake_lane(struct lane *lane);
void catch_up_wake(struct catch_up *catch_up);
/* The lane can judge events now. */
void catch_up_lane_ready(struct lane *lane);

/* The client's lane, whether it is live or catches up; NULL: it is in none. */
struct lane *catch_up_lane_of(const struct client *client);
/* The lane's clients, those that are live and those that catch up, have to go. */
void catch_up_evict_lane(struct lane *lane, enum disconnect_reason reason);
