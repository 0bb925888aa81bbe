/* like.c - like and unlike: two commands, the same way to two builders. */
#include "cli/argument.h"
#include "cli/database.h"
#include "src/social/likes.h"

typedef int (*like_call_fn)(struct sl_call *call, const struct sl_meta *meta,
                            struct sl_slice request_id, const struct sl_user_ref *user,
                            uint64_t post, struct failure *reterr);

struct like {
    like_call_fn call;
    uint64_t post;
};

static int build(struct sl_call *call, const struct database *database, const struct sl_user *user,
                 const void *context, struct failure *reterr)
{
    const struct like *like = context;
    const struct sl_user_ref ref =
        user->id ? sl_user_by_id(user->id) : sl_user_by_login(user->login);

    return like->call(call, &database->meta, sl_slice_str(database->request_id), &ref, like->post,
                      reterr);
}

static int run(struct cli *cli, int argc, char **argv, like_call_fn call)
{
    struct like like = {.call = call};
    struct sl_written written;
    const char *user = argument_user_and_post(cli, argc, argv, &like.post);

    return database_change(cli, user, build, &like, &written);
}

static int run_like(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, sl_like_call);
}

static int run_unlike(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, sl_unlike_call);
}

const struct command command_like = {
    .name = "like",
    .arguments = "--user LOGIN ID",
    .summary = "let a user like a post",
    .help = "--user LOGIN   who likes it; it is no error when that is so already\n"
            "ID             what 'sluice post' printed\n",
    .run = run_like,
};

const struct command command_unlike = {
    .name = "unlike",
    .arguments = "--user LOGIN ID",
    .summary = "let a user like a post no more",
    .help = "--user LOGIN   who liked it; it is no error when that is not so\n"
            "ID             what 'sluice post' printed\n",
    .run = run_unlike,
};
