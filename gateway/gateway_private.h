/* gateway/gateway_private.h - inside gateway: what a worker is made of. */
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
    uv_timer_t pulse; /* tells the parent that the loop comes round */
    struct front_config front;
    struct worker_keys *keys;
    struct sl_redis_address redis;
    struct event_decoder *decoder;
    struct deliver *deliver;
    struct redis_commands *commands;
    struct dictionaries *dictionaries; /* NULL: nothing is compressed */
    struct home_loader *home_loader;
    struct access_watch *access;
    struct user_checks *user_checks;
    struct pass_store *passes;
    struct rule_store *rules;
    struct audit_log *audit;
    /* Of its own: what the streams read of the log does not queue up behind thousands of requests,
     * nor behind the megabytes of their answers. */
    struct redis_commands *api_commands;
    struct archive_reader *archive; /* NULL: there is none */
    struct cache_reader *cache;     /* the same */
    struct api *api;
    struct control_channel *control;
    struct server *server;
    struct log_reader *log_reader;
    struct redis_health *health;
    struct shard_watch *log_watch; /* NULL: another worker looks after it */
    struct log_cache *log_cache;
    struct intake *intake;
    struct cluster_watch *cluster;       /* NULL: Redis is no cluster */
    struct shard_watch *task_watch;      /* of worker 0 only */
    struct shard_watch *write_watch;     /* the same */
    struct use_exchange *use_exchange;   /* the same */
    struct archive_watch *archive_watch; /* the same; NULL, too: there is no archive */
    int ready_fd;                        /* -1: told already */
};

/* --- gateway_hearing.c --- */

/* Begins to hear Redis; all but that is there. 0; a negative errno: *reterr says why. */
int gateway_start_hearing(struct gateway *gateway, struct failure *reterr);
