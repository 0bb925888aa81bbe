/* gateway/intake/cluster_subscriber_parts.h - internal to cluster_subscriber.
 *
 *     cluster_subscriber.c   assigns shards to lines, by the map; retries what has failed
 *     cluster_line.c         a connection to a node, and what arrives on it
 *     cluster_database.c     finds the database, and the shards that hold it
 *     cluster_steps.c        the steps of a shard until it is received
 *     cluster_classic.c      the line that also receives what is published with PUBLISH
 *     cluster_hearing.c      which shards are received, and who is told */
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
    bool is_settled;   /* has received something */
    uint64_t pinged;   /* number of the outstanding ping; else 0 */
    bool has_turn;     /* messages or pongs arrived in this turn */
    uint32_t messages; /* number of messages in this turn */
    uint32_t checked;  /* number of the check in which one of its shards was checked */
};

struct shard {
    struct cluster_subscriber *subscriber;
    uint32_t number;
    enum shard_state state;
    struct line *line; /* by the map; NULL: unknown */
    bool is_asked;     /* a command is outstanding: for its meta, or the end of its log */
    bool has_log_end;  /* it is known, but not reported yet */
    uint64_t log_end;
    uint64_t guess;          /* estimated end of the log, to be reported first; 0: none */
    uint64_t clock_until_ms; /* as in its meta */
};

struct cluster_subscriber {
    uv_timer_t timer;
    uv_timer_cb try_again; /* calls this */
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
    uint64_t known;       /* shards that hold the database, as of the last check */
    uint64_t empty;       /* shards that hold no database */
    uint64_t others;      /* shards that hold another one */
    bool others_differ;   /* they hold several */
    uint64_t emptied_ms;  /* when the first one was found empty; 0: none is */
    bool is_searching;    /* all are being checked again, since `searched_ms` */
    uint64_t searched_ms;
    uint32_t checks;         /* number of checks of received shards */
    uint64_t heard;          /* shards in SHARD_HEARD */
    uint64_t waits_since_ms; /* waits for the remaining shards since then; 0: does not wait, or has
                                none yet */
    bool has_begun;          /* the ends of all logs have been reported */
    bool is_hearing;         /* as reported */
    bool is_stopping;
    unsigned open_handles;
    size_t asked; /* shards with outstanding commands, which may outlive everything else */
    uint32_t told_shards;
    struct message_rate rate; /* of all lines together */
    struct backoff backoff;
    char logged_reason[FAILURE_TEXT_SIZE];
    struct failure why_away; /* why a shard or a line was lost last */
    struct log_rate lost_rate, dropped_rate;

    struct line *classic; /* the line on which PUBLISH was requested or is received; NULL: none */
    bool is_classic_heard;
    uint32_t classic_confirmed;    /* number of its confirmed channels */
    uint32_t classic_number;       /* number of that line, from 1: see heard_twice.h */
    struct failure why_no_classic; /* empty: it is received, or was never requested */
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
/* Closes lines whose node has no shards any more. */
void cluster_lines_drop(struct cluster_subscriber *subscriber, const struct sl_cluster_map *map);
/* The shards that are received on the line. */
uint64_t cluster_line_heard(const struct line *line);

/* ---- cluster_database.c ---- */

/* Checks the shards whose state is unknown, and does what follows from it. */
void cluster_look(struct cluster_subscriber *subscriber);
/* Checks a shard of each node whose shards are received. */
void cluster_check(struct cluster_subscriber *subscriber);

/* ---- cluster_steps.c ---- */

/* Does the next step of each shard that is away, if there is one now. */
void cluster_advance_all(struct cluster_subscriber *subscriber);
/* Runs the call, if it was built; the shard is the owner of the answer. */
void cluster_run(struct shard *shard, int built, struct sl_call *call, redis_reply_fn done);
/* false: the answer came too late, and its purpose may be gone. */
bool cluster_note_answer(struct shard *shard);
/* The first time, the ends of all logs are reported in order before anything of any shard. */
void cluster_tell_first_log_ends(struct cluster_subscriber *subscriber);
/* Frees it when the timer is closed, and no command is outstanding. */
void cluster_free_if_done(struct cluster_subscriber *subscriber);

/* ---- cluster_classic.c ---- */

/* Requests the subscription on a suitable line, if there is no classic line. */
void cluster_classic_seek(struct cluster_subscriber *subscriber);
/* The line has confirmed one more channel. */
void cluster_classic_confirm(struct line *line);
/* The line has ended. */
void cluster_classic_lose(struct line *line, const char *reason);
/* An error arrived on the line: whether it was the answer to that subscription. */
bool cluster_classic_is_refused(struct line *line, const char *reason);

/* ---- cluster_hearing.c ---- */

void cluster_try_later(struct cluster_subscriber *subscriber);
/* Prints ranges: 0-20,43 */
void cluster_print_shards(uint64_t shards, struct buffer *text);
/* Something was not where it should be: the map is doubtful. */
void cluster_doubt(struct cluster_subscriber *subscriber, const char *reason);
/* Some shards are ready, and the others had enough time since. */
bool cluster_has_waited(struct cluster_subscriber *subscriber);
/* Updates /metrics and /readyz?verbose. */
void cluster_show_heard(struct cluster_subscriber *subscriber);
void cluster_begin_hearing_if_so(struct cluster_subscriber *subscriber);
void cluster_note_heard(struct shard *shard);
void cluster_note_away(struct shard *shard, const char *reason);
