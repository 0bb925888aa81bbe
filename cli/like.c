/* like.c - like and unlike: two commands, the same way to two builders. */
#include <errno.h>

#include <hiredis/hiredis.h>

#include "cli/database.h"
#include "src/id.h"
#include "src/likes.h"

typedef int (*like_call_fn)(struct sl_call *call, const struct sl_meta *meta,
                            struct sl_slice request_id, const struct sl_user_ref *user,
                            uint64_t post, struct failure *reterr);

static int change(struct cli *cli, like_call_fn build, const char *login, uint64_t post)
{
    struct sl_user_ref user = sl_user_by_login(sl_slice_str(login));
    struct sl_call call = SL_CALL_INIT;
    redisReply *found = NULL;
    struct database database;
    struct sl_written written;
    struct sl_user liker;
    struct failure failure;
    int status, r;

    status = database_open(&database, cli, 1);
    if (status != CLI_GOOD)
        return status;
    r = build(&call, &database.meta, sl_slice_str(database.request_id), &user, post, &failure);
    if (r == -EXDEV) {
        r = database_find_user(&database, login, &liker, &found, &failure);
        if (r == 0) {
            user = sl_user_by_id(liker.id);
            r = build(&call, &database.meta, sl_slice_str(database.request_id), &user, post,
                      &failure);
        }
    }
    status = database_write(&database, cli, &call, r, &failure, &written);
    freeReplyObject(found);
    sl_call_done(&call);
    database_close(&database);
    return status;
}

static int run(struct cli *cli, int argc, char **argv, like_call_fn build)
{
    static const struct option options[] = {{"user", required_argument, NULL, 'u'}, {0}};
    const char *user = NULL;
    uint64_t post;

    while (cli_option(cli, argc, argv, options) == 'u')
        user = optarg;
    if (!user)
        cli_usage(cli, "--user LOGIN is needed");
    if (argc - optind != 1)
        cli_usage(cli, "the ID of one post is needed");
    if (sl_id_parse(sl_slice_str(argv[optind]), &post) < 0)
        cli_usage(cli, "'%s' is not the id of a post", argv[optind]);
    return change(cli, build, user, post);
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
