/* gateway/delivery/deliver_parts.h - inside deliver: what its files share.
 *
 *     deliver.c      an event comes in and is matched; what a client may ask
 *     subscribe.c    clients come and go, and with them lanes and subscriptions
 *     sampling.c     who would fall behind is sent a part, in another lane
 *     trend_source.c lanes that find trends for others
 *     home_lane.c    lanes that a home feed feeds
 *     judge.c        what of a segment a lane wants that catches up
 *     lane_count.c   lanes that count
 *     lane.c         lanes are made, shared, owed events, freed
 *     pace.c         when lanes are written to
 *     binding.c      where a subscription leads
 *
 * Each calls those below it, and none of those above. */
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

/* Where a subscription leads. */
struct binding {
    struct lane *lane; /* NULL: nowhere, and it is going to be removed */
    union {
        bool *rule_hit;        /* NULL: the lane has this one filter only */
        uint32_t next_removal; /* if it leads nowhere; NO_SUBSCRIPTION: it is the last */
    };
};

#define NO_SUBSCRIPTION UINT32_MAX

struct deliver {
    struct deliver_settings settings;
    struct compressor *compressor; /* NULL: nothing is compressed */
    struct compressor_counts counted_compression;
    struct reducer reducer;
    uint64_t counted_reductions;
    struct outbox_counts counts, counted; /* `counted`: what the metrics have been told */
    struct sl_words *words;
    struct sl_filter_index *index;
    struct sl_match_set *matches;
    struct binding *bindings; /* by subscription number */
    size_t binding_capacity;
    uint32_t first_removal; /* subscriptions that lead nowhere; NO_SUBSCRIPTION */
    uv_idle_t *remover;     /* runs while there are any */
    size_t key_bytes;       /* of the keys in `lanes`, and of the lanes' own */
    struct hash_map *lanes; /* key -> struct lane, the shared ones */
    struct home *home;
    struct ring ring;
    struct catch_up *catch_up;
    struct list dirty;   /* outboxes with something new in this turn */
    struct list due;     /* outboxes that gather, soonest first */
    struct list touched; /* lanes with rules that were hit by the event at hand */
    uv_timer_t *timer;
    struct list all_lanes;
    struct list owing;                      /* lanes that had an event since nobody was owed any */
    struct list judging;                    /* lanes with one filter, and clients that catch up */
    void (*overrun)(struct client *client); /* it is owed too much */
    bool has_begun;                         /* all shards were known alike, once */
    struct list counting;                   /* lanes with a counter */
    struct list closing;    /* lanes that have buckets to close, one after the other */
    uv_idle_t *closer;      /* runs while there are any */
    size_t close_work;      /* that is left of this turn's, in units of trends.h */
    struct list miscounted; /* lanes whose clients count again at the end of the turn */
    struct list trend_sources;
    struct list sampling;      /* clients that would rather be sent a part than fall behind */
    struct list sampled_lanes; /* of which a part is sent */
    uv_timer_t *sampler;       /* runs while there are such clients */
    bool is_ending;            /* nothing goes on that nobody asks for */
    uv_timer_t *refresher;     /* for lanes that tell of the open bucket */
    uint64_t closed;           /* everything at or below this id has passed */
    uint64_t next_close;       /* the id of the first bucket of all lanes that is to be closed */
    uint64_t lanes_made;
    size_t event_bytes;     /* of all events that are kept or that somebody is owed */
    struct position passed; /* what has, by the ids of events */
    struct sl_cursor head;  /* the same as a cursor */
    struct late_range late[SL_SHARDS_MAX]; /* by shard: that no mark has told of yet */
    uint64_t behind_shards;                /* a bit for each that the order does not wait for */
    uint64_t lows[SL_SHARDS_MAX];          /* of these: all up to it has passed */
};

/* For clients framed as this one is. `gather_ms` < 0: the default. NULL: out of memory. */
struct lane *lane_new(struct deliver *deliver, const struct client *client, int gather_ms);
/* NULL is fine; no client is left in it. */
void lane_free(struct lane *lane);
/* From now on found in `lanes` by this key. 0; -ENOMEM. */
int lane_share(struct lane *lane, struct sl_slice key);
/* No further client finds the lane. */
void lane_unshare(struct lane *lane);

/* From now on events that match `filter` go to `lane`; named rules are collected first. 0; -ENOMEM.
 */
int binding_add(struct deliver *deliver, struct sl_filter *filter, struct lane *lane,
                bool *rule_hit, uint32_t *ret_subscription);
/* From now on they go nowhere; the index forgets the filter in one of the next turns. */
void binding_remove(struct deliver *deliver, uint32_t subscription);
/* Forgets so many of those filters as a turn has time for: at least one, then while they have no
 * more than BINDING_TURN_BYTES of keys. Returns how many. */
size_t binding_forget_some(struct deliver *deliver);

enum { BINDING_TURN_BYTES = 256 << 10 };

/* --- home_lane.c --- */

/* From now on the posts of this user's home feed go to the lane. 0; -ENOMEM; -EIO: the feed's sets
 * cannot be read now. */
int lane_watch_home(struct lane *lane, struct sl_slice user, unsigned types);
/* The same feed and types as the other lane. */
int lane_watch_home_of(struct lane *lane, const struct lane *other);

/* --- trend_source.c --- */

/* The lane that finds these trends of this filter, for whoever asks. NULL: out of memory. */
struct lane *trend_source_find(struct deliver *deliver, struct sl_filter *filter,
                               const struct count_question *question);
/* The lane is told what that one finds. */
void trend_source_add_outlet(struct lane *source, struct lane *outlet);
/* It is freed now, and with the last one the source, unless that stands. */
void trend_source_forget_outlet(struct lane *outlet);
/* A client has left the lane: with the last one the lane goes. */
void lane_forget_client(struct lane *lane);
/* Is who has been told everything up to this cursor told the rest by it? */
bool trend_source_goes_on_from(const struct lane *source, const struct sl_cursor *cursor);
/* None stands any more (deliver->is_ending): those that nobody asks go now, the others with the
 * last who asks. */
void trend_sources_end(struct deliver *deliver);

/* Where a client of the lane would go on that has been sent all. */
static inline struct sl_cursor lane_head(const struct lane *lane)
{
    if (lane->source)
        return (struct sl_cursor){.id = lane->source->told};
    if (lane->left_out.posts > 0)
        return lane->left_out.before;
    return lane->counter ? counter_cursor(lane->counter) : lane->deliver->head;
}

/* --- sampling.c --- */

/* The client has just subscribed; it leaves. */
void sampling_join(struct deliver *deliver, struct client *client);
void sampling_leave(struct deliver *deliver, struct client *client);
/* What a timer does: the lanes' clients are told what has been left out, and a client is sent less
 * (-1) or more (1), if it can be moved now. */
void sampling_tell(struct deliver *deliver);
void sampling_move(struct deliver *deliver, struct client *client, int direction);

/* Everything at or below `id` has passed: lanes are to close what is over. */
void counts_close(struct deliver *deliver, uint64_t id);
/* They do, as far as there is work to spend, and time. Not while an event is matched. true: there
 * is more to do. */
bool counts_go_on(struct deliver *deliver, size_t *work);

/* Writes what may go out now. */
void pace_turn_end(struct deliver *deliver);
/* And what is being gathered, too. */
void pace_flush_all(struct deliver *deliver);
/* The outbox has something new: it is written to at the end of the turn, or later. */
void pace_queue(struct deliver *deliver, struct outbox *outbox);
void pace_unqueue(struct deliver *deliver, struct outbox *outbox);
/* What has been written, and what is kept. */
void pace_tell_metrics(struct deliver *deliver);
