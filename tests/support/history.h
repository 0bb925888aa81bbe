/* tests/support/history.h - a random history, including faults, from the log and the live channel
 * up to delivery.
 *
 * shard_order, id_order, deliver, catch_up and log_cache are real; Redis is an array of facts
 * (events) per shard. Live messages are lost, connections to Redis break, the log is trimmed,
 * events are deleted within it, are unreadable, or are rewound by failovers: the test decides what
 * happens next. Posts have different authors, texts, languages and places, and a reader follows,
 * mutes and is hidden from by authors. Some posts are published without the log.
 *
 * There is one history at a time. A step of it is a millisecond; each step, and each event that
 * passes, has a number of its own (`now`), by which a test knows what was known when. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "gateway/delivery/deliver.h"
#include "gateway/delivery/log_cache.h"
#include "gateway/intake/shard_order.h"
#include "tests/support/cmocka_all.h"

enum {
    HISTORY_FACTS = 4000,   /* of a shard */
    HISTORY_UNLOGGED = 400, /* of all shards */
    HISTORY_SHARDS = 3,
    HISTORY_WORDS = 3,
    HISTORY_AUTHORS = 5,
    HISTORY_READER = 0, /* one of the authors */
    HISTORY_CELLS = 4,  /* of one degree; the last one: no place */
    HISTORY_CHANGES = 400,
};

#define HISTORY_BEGINS_MS UINT64_C(1795219200000) /* 2026-11-21 */

/* The ids of what is published without the log: the producer's clock is an hour ahead. */
#define HISTORY_UNLOGGED_FIRST sl_id_first_at(HISTORY_BEGINS_MS + 3600000)

enum fact_kind { FACT_POST, FACT_RELATION };

struct fact {
    uint64_t id, previous;
    enum fact_kind kind;
    unsigned author, word, lang, cell; /* of a post */
    bool is_unlogged;
    bool is_lost;                     /* rewound */
    bool is_gone;                     /* no longer in the log */
    bool is_unreadable;               /* in the log */
    bool is_mended;                   /* gone, and it was unreadable */
    bool is_late;                     /* it passed after newer ones */
    bool is_claimed;                  /* a client came with its id: it stays until it has passed */
    uint64_t published_at, passed_at; /* 0: not yet, or it was lost */
    char json[256];
};

struct redis {
    struct fact facts[HISTORY_FACTS];
    size_t count, trimmed;
    struct fact *said[HISTORY_FACTS + HISTORY_UNLOGGED]; /* live messages in flight */
    size_t said_first, said_end;
    struct {
        bool is_asked;
        uint64_t after, to;
        log_batch_fn done; /* NULL: for the order */
        void *owner;
    } requests[2]; /* of the order, of the batches */
    struct shard_order *order;
    uint64_t heard_of; /* the newest that has passed through both orders */
    uint32_t shard;
};

struct history_settings {
    uint32_t shards;
    unsigned seed;
    uint32_t order_wait_ms;
    size_t order_bytes;
    size_t ring_bytes, max_owed_bytes;
    bool has_relations;
};

extern struct redis redises[HISTORY_SHARDS];
extern struct fact unlogged[HISTORY_UNLOGGED];
extern size_t unlogged_count;
extern uint32_t shards;
extern uint64_t last_id, now;
extern struct deliver *deliver;
extern uv_loop_t loop;

extern const char *const history_words[HISTORY_WORDS];
extern const char *const history_langs[2];
/* The name of an author. */
const char *history_author(unsigned author);

/* Fixture: once for each test. */
int history_setup(void **state);
int history_teardown(void **state);
/* One after the other, within a test. */
void history_begin(const struct history_settings *settings);
void history_end(void);

/* The same numbers for the same seed. */
size_t below(size_t n);
bool one_in(size_t n);

/* --- what happens --- */

/* A step begins. */
void step_begins(void);

/* Into the log, and at times something without it before. */
void publish(struct redis *redis);
/* The next live message is received; false: there is none. */
bool hear_next(struct redis *redis);
/* Redis answers; false: it was not asked. */
bool answer_order(struct redis *redis);
bool answer_batches(struct redis *redis);
void look_up(struct redis *redis);
/* The loop does what it can do now, then a round over all shards ends. */
void turn(void);
/* Redis answers everything it was asked, and all live messages are received; false: there was
 * nothing. */
bool answer_all(void);
void end_turn(void);

/* --- faults --- */

void lose_message(struct redis *redis);
/* The connection breaks; messages in flight are lost. */
void connect_again(struct redis *redis);
/* A failover, which loses the end of the log. */
void rewind_log(struct redis *redis);
void trim(struct redis *redis);
void take_out(struct redis *redis);
void spoil(struct redis *redis);
/* The unreadable events of the log are repaired. */
void mend(struct redis *redis);
/* The next events are not received, and are deleted from the log meanwhile, or unreadable. */
void swallow(struct redis *redis);
/* The log is repaired, all connect again, and are told of a rewind by another event. */
void end_faults(void);

/* --- what has happened --- */

/* Of those without the log: by the id that clients see. */
struct fact *fact_of(uint64_t id);
struct sl_cursor history_head(void);
/* In the form of a channel. */
struct sl_cursor history_cursor(const struct client *client);
/* Over all shards: everything up to there has passed, or was reported as a gap. */
uint64_t newest_told(void);
bool all_has_passed(void);
