/* gateway/intake/broadcast.h - what one process hears, for all workers: entries in shared memory.
 *
 * One process writes entries one behind the other, over the oldest ones; each worker has a seat and
 * reads at its own speed. Nobody waits for anybody: a reader that the writer has overtaken is told
 * so, and joins again where the writer stands. For that, what entries have said so far is kept
 * beside them (struct broadcast_state), and is always that of the newest entry.
 *
 * A reader with nothing to read goes to sleep and says so; the writer wakes sleepers only, when
 * it has written all that it has for now.
 *
 * Made before the processes are forked, so all are of one program, with one layout of what is in
 * the entries; each has a copy of the handle. A writer may die at any
 * instruction: whoever has seen its end calls broadcast_reset() before there is another one. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/model/database.h"
#include "src/model/id.h"
#include "src/redis/redis_address.h"

enum broadcast_kind {
    BROADCAST_MASTER,     /* `data`: a struct sl_redis_endpoint */
    BROADCAST_LOG_END,    /* `shard`, `id`, `clock_until_ms` */
    BROADCAST_SUBSCRIBED, /* `data`: a struct sl_meta */
    BROADCAST_LOST,       /* `data`: why, a text */
    BROADCAST_AWAY,       /* the same */
    BROADCAST_JSON,       /* of a message: all; `data`: its JSON */
    BROADCAST_EVENT,      /* the same; `data`: event_bytes() of what was decoded */
    BROADCAST_REFUSED,    /* the same, without data: what could not be decoded */
    BROADCAST_TIME,       /* `shards`: of a node that says that it is `redis_ms` */
    BROADCAST_ROUND,      /* `id`, `shards`: as round.h tells it; `clock_skew_us` */
    BROADCAST_HEARD_AGAIN /* `shard`; its log's end was said before */
};

struct broadcast_entry {
    enum broadcast_kind kind;
    uint32_t shard;
    uint64_t id;
    union {
        uint64_t previous;
        uint64_t clock_until_ms;
        uint64_t shards; /* by bit */
    };
    union {
        uint64_t received_us;
        uint64_t redis_ms;
        uint64_t clock_skew_us;
    };
    bool is_end; /* of a message: its shard ends with it; not to be read */
    struct sl_slice data;
};

/* As after the newest entry. */
struct broadcast_state {
    bool is_subscribed;
    bool has_master; /* with sentinels only */
    struct sl_redis_endpoint master;
    struct sl_meta meta;                    /* as subscribed last */
    struct failure away;                    /* why nothing is subscribed; empty: nothing was said */
    uint64_t ends[SL_SHARDS_MAX];           /* by shard, the newest event; 0: none */
    uint64_t clock_until_ms[SL_SHARDS_MAX]; /* as said with the log's end, or found since */
};

struct broadcast;

/* With room for `bytes` of entries, of which one takes a quarter at most. NULL: out of memory, or
 * of descriptors. */
struct broadcast *broadcast_new(unsigned readers, size_t bytes);
/* In this process; the others keep theirs. */
void broadcast_free(struct broadcast *broadcast);

/* ---- the writer ---- */

/* 0; -EMSGSIZE: too large, and nothing was written. */
int broadcast_write(struct broadcast *broadcast, const struct broadcast_entry *entry);
/* What readers have found of the shard's clock since it was subscribed last; 0: nothing. */
uint64_t broadcast_clock_ms(const struct broadcast *broadcast, uint32_t shard);
/* Wakes the readers that sleep. */
void broadcast_wake(struct broadcast *broadcast);
/* The writer is dead. Readers find out; nothing is subscribed, and no entry is there. */
void broadcast_reset(struct broadcast *broadcast);
/* Whether a writer before this one has ever told that it hears: then there may be workers who know
 * what they have had. */
bool broadcast_was_heard(const struct broadcast *broadcast);

/* ---- a reader ---- */

struct broadcast_reader {
    struct broadcast *broadcast;
    unsigned seat;
    uint64_t position, generation;
    uint64_t subscription; /* as it was joined, or read, last */
    char *room;            /* for the data of an entry */
    size_t room_size;
};

void broadcast_reader_init(struct broadcast_reader *reader, struct broadcast *broadcast,
                           unsigned seat);
void broadcast_reader_done(struct broadcast_reader *reader);

/* What comes from now on is read. 0; -EAGAIN: the writer is about to write, or was when it died. */
int broadcast_join(struct broadcast_reader *reader, struct broadcast_state *ret_state);

/* 1: an entry, whose data is there until the next call; 0: no more, now; -EOVERFLOW: it was
 * overtaken; -EPIPE: the writer has died; -ENOMEM. After an error it has to join again. */
int broadcast_read(struct broadcast_reader *reader, struct broadcast_entry *ret_entry);

/* Tells the writer, and who joins, what the shard's clock has been raised to (database_clock.h) in
 * the database that is subscribed at the reader's position. */
void broadcast_set_clock(const struct broadcast_reader *reader, uint32_t shard, uint64_t until_ms);

/* Becomes readable when the reader has slept and there is something to read. */
int broadcast_wake_fd(const struct broadcast_reader *reader);
/* Makes it readable, or not. */
void broadcast_wake_self(const struct broadcast_reader *reader);
void broadcast_clear_wake(const struct broadcast_reader *reader);
/* false: there is something to read. */
bool broadcast_sleep(const struct broadcast_reader *reader);
