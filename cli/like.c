/* like.c - like and unlike: two commands with the same code and two builders.
 *
 * If user and post are in different shards the user's shard, which stores what the user likes, is
 * called first. */
#include <hiredis/hiredis.h>

#include "cli/argument.h"
#include "cli/database.h"
#include "src/model/id.h"
#include "src/social/likes.h"

typedef int (*like_call_fn)(struct sl_call *call, const struct sl_meta *meta,
                            struct sl_slice request_id, const struct sl_user_ref *user,
                            uint64_t post, struct failure *reterr);

typedef int (*note_call_fn)(struct sl_call *call, const struct sl_meta *meta,
                            const struct sl_user_ref *user, uint64_t post, struct failure *reterr);

struct like {
    like_call_fn call;
    note_call_fn note;
    uint64_t post;
};

/* 0 also if both are in one shard. */
static int note_like(const struct database *database, const struct sl_user_ref *user,
                     const struct like *like, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    struct sl_user found;
    int r;

    if (user->id == 0 || sl_id_shard(user->id) == sl_id_shard(like->post))
        return 0;
    r = like->note(&call, &database->meta, user, like->post, reterr);
    if (r == 0)
        r = sl_redis_link_run(database->link, &call, &reply, reterr);
    if (r == 0)
        r = sl_user_find_reply(reply, &found, reterr);
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

static int build(struct sl_call *call, const struct database *database, const struct sl_user *user,
                 const void *context, struct failure *reterr)
{
    const struct like *like = context;
    const struct sl_user_ref ref =
        user->id ? sl_user_by_id(user->id) : sl_user_by_login(user->login);
    int r = note_like(database, &ref, like, reterr);

    if (r < 0)
        return r;
    return like->call(call, &database->meta, sl_slice_str(database->request_id), &ref, like->post,
                      reterr);
}

static int run(struct cli *cli, int argc, char **argv, like_call_fn call, note_call_fn note)
{
    struct like like = {.call = call, .note = note};
    struct sl_written written;
    const struct sl_user_ref user = argument_user_and_post(cli, argc, argv, &like.post);

    return database_change(cli, &user, build, &like, &written);
}

static int run_like(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, sl_like_call, sl_like_note_call);
}

static int run_unlike(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, sl_unlike_call, sl_unlike_note_call);
}

static const struct cli_option options[] = {
    {"user", ARGUMENT_KEY_USER, "USER", "Who likes it.", NULL, CLI_NEEDED},
    CLI_OPTIONS_END,
};

const struct command command_like = {
    .name = "like",
    .arguments = "ID",
    .summary = "let a user like a post",
    .help = "The ID is the one printed by 'sluice post'. If there is nothing to change, this is "
            "not an error. " ARGUMENT_USER_HELP,
    .options = options,
    .examples = "sluice like --user bob 114871006871552\n",
    .run = run_like,
};

const struct command command_unlike = {
    .name = "unlike",
    .arguments = "ID",
    .summary = "let a user take a like back",
    .help = "The ID is the one printed by 'sluice post'. If there is nothing to change, this is "
            "not an error. " ARGUMENT_USER_HELP,
    .options = options,
    .examples = "sluice unlike --user bob 114871006871552\n",
    .run = run_unlike,
};
