/* gateway/delivery/deliver.h - matches events and sends them: event -> match -> outboxes ->
 * sockets.
 *
 * There is one instance per worker. Events are passed in one by one. A turn of the loop ends with
 * deliver_turn_end(), which writes everything that may be sent now; a timer sends the rest later. A
 * client that had no events for its gather window gets the next one at once; later events wait at
 * most that long to be sent together. Belongs to the thread of its loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "filters/filter.h"
#include "gateway/delivery/client.h"
#include "gateway/delivery/compressor.h"
#include "gateway/front/dialect.h"
#include "gateway/intake/event.h"
#include "gateway/intake/gap.h"
#include "gateway/metrics/metrics.h"
#include "src/model/cursor.h"

struct deliver;
struct log_cache;
struct rule_set;

struct deliver_settings {
    uv_loop_t *loop;
    struct metrics *metrics;
    uint32_t gather_ms;     /* for clients that do not specify it */
    size_t max_owed_bytes;  /* of a live client; if it is owed more, it catches up on its own */
    size_t max_event_bytes; /* of all owed events; beyond it all clients that are behind catch up */
    size_t max_home_bytes;  /* for all home feeds (delivery/home.h) */
    size_t ring_bytes;      /* for recent events */
    uint64_t max_lag_ms;    /* how far a client may fall behind */
    struct compressor_settings compression; /* level 0: no compression */
    dialect_table *dialects; /* for clients whose `fields` are a dialect's; NULL: none */
};

/* NULL: out of memory. */
struct deliver *deliver_new(const struct deliver_settings *settings);
/* All clients are leaving and no new one comes: ends what runs in advance for future clients, so
 * that the loop can end. */
void deliver_end(struct deliver *deliver);
/* All clients must have left. The loop must run once more to close the handles. */
void deliver_free(struct deliver *deliver);

/* NULL: no compression. */
struct compressor *deliver_compressor(struct deliver *deliver);

/* Sets where clients that catch up read the log; NULL: nowhere. */
void deliver_set_log(struct deliver *deliver, struct log_cache *log);
/* See the settings; existing subscriptions keep max_owed_bytes. */
void deliver_set_limits(struct deliver *deliver, size_t max_owed_bytes, size_t max_event_bytes,
                        size_t max_home_bytes, uint64_t max_lag_ms);
/* Events of the shard after `id` (0: none) will pass here. To be called before they do, for shard 0
 * first. Events of other shards may be logged before their ends are read, but below some events of
 * shard 0 that have not passed yet; so with several shards everything up to the last event of shard
 * 0 counts as passed, until deliver_set_watermark(). */
void deliver_begin_shard(struct deliver *deliver, uint32_t shard, uint64_t id);
/* All shards are known up to the same point, and nobody has subscribed yet. The ring began with
 * ends of logs that were read one after the other; it begins again at a common point. What has
 * passed is in the logs. Only the first call has an effect. */
void deliver_begin(struct deliver *deliver);

/* Owes the event to all clients whose filter matches. The event is borrowed. */
void deliver_event(struct deliver *deliver, struct event *event);
/* The event `id` was refused: it has passed, and nobody gets it. */
void deliver_pass(struct deliver *deliver, uint32_t shard, uint64_t id);
/* There is no memory for the event `id`: evicts all clients with the cursor before it, so that they
 * resume there. */
void deliver_miss(struct deliver *deliver, uint32_t shard, uint64_t id);
/* Tells every client of the gap, in order with events. */
void deliver_gap(struct deliver *deliver, const struct gap *gap);

/* With several shards, events arrive in the order of their ids over all shards. The certain part of
 * that order is announced here, before the next event:
 *
 * Everything at or below `id` has passed, in all shards that are not behind. Never decreases. */
void deliver_set_watermark(struct deliver *deliver, uint64_t id);
/* The other shards no longer wait for this one, of which only events up to `low` have passed. To be
 * repeated when `low` changes. Its events at or below the watermark are late (event->is_late). */
void deliver_shard_behind(struct deliver *deliver, uint32_t shard, uint64_t low);
/* The watermark applies to this shard again. */
void deliver_shard_whole(struct deliver *deliver, uint32_t shard);

void deliver_turn_end(struct deliver *deliver);
/* Also sends what waits for its gather window. */
void deliver_flush_all(struct deliver *deliver);

/* The cursor of a client that has everything; its id is that of the newest event. */
struct sl_cursor deliver_cursor(const struct deliver *deliver);
/* The number of known shards; that of the database when all are known. */
uint32_t deliver_shards(const struct deliver *deliver);
/* Everything up to this cursor has been sent to the client. */
struct sl_cursor deliver_client_cursor(const struct deliver *deliver, const struct client *client);
/* How far the client has read or been sent events: an id that keeps changing while it makes
 * progress. */
uint64_t deliver_client_reached(const struct client *client);
/* Whether everything has been sent to the client, so that a message of ours, such as the last one,
 * may follow. */
bool deliver_client_is_served(const struct client *client);

/* Sends a shared keep-alive to all clients that share a gzip history with this one, which must have
 * everything up to `cursor`: a keep-alive for one client alone would end its sharing. false: it
 * shares nothing, so it must be sent its own. */
bool deliver_keep_alive(struct client *client, const struct sl_cursor *cursor);

/* Visits the clients that are owed something, are behind, or catch up: each once, in no order.
 * Other clients cost nothing. During `visit` no client may come, leave or be sent anything. */
void deliver_visit_owed(struct deliver *deliver, client_visit_fn visit, void *owner);

/* Gives the client a position in the outbox of all clients with this filter. Its `format`,
 * `unchunked`, encoding, `fields`, `until` and `question` must be set. A client with a question
 * must be resumed at once. `gather_ms` < 0: the default. 0; -ENOMEM. */
int deliver_subscribe(struct deliver *deliver, struct client *client, struct sl_filter *filter,
                      int gather_ms);

/* A client with a question about trends is sent what rises. It need not be resumed: then it begins
 * with the next bucket. If it is resumed, it counts on its own until it has reached the present. */
enum { TREND_SKETCHES_MAX = 32 /* of at most 16 MiB each: counts/trends.h */ };
/* Whether there is room for such a client; frees sketches that nobody uses. */
bool deliver_make_trend_room(struct deliver *deliver, struct sl_filter *filter,
                             const struct count_question *question, bool counts_by_itself);
/* The number of sketches. */
size_t deliver_trend_sketches(const struct deliver *deliver);

/* Everything at or below this id has passed. */
uint64_t deliver_closed(const struct deliver *deliver);

/* Whether deliver_subscribe_home() has memory for the feed of `user`. */
bool deliver_has_home_room(const struct deliver *deliver, struct sl_slice user);
/* The home stream of `user`: events of its home feed (delivery/home.h) with types in the bits of
 * `types`. 0; -ENOMEM. */
int deliver_subscribe_home(struct deliver *deliver, struct client *client, struct sl_slice user,
                           unsigned types, int gather_ms);

/* Gives the client an outbox of its own, and a set of named rules, empty at first. 0; -ENOMEM. */
int deliver_subscribe_rules(struct deliver *deliver, struct client *client, int gather_ms,
                            struct rule_set **ret_rules);

/* A client with named rules gets these members from the next event on (front/event_fields.h). */
void deliver_set_fields(struct client *client, uint64_t fields);
/* A rule was added or removed: if the client counts by rules, the open bucket is counted again. */
void deliver_rules_changed(struct client *client);

/* The client, which has just subscribed, begins after `cursor`, whose ids need not be those of
 * events. 0; -ENOMEM. */
int deliver_resume(struct deliver *deliver, struct client *client, const struct sl_cursor *cursor);
/* The client, which has just subscribed, begins with the newest `last` events that it wants.
 * `keeps_deletions`: deletions are among them; otherwise neither deletions nor deleted posts are
 * sent. 0; -ENOMEM. */
int deliver_begin_last(struct deliver *deliver, struct client *client, uint32_t last,
                       bool keeps_deletions);
/* The rules of a client that resumes are complete: it may begin. */
void deliver_rules_ready(struct client *client);

/* The memory that a stream with this filter would use, in bytes; never too low. 0; -ENOMEM. */
int deliver_filter_cost(struct deliver *deliver, const struct sl_filter *filter, size_t *ret_bytes);
/* The memory of all filters: equal ones once, removed ones until they are freed. */
size_t deliver_filter_bytes(const struct deliver *deliver);
/* For a client with one filter: the filter object shared by all equal ones. */
struct sl_filter *deliver_shared_filter(const struct client *client);

/* Sends nothing to the client any more, so that its cursor does not change; it leaves soon. */
void deliver_suspend(struct client *client);
/* Removes the client, and with the last client its subscriptions. */
void deliver_leave(struct client *client);

/* Sends what is gathered for the client, so that a message of ours can follow. A client that is
 * behind, or catches up, is still owed the rest. */
void deliver_client_flush(struct client *client);
/* The client's socket has room again, and no bytes are held. */
void deliver_client_writable(struct client *client);

/* The home feeds; home_on_load() must be called for them. */
struct home *deliver_home(struct deliver *deliver);
