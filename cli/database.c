/* database.c - finds Redis and its database, sends calls and waits for the replies.
 *
 * Without a URL it uses the private Redis of a sluiced on this machine, by the socket in its data
 * directory. All calls block, with limits for connecting, answering and repeating. A write whose
 * user turns out to be in another shard (-EXDEV) is built a second time after that user was looked
 * up. */
#include "cli/database.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/database/meta.h"
#include "src/model/data_dir.h"

enum { CONNECT_MS = 5000, ANSWER_MS = 30000, RETRY_MS = 5000 };

/* The socket of the private Redis. */
static int find_embedded(struct sl_redis_address *ret_address, struct failure *reterr)
{
    struct sl_redis_address address = {0};
    char folder[SL_DATA_DIR_SIZE];
    int r;

    r = sl_data_dir(folder, reterr);
    if (r < 0)
        return r;
    if (strlen(folder) + sizeof("/" SL_DATA_DIR_SOCKET) > sizeof(address.path))
        return failure_set(reterr, -EINVAL, "the path of the data directory '%s' is too long",
                           folder);
    strcpy(stpcpy(address.path, folder), "/" SL_DATA_DIR_SOCKET);
    *ret_address = address;
    return 0;
}

int database_address(const struct cli *cli, struct sl_redis_address *ret_address,
                     struct failure *reterr)
{
    return cli->redis_url
               ? sl_redis_address_parse(sl_slice_str(cli->redis_url), ret_address, reterr)
               : find_embedded(ret_address, reterr);
}

static int open_link(struct database *database, const struct cli *cli, struct failure *reterr)
{
    const struct sl_redis_link_options options = {
        .connect_ms = CONNECT_MS,
        .answer_ms = ANSWER_MS,
        .retry_ms = RETRY_MS,
        .wait_replicas = cli->wait_replicas,
    };
    struct sl_redis_address address;
    struct failure failure;
    int r;

    r = database_address(cli, &address, reterr);
    if (r < 0)
        return r;
    r = sl_redis_link_open(&address, &options, &database->link, &failure);
    if (r < 0 && !cli->redis_url)
        return failure_set(reterr, r,
                           "%s (the embedded Redis of sluiced; start sluiced first, or give the "
                           "URL of Redis with --redis or SLUICE_REDIS)",
                           failure.text);
    return r < 0 ? failure_set(reterr, r, "%s", failure.text) : 0;
}

int database_open(struct database *database, const struct cli *cli, uint32_t shards)
{
    const struct sl_meta wanted = sl_meta_wanted(shards);
    struct failure failure;
    int r;

    *database = (struct database){0};
    memcpy(database->request_id, wanted.database_id, sizeof(database->request_id));
    r = open_link(database, cli, &failure);
    if (r == 0)
        r = sl_redis_link_meta(database->link, &wanted, &database->meta, &failure);
    if (r == 0)
        return CLI_GOOD;
    database_close(database);
    return cli_failed(cli, &failure);
}

int database_look(struct database *database, const struct cli *cli)
{
    struct failure failure;
    int r;

    *database = (struct database){0};
    r = open_link(database, cli, &failure);
    if (r == 0)
        r = sl_redis_link_look(database->link, &database->meta, &failure);
    if (r == 0)
        return CLI_GOOD;
    database_close(database);
    return cli_failed(cli, &failure);
}

void database_close(struct database *database)
{
    sl_redis_link_close(database->link);
    database->link = NULL;
}

int database_run(struct database *database, struct sl_call *call, int r, redisReply **ret_reply,
                 struct failure *reterr)
{
    if (r == 0)
        r = sl_redis_link_run(database->link, call, ret_reply, reterr);
    sl_call_done(call);
    return r;
}

int database_write(struct database *database, const struct cli *cli, struct sl_call *call, int r,
                   struct failure *failure, struct sl_written *ret_written)
{
    redisReply *reply = NULL;
    const bool is_refused = r == -EINVAL;

    r = database_run(database, call, r, &reply, failure);
    if (r == 0)
        r = sl_write_reply(reply, ret_written, failure);
    freeReplyObject(reply);
    if (r < 0)
        cli_failed(cli, failure);
    return r == 0 ? CLI_GOOD : is_refused ? CLI_USAGE : CLI_FAILED;
}

/* *ret_reply holds the strings of *ret_user and must be freed. */
static int find_user(struct database *database, const struct sl_user_ref *ref,
                     struct sl_user *ret_user, redisReply **ret_reply, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = database_run(database, &call, sl_user_find_call(&call, &database->meta, ref, reterr),
                     &reply, reterr);
    if (r == 0)
        r = sl_user_find_reply(reply, ret_user, reterr);
    if (r < 0)
        freeReplyObject(reply);
    else
        *ret_reply = reply;
    return r;
}

int database_find_id(struct database *database, const struct sl_user_ref *user, uint64_t *ret_id,
                     struct failure *reterr)
{
    redisReply *reply = NULL;
    struct sl_user found;
    int r;

    r = find_user(database, user, &found, &reply, reterr);
    if (r == 0)
        *ret_id = found.id;
    freeReplyObject(reply);
    return r;
}

int database_change(struct cli *cli, const struct sl_user_ref *ref, database_build_fn build,
                    const void *context, struct sl_written *ret_written)
{
    struct sl_user user = {.id = ref->id, .login = ref->login};
    struct sl_call call = SL_CALL_INIT;
    redisReply *found = NULL;
    struct database database;
    struct failure failure;
    int status, r;

    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    r = build(&call, &database, &user, context, &failure);
    if (r == -EXDEV) {
        r = find_user(&database, ref, &user, &found, &failure);
        if (r == 0)
            r = build(&call, &database, &user, context, &failure);
    }
    status = database_write(&database, cli, &call, r, &failure, ret_written);
    freeReplyObject(found);
    database_close(&database);
    return status;
}
