/* gateway/delivery/lane.h - inside delivery: an outbox and what feeds it.
 *
 * A lane is fed by one subscription (all clients with the same filter share it), by the named
 * rules of one client, by the home feed of one user, or, where trends are told, by another lane
 * that finds them for all formats (trend_source.c). */
#pragma once

#include "filters/sample.h"
#include "gateway/counts/counter.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/home.h"
#include "gateway/delivery/left_out.h"
#include "gateway/delivery/outbox.h"
#include "gateway/delivery/segment.h"

struct lane {
    struct outbox outbox; /* of the clients that are live */
    struct list catchers; /* of those that catch up */
    struct deliver *deliver;
    uint64_t until;                 /* of all its clients; 0: no end */
    struct rule_set *rules;         /* it is fed by these instead of by one filter */
    struct counter *counter;        /* NULL: no client of it has come to the head yet */
    struct lane *source;            /* the lane that finds its trends; NULL: it tells of none */
    struct trend_source *finds;     /* it is such a lane, and of this; or NULL */
    struct count_question question; /* of what is counted, or picked, instead of being owed as it
                                       passes; or .bucket_ms 0 */
    uint64_t number;                /* never used again; from 1 */
    char *key;                      /* under which clients find it; NULL: not shared */
    size_t key_size;
    char *tail;                     /* of all its clients; NULL: none */
    bool is_subscribed;             /* `subscription` is one */
    uint32_t subscription;          /* of the one filter */
    bool awaits_rules;              /* with `rules`: the client resumes when they are there */
    struct home_watch watch;        /* or of this feed */
    struct list_node node;          /* of deliver */
    struct list_node owing;         /* of deliver: its live clients may be owed something */
    struct list_node touched;       /* rules of it have matched the event at hand */
    struct list_node judging;       /* of deliver: it has one filter, and clients that catch up */
    struct list_node counting;      /* of deliver: it has a counter */
    struct list_node closing;       /* of deliver: buckets of it are over, or events are held */
    struct told_list held;          /* .id: all up to this had passed when the event came */
    struct list_node miscounted;    /* of deliver: what it has told does not hold any more */
    uint64_t refreshed_ms;          /* clock of the loop: when the open bucket was told last */
    struct list_node outlet;        /* of that: it is told what is found */
    struct list outlets;            /* of one that finds trends */
    uint64_t told;                  /* the id up to which these have been told */
    uint32_t percent;               /* of its posts are sent; 100: all */
    uint32_t sample_ppm;            /* the same as a share of all ids, as `sample` has it */
    struct left_out left_out;       /* and not told yet */
    uint64_t passed[SL_SHARDS_MAX]; /* by shard: what had, before the first of those */
    struct list_node sampled;       /* of deliver: some are left out */
};

/* Are its events counted, and never sent? */
static inline bool lane_counts(const struct lane *lane)
{
    return lane->question.bucket_ms && !lane->question.pick.posts;
}

/* Is this post none of those that it sends? What comes late, or without the log, is always sent. */
static inline bool lane_leaves_out(const struct lane *lane, const struct event *event)
{
    return lane->percent < 100 && event->kind == EVENT_POST && event->id && !event->is_late &&
           !sl_sample_has(lane->sample_ppm, event->view.sample_id);
}

/* What the key of a shared lane takes: it is kept twice, with what goes before the filter's. */
static inline size_t lane_key_bytes(size_t filter_key_size)
{
    return 2 * (filter_key_size + 80);
}

/* Owes the event to the lane's live clients, and evicts them when there is no memory for it. */
void lane_append(struct lane *lane, struct event *event, struct sl_slice tail);

/* Sends all clients a keep-alive at once, unless events are on their way to them anyway. */
void lane_keep_alive(struct lane *lane, bool says_cursor, const struct sl_cursor *cursor);
/* The same for a message of ours; `head`: of who has all before it. */
void lane_owe(struct lane *lane, struct event *event, const struct sl_cursor *head,
              struct sl_slice tail);
/* The same for one of several messages: nobody falls behind between them. lane_send() ends them. */
void lane_owe_some(struct lane *lane, struct event *event, const struct sl_cursor *head,
                   struct sl_slice tail);
void lane_send(struct lane *lane);

/* What has been left out is told its clients. 0; -ENOMEM: they are evicted, and it is still to be
 * told. */
int lane_tell_left_out(struct lane *lane);

/* --- lane_count.c --- */

/* The event, or gap, passes: the lane counts it. `tail` as lane_append(). */
void lane_count(struct lane *lane, struct event *event, struct sl_slice tail);
/* What it wants has changed: its clients count the open bucket again. */
void lane_recount(struct lane *lane);
/* A client that has counted by itself up to the head becomes live: its counter is the lane's, if
 * that has none. */
void lane_take_counter(struct lane *lane, struct counter **counter);
void lane_drop_counter(struct lane *lane);

/* The words of the event, where trends are counted. 0; -ENOMEM. */
int lane_read_words(struct lane *lane, const struct event *event, struct count_keys *keys);
/* Does it count what passes, with nothing to be told again, or yet? */
bool lane_is_settled(const struct lane *lane);
/* Of a lane that finds trends: owes its outlets' live clients what was found. */
void lane_tell_outlets(struct lane *lane, const struct told *told, const struct sl_cursor *before);

/* Can it be told yet which events the lane wants? */
bool lane_is_ready(const struct lane *lane);
/* The first event at or behind `index` of the segment that the lane wants; segment->count: none.
 * Filters do not change, so they judge a segment once, some events at a time and for all lanes at
 * once that have clients catching up; named rules and home feeds judge as they stand now. *ret_tail
 * goes before the closing brace (valid until the next call; without data: nothing does). 0;
 * -ENOMEM. */
int lane_next_wanted(struct lane *lane, struct segment *segment, size_t index, size_t *ret_index,
                     struct sl_slice *ret_tail);

/* A client of the lane begins to catch up, or has done so. A lane without clients is freed. */
void lane_add_catcher(struct lane *lane, struct list_node *node);
void lane_remove_catcher(struct lane *lane, struct list_node *node);

struct rule_set *rule_set_new(struct lane *lane);
void rule_set_free(struct rule_set *rules);
/* The names of the rules that were hit, for the end of the event; the hits are forgotten. Valid
 * until the next call; without data: out of memory. */
struct sl_slice rule_set_name_hits(struct rule_set *rules);
/* The same for a lane that counts: they are what rule_set_hits() has then. 0; -ENOMEM. */
int rule_set_take_hits(struct rule_set *rules);
/* Of the event that was matched, or wanted, last; valid until the rules change. */
struct count_keys rule_set_hits(const struct rule_set *rules);
/* Does one of the rules want the event, whose words have been read? 1: yes, *ret_tail names them;
 * 0; -ENOMEM. */
int rule_set_wants(struct rule_set *rules, const struct event *event, const struct sl_words *words,
                   struct sl_slice *ret_tail);
