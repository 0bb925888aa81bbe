/* gateway/redis/redis_commands_parts.h - inside redis_commands: what its files share.
 *
 *     redis_commands.c   commands are taken, and lanes follow what is known of Redis
 *     redis_lane.c       a command waits in a lane, is sent, answered, tried again, or late */
#pragma once

#include "base/backoff.h"
#include "base/deadline_list.h"
#include "base/failure.h"
#include "base/list.h"
#include "gateway/redis/redis_commands.h"
#include "gateway/redis/redis_session.h"

enum { REDIS_LANES_MAX = 2 * SL_SHARDS_MAX };

struct redis_command {
    struct redis_commands *commands;
    struct redis_lane *lane; /* NULL: nobody is known to have the shard */
    struct sl_call call;
    redis_reply_fn done;
    void *owner;
    struct deadline deadline; /* in no list: its time is over */
    struct list_node node;    /* of `waiting`, `sent` or `lost` of its lane, or of `homeless` */
    bool is_sent;
    unsigned hops;
};

struct redis_lane {
    struct redis_commands *commands;
    uint64_t shards; /* whose commands go here, by bit */
    struct redis_session *session;
    bool was_ready;       /* the session, since it was opened */
    uint64_t answered_ms; /* when its last answer came */
    struct list waiting, sent;
    struct list lost;       /* were sent on a connection that has just ended */
    uint64_t try_ms;        /* when the waiting ones are tried next */
    struct backoff backoff; /* until something is answered */
    struct failure why;     /* the last connection ended, or none could be made */
};

struct redis_commands {
    uv_loop_t *loop;
    struct sl_redis_address address;
    const char *name;
    uint32_t timeout_ms;
    bool is_endpoint_known; /* always, without sentinels */
    bool is_stopping;
    struct deadline_list deadlines;
    struct redis_lane *lanes[REDIS_LANES_MAX];
    size_t lane_count;
    struct sl_cluster_map map;
    struct list homeless;
    redis_doubt_fn doubt; /* NULL: nobody wants to know */
    void *doubt_context;
    uv_timer_t timer;
};

/* ---- redis_lane.c ---- */

/* To the node, or with NULL to the one Redis that the address names. NULL: out of memory, or
 * there are too many. */
struct redis_lane *redis_lane_make(struct redis_commands *commands,
                                   const struct sl_redis_endpoint *node);
/* What waits is sent now, or as soon as there is a connection. */
void redis_lane_try(struct redis_lane *lane);
/* The connection is given up; what was sent on it waits again, or fails. */
void redis_lane_give_up(struct redis_lane *lane, const char *why);
/* The same, for another Redis is the master now. */
void redis_lane_move(struct redis_lane *lane, const struct sl_redis_endpoint *endpoint);

/* The lanes become those of the map. One that cannot be made is missed until the map is said again.
 */
void redis_lanes_follow_map(struct redis_commands *commands);
/* For the next deadline, or the next try. */
void redis_lanes_arm_timer(struct redis_commands *commands);

/* Sends the command, or lets it wait for a connection. 0; -ENOMEM: it is in no list. */
int redis_command_begin(struct redis_command *command);
/* The command is in none of the lists that `node` is for. */
void redis_command_free(struct redis_command *command);
/* All that wait in `line`, as their connection did. */
void redis_command_fail_all(struct list *line);
