/* gateway/redis/redis_commands_parts.h - internal to redis_commands.
 *
 *     redis_commands.c   accepts commands; creates and removes lanes
 *     redis_lane.c       a command waits in a lane, is sent, answered, tried again, or times out */
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
    struct redis_lane *lane; /* NULL: no node is known to have the shard */
    struct sl_call call;
    redis_reply_fn done;
    void *owner;
    struct deadline deadline; /* in no list: it has timed out */
    struct list_node node;    /* of `waiting`, `sent` or `lost` of its lane, or of `homeless` */
    bool is_sent;
    unsigned hops;
};

struct redis_lane {
    struct redis_commands *commands;
    uint64_t shards; /* shards whose commands go here, as bits */
    struct redis_session *session;
    bool was_ready;       /* the session was ready since it was opened */
    uint64_t answered_ms; /* time of its last answer */
    struct list waiting, sent;
    struct list lost;       /* commands sent on a connection that has just ended */
    uint64_t try_ms;        /* when the waiting commands are tried next */
    struct backoff backoff; /* until something is answered */
    struct failure why;     /* why the last connection ended, or could not be made */
};

struct redis_commands {
    uv_loop_t *loop;
    struct sl_redis_address address;
    const char *name;
    uint32_t timeout_ms;
    bool is_endpoint_known; /* always true without sentinels */
    bool is_stopping;
    struct deadline_list deadlines;
    struct redis_lane *lanes[REDIS_LANES_MAX];
    size_t lane_count;
    struct sl_cluster_map map;
    struct list homeless;
    redis_doubt_fn doubt; /* may be NULL */
    void *doubt_context;
    uv_timer_t timer;
};

/* ---- redis_lane.c ---- */

/* Creates a lane to the node, or with NULL to the single Redis of the address. NULL: out of memory,
 * or too many lanes. */
struct redis_lane *redis_lane_make(struct redis_commands *commands,
                                   const struct sl_redis_endpoint *node);
/* Sends the waiting commands now, or as soon as there is a connection. */
void redis_lane_try(struct redis_lane *lane);
/* Closes the connection; the commands sent on it wait again, or fail. */
void redis_lane_give_up(struct redis_lane *lane, const char *why);
/* The same, because another Redis is the master now. */
void redis_lane_move(struct redis_lane *lane, const struct sl_redis_endpoint *endpoint);

/* Makes the lanes those of the map. A lane that cannot be created is missing until the map is set
 * again. */
void redis_lanes_follow_map(struct redis_commands *commands);
/* Arms the timer for the next deadline, or the next retry. */
void redis_lanes_arm_timer(struct redis_commands *commands);

/* Sends the command, or lets it wait for a connection. 0; -ENOMEM: it is in no list. */
int redis_command_begin(struct redis_command *command);
/* The command must be in none of the lists of `node`. */
void redis_command_free(struct redis_command *command);
/* Fails all commands in `line` with the reason of their connection. */
void redis_command_fail_all(struct list *line);
