/* follow.c - follow and unfollow: two commands, the same way to two builders. */
#include <errno.h>

#include <hiredis/hiredis.h>

#include "cli/database.h"
#include "src/follows.h"

typedef int (*follow_call_fn)(struct sl_call *call, const struct sl_meta *meta,
                              struct sl_slice request_id, const struct sl_user_ref *user,
                              const struct sl_user *target, struct failure *reterr);

static int change(struct cli *cli, follow_call_fn build, const char *login,
                  const char *target_login)
{
    const struct sl_user_ref user = sl_user_by_login(sl_slice_str(login));
    struct sl_user target = {.login = sl_slice_str(target_login)};
    struct sl_call call = SL_CALL_INIT;
    redisReply *found = NULL;
    struct database database;
    struct sl_written written;
    struct failure failure;
    int status, r;

    status = database_open(&database, cli, 1);
    if (status != CLI_GOOD)
        return status;
    r = build(&call, &database.meta, sl_slice_str(database.request_id), &user, &target, &failure);
    if (r == -EXDEV) {
        r = database_find_user(&database, target_login, &target, &found, &failure);
        if (r == 0)
            r = build(&call, &database.meta, sl_slice_str(database.request_id), &user, &target,
                      &failure);
    }
    status = database_write(&database, cli, &call, r, &failure, &written);
    freeReplyObject(found);
    sl_call_done(&call);
    database_close(&database);
    return status;
}

static int run(struct cli *cli, int argc, char **argv, follow_call_fn build)
{
    while (cli_option(cli, argc, argv, NULL) >= 0)
        ;
    if (argc - optind != 2)
        cli_usage(cli, "two LOGINs are needed");
    return change(cli, build, argv[optind], argv[optind + 1]);
}

static int run_follow(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, sl_follow_call);
}

static int run_unfollow(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, sl_unfollow_call);
}

const struct command command_follow = {
    .name = "follow",
    .arguments = "LOGIN LOGIN",
    .summary = "let one user follow another",
    .help = "The first follows the second. It is no error when that is so already.\n",
    .run = run_follow,
};

const struct command command_unfollow = {
    .name = "unfollow",
    .arguments = "LOGIN LOGIN",
    .summary = "let one user follow another no more",
    .help = "The first follows the second no more. It is no error when that is so already.\n",
    .run = run_unfollow,
};
