/* gateway/delivery/lane.h - internal to delivery: an outbox and the source of its events.
 *
 * The source is one subscription (shared by all clients with the same filter), the named rules of
 * one client, the home feed of one user, or, for trends, another lane that computes them for all
 * formats (trend_source.c). */
#pragma once

#include "filters/sample.h"
#include "gateway/counts/counter.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/home.h"
#include "gateway/delivery/left_out.h"
#include "gateway/delivery/outbox.h"
#include "gateway/delivery/segment.h"

struct lane {
    struct outbox outbox; /* for live clients */
    struct list catchers; /* for clients that catch up */
    struct deliver *deliver;
    uint64_t until;              /* of all its clients; 0: no end */
    struct rule_set *rules;      /* its source instead of a filter, or NULL */
    struct counter *counter;     /* NULL: no client has reached the head yet */
    struct list_node closing;    /* in deliver->closing: buckets have ended, or events are held */
    struct list_node miscounted; /* in deliver->miscounted: what it sent is not valid */
    struct count_question question; /* for counting or picking; else .bucket_ms is 0 */
    struct list_node owing;         /* in deliver->owing: live clients may be owed something */
    struct told_list held;          /* .id: everything up to it had passed when the event came */
    struct lane *source;            /* the lane that computes its trends, or NULL */
    struct trend_source *finds;     /* if it computes trends itself; else NULL */
    uint64_t number;                /* unique, from 1 */
    char *key;                      /* with which clients find it; NULL: not shared */
    size_t key_size;
    char *tail;                     /* of all its clients; NULL: none */
    bool is_subscribed;             /* `subscription` is valid */
    uint32_t subscription;          /* for the one filter */
    bool awaits_rules;              /* with `rules`: the client resumes when they are complete */
    struct home_watch watch;        /* for a home feed */
    struct list_node node;          /* in deliver->all_lanes */
    struct list_node touched;       /* in deliver->touched: its rules match the current event */
    struct list_node judging;       /* in deliver->judging: one filter, and clients that catch up */
    struct list_node counting;      /* in deliver->counting: it has a counter */
    uint64_t refreshed_ms;          /* when the open bucket was last sent, loop's clock */
    struct list_node outlet;        /* in source->outlets */
    struct list outlets;            /* lanes that are sent the trends found here */
    uint64_t told;                  /* the id up to which these have been sent */
    uint32_t percent;               /* the part of its posts that is sent; 100: all */
    uint32_t sample_ppm;            /* the same as a sample of ids */
    struct left_out left_out;       /* posts that were not sent, to be reported */
    uint64_t passed[SL_SHARDS_MAX]; /* by shard: what had passed before the first of those */
    struct list_node sampled;       /* in deliver->sampled_lanes */
};

/* Whether its events are counted, and never sent. */
static inline bool lane_counts(const struct lane *lane)
{
    return lane->question.bucket_ms && !lane->question.pick.posts;
}

/* Whether this post is not part of the sample. Late and unlogged posts are always sent. */
static inline bool lane_leaves_out(const struct lane *lane, const struct event *event)
{
    return lane->percent < 100 && event->kind == EVENT_POST && event->id && !event->is_late &&
           !sl_sample_has(lane->sample_ppm, event->view.sample_id);
}

/* The memory of a shared lane's key, which is stored twice, with a prefix. */
static inline size_t lane_key_bytes(size_t filter_key_size)
{
    return 2 * (filter_key_size + 80);
}

/* Owes the event to the lane's live clients; evicts them if out of memory. */
void lane_append(struct lane *lane, struct event *event, struct sl_slice tail);

/* Sends all clients a keep-alive now, unless events are about to be sent. */
void lane_keep_alive(struct lane *lane, bool says_cursor, const struct sl_cursor *cursor);
/* The same for a message of ours; `head` is the cursor of a client that has everything before
 * it. */
void lane_owe(struct lane *lane, struct event *event, const struct sl_cursor *head,
              struct sl_slice tail);
/* The same for one of several messages, during which no client falls behind. lane_send() must
 * follow. */
void lane_owe_some(struct lane *lane, struct event *event, const struct sl_cursor *head,
                   struct sl_slice tail);
void lane_send(struct lane *lane);

/* Reports the posts that were not sent to its clients. 0; -ENOMEM: the clients are evicted, and the
 * report remains. */
int lane_tell_left_out(struct lane *lane);

/* --- lane_count.c --- */

/* Counts the event, or gap, that passes. `tail`: see lane_append(). */
void lane_count(struct lane *lane, struct event *event, struct sl_slice tail);
/* Its filter has changed: its clients count the open bucket again. */
void lane_recount(struct lane *lane);
/* A client that has counted on its own up to the head becomes live: the lane takes its counter if
 * it has none. */
void lane_take_counter(struct lane *lane, struct counter **counter);
void lane_drop_counter(struct lane *lane);

/* Reads the words of the event, if the lane computes trends. 0; -ENOMEM. */
int lane_read_words(struct lane *lane, const struct event *event, struct count_keys *keys);
/* Whether it counts what passes, and nothing is to be sent again. */
bool lane_is_settled(const struct lane *lane);
/* For a lane that computes trends: owes its outlets' live clients what was found. */
void lane_tell_outlets(struct lane *lane, const struct told *told, const struct sl_cursor *before);

/* Whether it is known yet which events the lane wants. */
bool lane_is_ready(const struct lane *lane);
/* The first event of the segment, from `index` on, that the lane wants; segment->count: none.
 * Filters do not change, so a segment is matched once, in parts, for all lanes with clients that
 * catch up. Named rules and home feeds are matched as they are now. *ret_tail is inserted before
 * the closing brace (valid until the next call; without data: nothing). 0; -ENOMEM. */
int lane_next_wanted(struct lane *lane, struct segment *segment, size_t index, size_t *ret_index,
                     struct sl_slice *ret_tail);

/* A client of the lane begins to catch up, or has finished. A lane without clients is freed. */
void lane_add_catcher(struct lane *lane, struct list_node *node);
void lane_remove_catcher(struct lane *lane, struct list_node *node);

struct rule_set *rule_set_new(struct lane *lane);
void rule_set_free(struct rule_set *rules);
/* The names of the matching rules, for the end of the event; the hits are cleared. Valid until the
 * next call; without data: out of memory. */
struct sl_slice rule_set_name_hits(struct rule_set *rules);
/* The same for a lane that counts: rule_set_hits() returns them then. 0; -ENOMEM. */
int rule_set_take_hits(struct rule_set *rules);
/* For the last event; valid until the rules change. */
struct count_keys rule_set_hits(const struct rule_set *rules);
/* Whether one of the rules matches the event, whose words must have been read. 1: yes, *ret_tail
 * names the rules; 0; -ENOMEM. */
int rule_set_wants(struct rule_set *rules, const struct event *event, const struct sl_words *words,
                   struct sl_slice *ret_tail);
