/* gateway/intake/broadcast.h - passes what one process receives to all workers: entries in shared
 * memory.
 *
 * One process writes entries one after the other, overwriting the oldest; each worker has a slot
 * and reads at its own speed. Nobody waits: a reader that the writer has overtaken is told so, and
 * joins again at the writer's position. For that purpose the accumulated content of the entries
 * (struct broadcast_state) is stored beside them, and always corresponds to the newest entry.
 *
 * A reader with nothing to read goes to sleep and sets a flag; the writer wakes only sleepers,
 * after it has written everything that it has.
 *
 * It is created before the processes are forked, so all of them run the same program, with the same
 * layout of the entries; each has a copy of the handle. A writer may die at any instruction: the
 * process that notices its end calls broadcast_reset() before it starts another one. */
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
    BROADCAST_AWAY,       /* `data`: why, a text */
    BROADCAST_JSON,       /* all fields of a message; `data`: its JSON */
    BROADCAST_EVENT,      /* all fields of a message; `data`: event_bytes() of the decoded event */
    BROADCAST_REFUSED,    /* the same, without data: could not be decoded */
    BROADCAST_TIME,       /* `shards`: of a node whose time is `redis_ms` */
    BROADCAST_ROUND,      /* `id`, `shards`: as in round.h; `clock_skew_us` */
    BROADCAST_HEARD_AGAIN /* `shard`; preceded by the end of its log */
};

struct broadcast_entry {
    enum broadcast_kind kind;
    uint32_t shard;
    uint64_t id;
    union {
        uint64_t previous;
        uint64_t clock_until_ms;
        uint64_t shards; /* bit S is shard S */
    };
    union {
        uint64_t received_us;
        uint64_t redis_ms;
        uint64_t clock_skew_us;
    };
    bool is_end; /* of a message: the log of its shard ends with it; not set when read */
    struct sl_slice data;
};

/* The state after the newest entry. */
struct broadcast_state {
    bool is_subscribed;
    bool has_master; /* with sentinels only */
    struct sl_redis_endpoint master;
    struct sl_meta meta;                    /* of the last subscription */
    struct failure away;                    /* why nothing is subscribed; empty: not known */
    uint64_t ends[SL_SHARDS_MAX];           /* newest event of each shard; 0: none */
    uint64_t clock_until_ms[SL_SHARDS_MAX]; /* as reported with the end of the log, or found
                                               since */
};

struct broadcast;

/* Creates a broadcast with `bytes` for entries, of which one may take a quarter. NULL: out of
 * memory or descriptors. */
struct broadcast *broadcast_new(unsigned readers, size_t bytes);
/* Frees it in this process; others keep theirs. */
void broadcast_free(struct broadcast *broadcast);

/* ---- the writer ---- */

/* 0; -EMSGSIZE: too large, nothing was written. */
int broadcast_write(struct broadcast *broadcast, const struct broadcast_entry *entry);
/* What readers have found about the shard's clock since the last subscription; 0: nothing. */
uint64_t broadcast_clock_ms(const struct broadcast *broadcast, uint32_t shard);
/* Wakes the sleeping readers. */
void broadcast_wake(struct broadcast *broadcast);
/* The writer has died. Readers notice; nothing is subscribed, and there are no entries. */
void broadcast_reset(struct broadcast *broadcast);
/* Whether an earlier writer was ever subscribed: then workers may know which events they have
 * had. */
bool broadcast_was_heard(const struct broadcast *broadcast);

/* ---- a reader ---- */

struct broadcast_reader {
    struct broadcast *broadcast;
    unsigned slot;
    uint64_t position, generation;
    uint64_t subscription; /* at the last join or read */
    char *room;            /* buffer for the data of an entry */
    size_t room_size;
};

void broadcast_reader_init(struct broadcast_reader *reader, struct broadcast *broadcast,
                           unsigned slot);
void broadcast_reader_done(struct broadcast_reader *reader);

/* Reads what follows from now on. 0; -EAGAIN: the writer is writing, or was when it died. */
int broadcast_join(struct broadcast_reader *reader, struct broadcast_state *ret_state);

/* 1: an entry, whose data is valid until the next call; 0: no more at the moment; -EOVERFLOW:
 * overtaken; -EPIPE: the writer has died; -ENOMEM. After an error the reader must join again. */
int broadcast_read(struct broadcast_reader *reader, struct broadcast_entry *ret_entry);

/* Reports to the writer, and to readers that join, to which value the shard's clock was raised
 * (database_clock.h) in the database that is subscribed at the reader's position. */
void broadcast_set_clock(const struct broadcast_reader *reader, uint32_t shard, uint64_t until_ms);

/* Becomes readable when the reader has slept and there is something to read. */
int broadcast_wake_fd(const struct broadcast_reader *reader);
/* Makes the descriptor readable, or not readable. */
void broadcast_wake_self(const struct broadcast_reader *reader);
void broadcast_clear_wake(const struct broadcast_reader *reader);
/* false: there is something to read. */
bool broadcast_sleep(const struct broadcast_reader *reader);
