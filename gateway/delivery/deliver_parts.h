/* gateway/delivery/deliver_parts.h - internal to deliver: what its files share.
 *
 *     deliver.c      events are passed in and matched; questions of clients
 *     subscribe.c    clients come and go, and with them lanes and subscriptions
 *     sampling.c     sends a sample to clients that would fall behind, in other lanes
 *     trend_source.c lanes that compute trends for others
 *     home_lane.c    lanes of home feeds
 *     judge.c        matches the events of a segment for lanes that catch up
 *     lane_count.c   lanes that count
 *     lane.c         creates, shares and frees lanes, and owes them events
 *     pace.c         decides when lanes are written to
 *     binding.c      where subscriptions lead
 *
 * Each file calls only those below it. */
#pragma once

#include <uv.h>

#include "base/hash_map.h"
#include "filters/filter_index.h"
#include "gateway/delivery/catch_up.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/home.h"
#include "gateway/delivery/lane.h"
#include "gateway/delivery/reducer.h"
#include "gateway/delivery/ring.h"
#include "gateway/delivery/rule_set.h"

/* The target of a subscription. */
struct binding {
    struct lane *lane; /* NULL: none, and the subscription will be removed */
    union {
        bool *rule_hit;        /* NULL: the lane has only this filter */
        uint32_t next_removal; /* if there is no lane; NO_SUBSCRIPTION: the last one */
    };
};

#define NO_SUBSCRIPTION UINT32_MAX

struct deliver {
    struct deliver_settings settings;
    struct compressor *compressor; /* NULL: no compression */
    struct compressor_counts counted_compression;
    struct reducer reducer;
    uint64_t counted_reductions;
    struct outbox_counts counts, counted; /* `counted`: the part that is in the metrics already */
    struct sl_words *words;
    struct sl_filter_index *index;
    struct sl_match_set *matches;
    struct binding *bindings; /* by subscription number */
    size_t binding_capacity;
    uint32_t first_removal; /* of subscriptions without a lane; NO_SUBSCRIPTION: none */
    uv_idle_t *remover;     /* runs while there are any */
    size_t key_bytes;       /* of the keys in `lanes` and in the lanes */
    struct hash_map *lanes; /* key -> struct lane; shared lanes */
    struct home *home;
    struct ring ring;
    struct catch_up *catch_up;
    struct list dirty;   /* outboxes with new entries in this turn */
    struct list due;     /* outboxes that gather, soonest first */
    struct list touched; /* lanes with rules that match the current event */
    uv_timer_t *timer;
    struct list all_lanes;
    struct list owing;                      /* lanes with events since clients were last owed any */
    struct list judging;                    /* lanes with one filter and clients that catch up */
    void (*overrun)(struct client *client); /* called for a client that is owed too much */
    bool has_begun;                         /* all shards have been known up to the same point */
    struct list counting;                   /* lanes with a counter */
    struct list closing;                    /* lanes with buckets to be closed, in turn */
    uv_idle_t *closer;                      /* runs while there are any */
    size_t close_work;                      /* work left in this turn, in units of trends.h */
    struct list miscounted; /* lanes whose clients count again at the end of the turn */
    struct list trend_sources;
    struct list sampling;      /* clients that prefer a sample to falling behind */
    struct list sampled_lanes; /* lanes that send a sample */
    uv_timer_t *sampler;       /* runs while there are such clients */
    bool is_ending;            /* nothing runs without a client */
    uv_timer_t *refresher;     /* for lanes that send the open bucket */
    uint64_t closed;           /* everything at or below this id has passed */
    uint64_t next_close;       /* the lowest id of a bucket that is to be closed, in all lanes */
    uint64_t lanes_made;
    size_t event_bytes;                    /* memory of all events that are kept or owed */
    struct position passed;                /* what has passed, by ids of events */
    struct sl_cursor head;                 /* the same as a cursor */
    struct late_range late[SL_SHARDS_MAX]; /* by shard: late events without a mark yet */
    uint64_t behind_shards;                /* shards (bits) for which the order does not wait */
    uint64_t lows[SL_SHARDS_MAX];          /* of these shards: everything up to it has passed */
};

/* For clients with the same framing as this one. `gather_ms` < 0: the default. NULL: out of
 * memory. */
struct lane *lane_new(struct deliver *deliver, const struct client *client, int gather_ms);
/* NULL is allowed; it must have no clients. */
void lane_free(struct lane *lane);
/* The lane can be found in `lanes` with this key. 0; -ENOMEM. */
int lane_share(struct lane *lane, struct sl_slice key);
/* New clients no longer find the lane. */
void lane_unshare(struct lane *lane);

/* Events that match `filter` go to `lane`; for named rules, all hits are collected first. 0;
 * -ENOMEM. */
int binding_add(struct deliver *deliver, struct sl_filter *filter, struct lane *lane,
                bool *rule_hit, uint32_t *ret_subscription);
/* The subscription leads nowhere; the index removes the filter in one of the next turns. */
void binding_remove(struct deliver *deliver, uint32_t subscription);
/* Removes some of those filters from the index: at least one, and more until their keys have
 * BINDING_TURN_BYTES. Returns how many. */
size_t binding_forget_some(struct deliver *deliver);

enum { BINDING_TURN_BYTES = 256 << 10 };

/* --- home_lane.c --- */

/* The posts of this user's home feed go to the lane. 0; -ENOMEM; -EIO: the sets of the feed cannot
 * be read now. */
int lane_watch_home(struct lane *lane, struct sl_slice user, unsigned types);
/* The same feed and types as another lane. */
int lane_watch_home_of(struct lane *lane, const struct lane *other);

/* --- trend_source.c --- */

/* Finds or creates the lane that computes these trends of this filter for all lanes. NULL: out of
 * memory. */
struct lane *trend_source_find(struct deliver *deliver, struct sl_filter *filter,
                               const struct count_question *question);
/* The lane is sent the trends that `source` computes. */
void trend_source_add_outlet(struct lane *source, struct lane *outlet);
/* Removes the outlet, which is being freed; with the last one the source ends, unless it runs in
 * advance. */
void trend_source_forget_outlet(struct lane *outlet);
/* A client has left the lane; with the last one the lane is freed. */
void lane_forget_client(struct lane *lane);
/* Whether a client with this cursor can be sent the rest by the source. */
bool trend_source_goes_on_from(const struct lane *source, const struct sl_cursor *cursor);
/* No source runs in advance any more (deliver->is_ending): unused ones end now, others with their
 * last client. */
void trend_sources_end(struct deliver *deliver);

/* The cursor of a client of the lane that has been sent everything. */
static inline struct sl_cursor lane_head(const struct lane *lane)
{
    if (lane->source)
        return (struct sl_cursor){.id = lane->source->told};
    if (lane->left_out.posts > 0)
        return lane->left_out.before;
    return lane->counter ? counter_cursor(lane->counter) : lane->deliver->head;
}

/* --- sampling.c --- */

/* The client has just subscribed; or it leaves. */
void sampling_join(struct deliver *deliver, struct client *client);
void sampling_leave(struct deliver *deliver, struct client *client);
/* For the timer: reports the posts that were not sent to the lanes' clients; sends a client less
 * (-1) or more (1), if it can be moved now. */
void sampling_tell(struct deliver *deliver);
void sampling_move(struct deliver *deliver, struct client *client, int direction);

/* Everything at or below `id` has passed: lanes close the buckets that have ended. */
void counts_close(struct deliver *deliver, uint64_t id);
/* Continues with that as far as work and time permit. Not while an event is matched. true: more is
 * left. */
bool counts_go_on(struct deliver *deliver, size_t *work);

/* Writes what may be sent now. */
void pace_turn_end(struct deliver *deliver);
/* Also writes what is being gathered. */
void pace_flush_all(struct deliver *deliver);
/* The outbox has new entries: it is written to at the end of the turn, or later. */
void pace_queue(struct deliver *deliver, struct outbox *outbox);
void pace_unqueue(struct deliver *deliver, struct outbox *outbox);
/* Updates the metrics. */
void pace_tell_metrics(struct deliver *deliver);
