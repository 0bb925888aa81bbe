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
    const struct sl_user_ref user = argument_user_and_post(cli, argc, argv, &like.post);

    return database_change(cli, &user, build, &like, &written);
}

static int run_like(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, sl_like_call);
}

static int run_unlike(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, sl_unlike_call);
}

static const struct cli_option options[] = {
    {"user", ARGUMENT_KEY_USER, "USER", "Who likes it.", NULL, CLI_NEEDED},
    CLI_OPTIONS_END,
};

const struct command command_like = {
    .name = "like",
    .arguments = "ID",
    .summary = "let a user like a post",
    .help = "The ID is what 'sluice post' printed. It is no error when that is so "
            "already. " ARGUMENT_USER_HELP,
    .options = options,
    .examples = "sluice like --user bob 114871006871552\n",
    .run = run_like,
};

const struct command command_unlike = {
    .name = "unlike",
    .arguments = "ID",
    .summary = "let a user like a post no more",
    .help = "The ID is what 'sluice post' printed. It is no error when that is so "
            "already. " ARGUMENT_USER_HELP,
    .options = options,
    .examples = "sluice unlike --user bob 114871006871552\n",
    .run = run_unlike,
};
