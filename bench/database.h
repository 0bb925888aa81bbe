/* bench/database.h - a database in an empty Redis, for programs that measure the social core. Any
 * error ends the program. */
#pragma once

#include <hiredis/hiredis.h>

#include "src/call/call.h"
#include "src/call/write.h"
#include "src/model/database.h"
#include "src/redis/redis_link.h"

struct database {
    struct sl_redis_address address;
    struct sl_redis_link *link;  /* for what is measured */
    struct sl_redis_link *watch; /* for observing, which is not counted */
    struct sl_meta meta;
    struct failure failure;
    unsigned rounds;  /* round trips on `link` so far */
    uint64_t watched; /* commands on `watch` so far */
};

/* `url` NULL: none was given. */
void database_open(struct database *database, const char *url, uint32_t shards);
/* Opens it according to the command line of a program whose options are --redis URL and --shards
 * N. */
void database_open_by(struct database *database, int argc, char **argv);
void database_close(struct database *database);

/* Ends the program if `r` is an error; `r` is the result of a builder, or of anything else that
 * sets database->failure. */
void database_must(struct database *database, int r, const char *what);

/* Sends a call whose builder returned `built`, and frees the call; ends the program if it was
 * refused. The caller owns the reply. */
redisReply *database_run(struct database *database, struct sl_call *call, int built);
/* The same for a write; returns the id. */
uint64_t database_write(struct database *database, struct sl_call *call, int built);
/* The same for many calls in one round trip. */
void database_run_many(struct database *database, struct sl_call *calls, size_t count,
                       redisReply **ret_replies);

/* The caller defines what `i` stands for. */
typedef int (*database_build_fn)(void *context, struct sl_call *call, size_t i);
/* Makes the writes 0 to `count`, hundreds at a time; stores their ids in `ret_ids` unless that is
 * NULL. */
void database_write_all(struct database *database, database_build_fn build, void *context,
                        size_t count, uint64_t *ret_ids);

void database_create_users(struct database *database, const char *name, size_t count,
                           uint64_t *ret_ids); /* NAME0, NAME1, ... */
void database_set(struct database *database, const char *name, const char *value);

/* Reads a page of a home timeline; returns the number of posts. *ret_newest, unless NULL: the first
 * post; 0: none. */
size_t database_read_home(struct database *database, uint64_t reader, size_t limit,
                          uint64_t *ret_newest);

/* Runs tasks until none is left. */
void database_work(struct database *database);
bool database_has_tasks(struct database *database);

/* What Redis has run so far (INFO commandstats), without observing: all commands, including those
 * within scripts, and how many of these are EVALSHA. */
struct database_counts {
    uint64_t commands, scripts;
};
struct database_counts database_counts(struct database *database);
