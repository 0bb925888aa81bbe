/* gateway/gateway_private.h - internal to gateway: the parts of a worker. */
#pragma once

#include <uv.h>

#include "base/failure.h"
#include "gateway/gateway.h"
#include "gateway/serve/front_config.h"
#include "src/redis/redis_address.h"

struct access_watch;
struct api;
struct archive_reader;
struct archive_watch;
struct audit_log;
struct cache_reader;
struct cluster_watch;
struct control_channel;
struct deliver;
struct dictionaries;
struct event_decoder;
struct gateway_reading;
struct home_loader;
struct intake;
struct log_cache;
struct log_reader;
struct metrics;
struct pass_store;
struct rule_store;
struct redis_commands;
struct redis_health;
struct server;
struct shard_watch;
struct use_exchange;
struct user_checks;
struct worker_keys;

enum { GATEWAY_SIGNAL_COUNT = 5 };

struct gateway {
    const struct gateway_parts *parts;
    struct metrics *metrics;
    uv_loop_t loop;
    uv_signal_t signals[GATEWAY_SIGNAL_COUNT];
    uv_timer_t pulse; /* reports to the parent that the loop is running */
    struct front_config front;
    struct worker_keys *keys;
    struct sl_redis_address redis;
    struct event_decoder *decoder;
    struct deliver *deliver;
    struct redis_commands *commands;
    struct dictionaries *dictionaries; /* NULL: no compression */
    struct home_loader *home_loader;
    struct access_watch *access;
    struct user_checks *user_checks;
    struct pass_store *passes;
    struct rule_store *rules;
    struct audit_log *audit;
    /* Separate commands for the API, so that reads of the log for streams do not wait behind
     * thousands of requests and megabytes of their answers. */
    struct redis_commands *api_commands;
    struct archive_reader *archive; /* NULL: there is none */
    struct cache_reader *cache;     /* NULL: there is none */
    struct api *api;
    struct control_channel *control;
    struct server *server;
    struct log_reader *log_reader;
    struct redis_health *health;
    struct shard_watch *log_watch; /* NULL: another worker has it */
    struct log_cache *log_cache;
    struct intake *intake;
    struct cluster_watch *cluster;       /* NULL: not a cluster */
    struct shard_watch *task_watch;      /* worker 0 only */
    struct shard_watch *write_watch;     /* worker 0 only */
    struct use_exchange *use_exchange;   /* worker 0 only */
    struct archive_watch *archive_watch; /* worker 0 only; also NULL without an archive */
    int ready_fd;                        /* -1: already reported */
    struct gateway_reading *reading;     /* of the settings; NULL: none is under way */
    bool is_reading_again;               /* another one was requested meanwhile */
    bool is_stopping;
};

/* --- gateway_reload.c --- */

/* Reads the settings and files again, aside, and applies them when they are read. */
void gateway_reload(struct gateway *gateway);

/* Passes the keys of `front` to the parts that exist. 0; -ENOMEM: *reterr says so. */
int gateway_use_front(struct gateway *gateway, struct failure *reterr);

/* --- gateway_hearing.c --- */

/* Starts the intake; all other parts must exist. 0; a negative errno: *reterr says why. */
int gateway_start_hearing(struct gateway *gateway, struct failure *reterr);
