/* cli/database.h - the database that a command works on. */
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
    char request_id[SL_DATABASE_ID_SIZE]; /* random: a command is one write, which may be retried */
};

/* The Redis that the command line, the environment or the data directory names. 0; -EINVAL. */
int database_address(const struct cli *cli, struct sl_redis_address *ret_address,
                     struct failure *reterr);

/* Connects to it; makes a database of `shards` shards where there is none (0: 64 in a cluster, else
 * 1). CLI_GOOD, or CLI_FAILED when it has said why. */
int database_open(struct database *database, const struct cli *cli, uint32_t shards);
/* Connects to the database that is there, without scripts: for those who look while shards are
 * moved. CLI_GOOD, or CLI_FAILED when it has said why. */
int database_look(struct database *database, const struct cli *cli);
void database_close(struct database *database);

/* Sends a call whose builder returned `r`, and is done with the call: 0, or a negative errno. The
 * reply is the caller's. */
int database_run(struct database *database, struct sl_call *call, int r,
                 struct redisReply **ret_reply, struct failure *reterr);

/* The same for a write, whose answer it reads: CLI_GOOD, or the exit status when it has said why.
 * What a builder refuses stands on the command line: CLI_USAGE. */
int database_write(struct database *database, const struct cli *cli, struct sl_call *call, int r,
                   struct failure *failure, struct sl_written *ret_written);

/* Finds a user: 0, or a negative errno; *ret_reply holds the strings of *ret_user and is to be
 * freed. */
int database_find_user(struct database *database, const struct sl_user_ref *ref,
                       struct sl_user *ret_user, struct redisReply **ret_reply,
                       struct failure *reterr);

/* The id of somebody. 0, or a negative errno. */
int database_find_id(struct database *database, const struct sl_user_ref *user, uint64_t *ret_id,
                     struct failure *reterr);

/* Builds a write in which `user` has a part: known by id or login, and when the builder has
 * answered -EXDEV by all that there is to be known. */
typedef int (*database_build_fn)(struct sl_call *call, const struct database *database,
                                 const struct sl_user *user, const void *context,
                                 struct failure *reterr);

/* A command that is one such write: the exit status. *ret_written is filled with CLI_GOOD. */
int database_change(struct cli *cli, const struct sl_user_ref *ref, database_build_fn build,
                    const void *context, struct sl_written *ret_written);
