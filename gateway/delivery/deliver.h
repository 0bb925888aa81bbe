/* gateway/delivery/deliver.h - event -> match -> outboxes -> sockets: the spine of the server.
 *
 * One instance per worker. Events come in one by one, a turn of the loop ends with
 * deliver_turn_end(), which writes whatever may go out now; a timer of its own takes care of what
 * is being gathered. A client that was quiet for its gather window gets an event at once, later
 * ones wait at most that long for company. */
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
    uint32_t gather_ms;     /* for clients that ask for nothing else */
    size_t max_owed_bytes;  /* a live client; whoever is owed more catches up by itself */
    size_t max_event_bytes; /* all events that anybody is owed; beyond it all who are behind do */
    size_t max_home_bytes;  /* of the home feeds of all users (delivery/home.h) */
    size_t ring_bytes;      /* what has passed lately */
    uint64_t max_lag_ms;    /* how far a client may fall back */
    struct compressor_settings compression; /* of level 0: no client is compressed */
    dialect_table *dialects; /* of clients whose `fields` are of one; NULL: there are none */
};

/* NULL: out of memory. */
struct deliver *deliver_new(const struct deliver_settings *settings);
/* Clients are leaving, and none comes any more: what is looked for all the same, for who comes
 * next, ends, so that the loop can run empty. */
void deliver_end(struct deliver *deliver);
/* All clients have left. The loop must run once more to let go of the handles. */
void deliver_free(struct deliver *deliver);

/* NULL: nothing is compressed. */
struct compressor *deliver_compressor(struct deliver *deliver);

/* Where clients that catch up read the log, from now on; NULL: nowhere. */
void deliver_set_log(struct deliver *deliver, struct log_cache *log);
/* As in the settings; who is subscribed already keeps the bound it has. */
void deliver_set_limits(struct deliver *deliver, size_t max_owed_bytes, size_t max_event_bytes,
                        size_t max_home_bytes, uint64_t max_lag_ms);
/* What happens in the shard after the event `id` (0: none) will pass here; said before it does, of
 * shard 0 first. What has happened in the others by the time at which they are asked is in the log,
 * but not above every event of shard 0 that is still to pass: so where there are several,
 * everything counts as passed up to the last event of shard 0, until deliver_set_watermark(). */
void deliver_begin_shard(struct deliver *deliver, uint32_t shard, uint64_t id);
/* All shards are known equally far, and nobody is subscribed yet: the ring, whose shards began with
 * the ends of logs that were asked one after the other, begins again, for all of them where it is.
 * What has passed is in the logs. Does nothing but for the first time. */
void deliver_begin(struct deliver *deliver);

/* Owes the event to everyone whose filter matches. Borrows the event. */
void deliver_event(struct deliver *deliver, struct event *event);
/* The event `id` was refused: it has passed, and nobody gets it. */
void deliver_pass(struct deliver *deliver, uint32_t shard, uint64_t id);
/* There is no memory for the event `id`: everybody has to go, with the cursor before it, and comes
 * back for it. */
void deliver_miss(struct deliver *deliver, uint32_t shard, uint64_t id);
/* Tells every client of the gap, in order with its events. */
void deliver_gap(struct deliver *deliver, const struct gap *gap);

/* With more than one shard events come in the order of their ids over all shards. What of that is
 * certain is told here, before the next event:
 *
 * Everything at or below `id` has passed, of all shards that are not behind. Never falls. */
void deliver_set_watermark(struct deliver *deliver, uint64_t id);
/* The others go on without this shard: of it only what is at or below `low` has passed. Said again
 * when `low` has changed. Its events at or below the watermark come late (event->is_late). */
void deliver_shard_behind(struct deliver *deliver, uint32_t shard, uint64_t low);
/* The watermark holds for this shard, too. */
void deliver_shard_whole(struct deliver *deliver, uint32_t shard);

void deliver_turn_end(struct deliver *deliver);
/* Sends what is being gathered, too. */
void deliver_flush_all(struct deliver *deliver);

/* Of a client that has everything; its id is that of the newest event. */
struct sl_cursor deliver_cursor(const struct deliver *deliver);
/* That have been heard of: of the database, when all shards are known. */
uint32_t deliver_shards(const struct deliver *deliver);
/* Everything up to there has been sent to this client. */
struct sl_cursor deliver_client_cursor(const struct deliver *deliver, const struct client *client);
/* How far has it read, or been sent? An id that goes on rising, or falls and rises again, while it
 * gets on. */
uint64_t deliver_client_reached(const struct client *client);
/* Is nothing on its way to the client, so that a message of ours may come next, the last one for
 * instance? */
bool deliver_client_is_served(const struct client *client);

/* Keeps the connections of all clients alive, at once, that share what gzip refers to with this
 * one, which has everything and has come as far as `cursor`: what each is told by itself would take
 * it out of that. false: it shares nothing, so that it is told by itself. */
bool deliver_keep_alive(struct client *client, const struct sl_cursor *cursor);

/* Visits the clients that are owed something, are behind, or catch up: each once, in no order. What
 * the others cost is nothing. `visit` must not make anybody come, leave, or be sent anything. */
void deliver_visit_owed(struct deliver *deliver, client_visit_fn visit, void *owner);

/* Gives the client, whose `format`, `unchunked`, encoding, `fields`, `until` and `question` are
 * set, a position in the outbox of all clients with this filter. One with a question is to be
 * resumed at once. `gather_ms` < 0: the default. 0; -ENOMEM. */
int deliver_subscribe(struct deliver *deliver, struct client *client, struct sl_filter *filter,
                      int gather_ms);

/* A client with a question of trends is told what rises. It need not be resumed: then it is told
 * from the next bucket on; and who is resumed counts by itself until it has come so far. */
enum { TREND_SKETCHES_MAX = 32 /* each of 16 MiB at most: counts/trends.h */ };
/* Is there room for such a client? Those that only stand make room for it. */
bool deliver_make_trend_room(struct deliver *deliver, struct sl_filter *filter,
                             const struct count_question *question, bool counts_by_itself);
/* How many of them there are. */
size_t deliver_trend_sketches(const struct deliver *deliver);

/* Everything at or below this id has passed. */
uint64_t deliver_closed(const struct deliver *deliver);

/* May deliver_subscribe_home() be called for `user`, or is all memory for home feeds taken? */
bool deliver_has_home_room(const struct deliver *deliver, struct sl_slice user);
/* The home stream of `user`: the posts of those in its home feed (delivery/home.h), whose types
 * are among the bits of `types`. 0; -ENOMEM. */
int deliver_subscribe_home(struct deliver *deliver, struct client *client, struct sl_slice user,
                           unsigned types, int gather_ms);

/* An outbox of its own, and a set of named rules, empty at first, that feeds it. 0; -ENOMEM. */
int deliver_subscribe_rules(struct deliver *deliver, struct client *client, int gather_ms,
                            struct rule_set **ret_rules);

/* From the next event on, a client with named rules gets these members (front/event_fields.h). */
void deliver_set_fields(struct client *client, uint64_t fields);
/* A rule was put or removed: who counts by rules counts the open bucket again. */
void deliver_rules_changed(struct client *client);

/* The client, which has just subscribed, begins behind `cursor`, whose ids are those of events, or
 * any numbers between two. 0; -ENOMEM. */
int deliver_resume(struct deliver *deliver, struct client *client, const struct sl_cursor *cursor);
/* The client, which has just subscribed, begins with the newest `last` events that it wants.
 * `keeps_deletions`: deletions are among them; else a post that is deleted is not, and its deletion
 * neither. 0; -ENOMEM. */
int deliver_begin_last(struct deliver *deliver, struct client *client, uint32_t last,
                       bool keeps_deletions);
/* The rules of a client that resumes are there: it may begin. */
void deliver_rules_ready(struct client *client);

/* What a stream with this filter would cost of memory, in bytes, at least. 0; -ENOMEM. */
int deliver_filter_cost(struct deliver *deliver, const struct sl_filter *filter, size_t *ret_bytes);
/* What those that are there cost together: equal ones once, and those that have just gone until
 * they are forgotten. */
size_t deliver_filter_bytes(const struct deliver *deliver);
/* Of a client that has subscribed to one: the filter that all with an equal one share. */
struct sl_filter *deliver_shared_filter(const struct client *client);

/* Nothing is sent to the client any more, so that its cursor stays what it is; it leaves soon. */
void deliver_suspend(struct client *client);
/* Takes the client out of wherever it is, and with the last client its subscriptions. */
void deliver_leave(struct client *client);

/* Sends what is being gathered for the client, so that a message of ours comes behind it. One that
 * is behind, or catches up, is still owed what it was. */
void deliver_client_flush(struct client *client);
/* The client's socket has room again and nothing is held. */
void deliver_client_writable(struct client *client);

/* The home feeds, whose owner must tell them how to read a set (home_on_load). */
struct home *deliver_home(struct deliver *deliver);
