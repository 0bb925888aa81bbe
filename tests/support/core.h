/* tests/support/core.h - a database on a private redis-server, and the operations on it. With
 * SLUICE_TEST_REDIS=cluster in the environment the database is in a cluster. */
#pragma once

#include <stdint.h>

#include <hiredis/hiredis.h>

#include "src/call/write.h"
#include "src/model/database.h"
#include "src/redis/redis_link.h"
#include "src/social/follows.h"
#include "src/social/posts.h"
#include "src/social/privacy.h"
#include "src/social/users.h"
#include "tests/support/redis_cluster.h"

struct core {
    struct redis_server server;
    struct redis_cluster cluster;
    bool is_clustered; /* the database is in `cluster`, otherwise in `server` */
    const char *url;
    redisContext *redis[REDIS_CLUSTER_MASTERS]; /* for direct access */
    size_t redis_count;
    struct sl_redis_link *link;
    struct sl_meta meta;
    struct failure failure; /* of the last operation */
    struct sl_written written;
};

bool core_is_clustered(void);

void core_init(struct core *core);
void core_done(struct core *core);

/* Empties the server and creates a database. */
void core_reset(struct core *core, uint32_t shards);

/* The operations, with look-ups in other shards as the command line does them. 0: core->written
 * holds the answer; otherwise a negative errno and core->failure. `request_id` NULL: none. */
int core_create(struct core *core, const char *login, const char *name, const char *request_id);
int core_post(struct core *core, const char *login, const struct sl_post *post,
              const char *request_id);
int core_delete(struct core *core, const char *login, uint64_t post, const char *request_id);
int core_follow(struct core *core, const char *login, const char *target, const char *request_id);
int core_unfollow(struct core *core, const char *login, const char *target, const char *request_id);
int core_hide(struct core *core, const char *login, const char *target, const char *request_id);
int core_unhide(struct core *core, const char *login, const char *target, const char *request_id);
int core_mute(struct core *core, const char *login, const char *target, const char *request_id);
int core_unmute(struct core *core, const char *login, const char *target, const char *request_id);

/* As above, but they must succeed; they return the id. */
uint64_t core_must_create(struct core *core, const char *login);
uint64_t core_must_post(struct core *core, const char *login, const char *text);

/* Runs a worker with one thread until no task is left; tasks of dead workers are claimed at
 * once. */
void core_work(struct core *core);
/* The same if no worker has died: with leases of normal length. */
void core_work_fast(struct core *core);

/* Changes a setting, as `sluice config set` does. */
void core_set(struct core *core, const char *name, const char *value);

/* Gives a shard all data formats, as `sluice upgrade` does; a shard that has them is not
 * changed. */
void core_upgrade(struct core *core, uint32_t shard);
/* Returns the entries 'POST:AUTHOR' of a home timeline in any format; the caller frees the
 * reply. */
redisReply *core_home(struct core *core, uint64_t reader);

/* Returns a separate connection to the node that has the shard; redisFree() closes it. */
redisContext *core_connect(const struct core *core, uint32_t shard);
/* The same, subscribed to the shard's live channel. */
redisContext *core_listen(const struct core *core, uint32_t shard);
/* Publishes like the core does. */
void core_publish(struct core *core, uint32_t shard, const char *message);

/* Runs a command, which must not fail; the caller frees the reply. In a cluster it is sent to the
 * node that has the shard of the command's keys, and without keys to each master: their lists and
 * texts are concatenated, their numbers added. */
redisReply *core_command(struct core *core, const char *format, ...);
long long core_number(struct core *core, const char *format, ...);
/* The reply must be a string (or nil: ""), which is copied into `room`. */
const char *core_text(struct core *core, char room[static 65536], const char *format, ...);

/* A hash over all data: if it is the same before and after, nothing has changed. */
uint64_t core_digest(struct core *core);
