/* gateway/intake/cluster_subscriber_parts.h - inside cluster_subscriber: what its files share.
 *
 *     cluster_subscriber.c   which line a shard's is, by the map; tries again what has failed
 *     cluster_line.c         the connection to a node, and what comes on it
 *     cluster_database.c     which database it is, and which shards hold it
 *     cluster_steps.c        what is asked of a shard until it is heard
 *     cluster_classic.c      one line hears besides what is published by PUBLISH
 *     cluster_hearing.c      which shards are heard, and who is told */
#pragma once

#include "base/backoff.h"
#include "base/buffer.h"
#include "base/failure.h"
#include "base/log.h"
#include "gateway/intake/cluster_subscriber.h"
#include "gateway/intake/heard_twice.h"
#include "gateway/intake/message_rate.h"
#include "gateway/redis/redis_commands.h"
#include "gateway/redis/redis_session.h"
#include "src/model/database.h"
#include "src/model/id.h"

enum { CLUSTER_LINES_MAX = SL_SHARDS_MAX };

enum shard_state { SHARD_AWAY, SHARD_LOG_END, SHARD_SUBSCRIBING, SHARD_HEARD };

struct line {
    struct cluster_subscriber *subscriber;
    struct redis_session *session;
    bool is_settled;   /* has heard something */
    uint64_t pinged;   /* its number, while a pong is awaited; else 0 */
    bool has_turn;     /* messages or pongs in this turn */
    uint32_t messages; /* the same */
    uint32_t checked;  /* in which check one of its shards was looked at */
};

struct shard {
    struct cluster_subscriber *subscriber;
    uint32_t number;
    enum shard_state state;
    struct line *line; /* whose it is by the map; NULL: nobody's */
    bool is_asked;     /* a command is under way: its meta, or its log's end */
    bool has_log_end;  /* that is known, and not told yet */
    uint64_t log_end;
    uint64_t guess;          /* of that, to be told before it; 0: it is not */
    uint64_t clock_until_ms; /* as its meta said */
};

struct cluster_subscriber {
    uv_timer_t timer;
    uv_timer_cb try_again; /* what it calls */
    uv_timer_t check_timer;
    struct subscriber_settings settings;
    struct subscriber_callbacks callbacks;
    void *context;
    struct sl_redis_address address;
    char address_text[SL_REDIS_ADDRESS_TEXT_SIZE];

    struct line *lines[CLUSTER_LINES_MAX];
    size_t line_count;
    struct shard shards[SL_SHARDS_MAX];
    bool has_map;
    struct sl_meta meta;
    struct sl_meta other; /* of a shard in `others` */
    uint64_t known;       /* shards that hold the database, when they were looked at last */
    uint64_t empty;       /* those that hold none */
    uint64_t others;      /* those that hold another one */
    bool others_differ;   /* these are several */
    uint64_t emptied_ms;  /* when the first one was found empty; 0: none is */
    bool is_searching;    /* all are being looked at again, since `searched_ms` */
    uint64_t searched_ms;
    uint32_t checks;         /* of shards that are heard */
    uint64_t heard;          /* shards in SHARD_HEARD */
    uint64_t waits_since_ms; /* for all shards to be there; 0: it does not, or none is there yet */
    bool has_begun;          /* the log's ends of all shards have been told */
    bool is_hearing;         /* as told */
    bool is_stopping;
    unsigned open_handles;
    size_t asked; /* shards whose command is under way, which may outlive all else */
    uint32_t told_shards;
    struct message_rate rate; /* of all lines together */
    struct backoff backoff;
    char logged_reason[FAILURE_TEXT_SIZE];
    struct failure why_away; /* the last reason of a shard or a line to be lost */
    struct log_rate lost_rate, dropped_rate;

    struct line *classic; /* which is asked for PUBLISH, or heard; NULL: none */
    bool is_classic_heard;
    uint32_t classic_confirmed;    /* of its channels */
    uint32_t classic_number;       /* of that line, counted from 1: heard_twice.h */
    struct failure why_no_classic; /* empty: it is heard, or was never asked for */
    struct heard_twice twice;
};

static inline uint64_t cluster_bit(uint32_t shard)
{
    return UINT64_C(1) << shard;
}

static inline uint64_t cluster_all_shards(const struct cluster_subscriber *subscriber)
{
    uint32_t count = subscriber->meta.shards;

    return count == 0 ? 0 : UINT64_MAX >> (SL_SHARDS_MAX - count);
}

static inline bool cluster_line_is_ready(const struct line *line)
{
    return line && redis_session_is_ready(line->session);
}

/* ---- cluster_line.c ---- */

struct line *cluster_line_find(struct cluster_subscriber *subscriber,
                               const struct sl_redis_endpoint *endpoint);
/* NULL: out of memory, or too many. */
struct line *cluster_line_make(struct cluster_subscriber *subscriber,
                               const struct sl_redis_endpoint *endpoint);
void cluster_lines_open(struct cluster_subscriber *subscriber);
/* Lines whose node has no shards any more go. */
void cluster_lines_drop(struct cluster_subscriber *subscriber, const struct sl_cluster_map *map);
/* The shards that are heard on it. */
uint64_t cluster_line_heard(const struct line *line);

/* ---- cluster_database.c ---- */

/* Looks at the shards of which it is not known, and does what that is to be done about. */
void cluster_look(struct cluster_subscriber *subscriber);
/* Looks again at a shard of each node whose shards are heard. */
void cluster_check(struct cluster_subscriber *subscriber);

/* ---- cluster_steps.c ---- */

/* Of each shard that is away the next step, if there is one now. */
void cluster_advance_all(struct cluster_subscriber *subscriber);
/* Runs the call, if it was built, with the shard as the owner of the answer. */
void cluster_run(struct shard *shard, int built, struct sl_call *call, redis_reply_fn done);
/* False: it came too late, and what it was for may be gone. */
bool cluster_note_answer(struct shard *shard);
/* The first time all are told before anything of any shard comes, in their order. */
void cluster_tell_first_log_ends(struct cluster_subscriber *subscriber);
/* The timer is closed, and no command is under way. */
void cluster_free_if_done(struct cluster_subscriber *subscriber);

/* ---- cluster_classic.c ---- */

/* If no line is the classic one: asks one that can be. */
void cluster_classic_seek(struct cluster_subscriber *subscriber);
/* The line has said that it hears one more channel. */
void cluster_classic_confirm(struct line *line);
/* The line ends. */
void cluster_classic_lose(struct line *line, const char *reason);
/* An error has come on the line: was it the answer to that question? */
bool cluster_classic_is_refused(struct line *line, const char *reason);

/* ---- cluster_hearing.c ---- */

void cluster_try_later(struct cluster_subscriber *subscriber);
/* As ranges: 0-20,43 */
void cluster_print_shards(uint64_t shards, struct buffer *text);
/* Something was not where it should be. */
void cluster_doubt(struct cluster_subscriber *subscriber, const char *reason);
/* Some of the shards have come, and the others had time enough since. */
bool cluster_has_waited(struct cluster_subscriber *subscriber);
/* For /metrics and /readyz?verbose. */
void cluster_show_heard(struct cluster_subscriber *subscriber);
void cluster_begin_hearing_if_so(struct cluster_subscriber *subscriber);
void cluster_note_heard(struct shard *shard);
void cluster_note_away(struct shard *shard, const char *reason);
