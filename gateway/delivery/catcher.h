/* gateway/delivery/catcher.h - inside catch_up: where one client stands that catches up, and what
 * it is given next.
 *
 * catcher_read() reads the ring or the log and owes the lane's events to the catcher's own outbox;
 * catch_up.c decides when, sends what is owed, and waits for what is missing.
 *
 * The seam: a position in the ring is exact. Whoever reads a log has an id for each shard, and the
 * ring can be entered when it has lost no event above any of them; then events at or below these
 * ids are passed over. The log is read ahead of the live channel, so an id may be above the newest
 * that has passed: such a catcher reads on in the ring until that event has passed, too.
 *
 * After a rewind ids of a shard are lower than some before, until they have caught up. Then an id
 * alone does not say whether the client was there before or after; where it stands in the ring
 * does. One that stands behind the gap only has everything before the gap, and the gap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/delivery/catch_up.h"
#include "gateway/delivery/look_back.h"
#include "gateway/intake/gap.h"

enum catcher_state {
    CATCHER_RUNS,
    CATCHER_WAITS_FOR_SOCKET,
    CATCHER_WAITS_FOR_LANE,
    CATCHER_WAITS_FOR_LOG,
    CATCHER_WAITS_FOR_HEAD,
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
    uint64_t sequence;        /* the next to read in the ring; while reading the log: a guess */
    uint64_t unlogged_from;   /* sequence: events without an id are owed from here on */
    uint64_t reached;         /* of what had passed before `reached_at`, all up to this id */
    uint64_t reached_at;      /* has been given; a sequence */
    uint64_t reaches;         /* while it reads the log: `reached` may not go beyond */
    uint64_t entered_ring_at; /* of all shards up to there then; a gap that ends behind is owed */
    struct gap rewound;       /* the last it was told of since it entered the ring */
    uint64_t left_ring_at;    /* cursor then; where a gap of unlogged events begins */
    uint64_t had;             /* the cursor it came with; that event is not sent again */
    uint32_t waits;           /* for batches, since it has read of one */
    uint64_t batch;           /* the number of the one it reads */
    uint64_t came_after;      /* the number of the last batch that was asked for before it came */
    uint64_t begun; /* a bit for each shard where `after` is an event that passed or was logged */
    uint64_t max_lag_ms;
    uint64_t fed_wall_ms;          /* when the newest event that it was given happened */
    uint64_t after[SL_SHARDS_MAX]; /* by shard: what it wants of it up to this id has been given */
    uint64_t skips[SL_SHARDS_MAX]; /* by shard: the ring's entries of it up to this sequence, which
                                      is that of a rewound gap, are behind it */
};

struct catch_up {
    struct catch_up_settings settings;
    const struct ring *ring;
    struct log_cache *log;
    struct list all, running, at_head, looking_back;
    struct list waiting[SL_SHARDS_MAX]; /* for batches of this shard's log */
    uv_idle_t idle;
    uv_timer_t tick_timer;
    unsigned open_handles;
    uint64_t wall_ms, monotonic_ms; /* when the turn, or what is done now, began */
    size_t budget;                  /* left in this turn; bytes */
};

enum progress {
    PROGRESS, /* there may be more, now */
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

/* The newest cursor up to which everything that has passed has been owed to it. */
uint64_t catcher_position(const struct catcher *catcher);
/* Of all that has passed until now, it has been given everything up to there. */
void catcher_has_reached(struct catcher *catcher, uint64_t cursor);
/* Everything that it has been given has passed here, too. */
bool catcher_is_not_ahead(const struct catcher *catcher);
/* About how many events it is behind. */
uint64_t catcher_events_behind(const struct catcher *catcher);

static inline void catch_up_spend(struct catch_up *catch_up, size_t bytes)
{
    catch_up->budget -= bytes < catch_up->budget ? bytes : catch_up->budget;
}

void catch_up_sample_clocks(struct catch_up *catch_up);
/* By the clocks as sampled last. */
uint64_t catch_up_happened_ms(const struct catch_up *catch_up, const struct event *event);
