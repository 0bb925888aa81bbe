/* cli/database.h - the database that a command uses. */
#pragma once

#include "cli/cli.h"
#include "src/call/call.h"
#include "src/call/write.h"
#include "src/model/database.h"
#include "src/redis/redis_link.h"
#include "src/social/users.h"

struct database {
    struct sl_redis_link *link;
    struct sl_meta meta;
    char request_id[SL_DATABASE_ID_SIZE]; /* random: a command is a single write, which may be
                                             repeated */
};

/* The Redis named by the command line, the environment or the data directory. 0; -EINVAL. */
int database_address(const struct cli *cli, struct sl_redis_address *ret_address,
                     struct failure *reterr);

/* Connects, and creates a database with `shards` shards if there is none (0: 64 in a cluster, else
 * 1). CLI_GOOD, or CLI_FAILED after printing why. */
int database_open(struct database *database, const struct cli *cli, uint32_t shards);
/* Connects to an existing database without using scripts, which works while shards are moved.
 * CLI_GOOD, or CLI_FAILED after printing why. */
int database_look(struct database *database, const struct cli *cli);
void database_close(struct database *database);

/* Sends a call whose builder returned `r`, and frees the call. 0, or a negative errno. The caller
 * frees the reply. */
int database_run(struct database *database, struct sl_call *call, int r,
                 struct redisReply **ret_reply, struct failure *reterr);

/* The same for a write, including its answer. CLI_GOOD, or the exit status after printing why.
 * Errors of a builder come from the command line: CLI_USAGE. */
int database_write(struct database *database, const struct cli *cli, struct sl_call *call, int r,
                   struct failure *failure, struct sl_written *ret_written);

/* Looks up the id of a user. 0, or a negative errno. */
int database_find_id(struct database *database, const struct sl_user_ref *user, uint64_t *ret_id,
                     struct failure *reterr);

/* Builds a write that involves `user`, given by id or login; if the builder has returned -EXDEV,
 * with all data of the user. */
typedef int (*database_build_fn)(struct sl_call *call, const struct database *database,
                                 const struct sl_user *user, const void *context,
                                 struct failure *reterr);

/* Runs a command that is one such write. Returns the exit status. *ret_written is filled with
 * CLI_GOOD. */
int database_change(struct cli *cli, const struct sl_user_ref *ref, database_build_fn build,
                    const void *context, struct sl_written *ret_written);
