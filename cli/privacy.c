/* privacy.c - hide, unhide, mute, unmute: four commands, the same way to four builders. */
#include <errno.h>

#include <hiredis/hiredis.h>

#include "cli/database.h"
#include "src/privacy.h"

typedef int (*privacy_call_fn)(struct sl_call *call, const struct sl_meta *meta,
                               struct sl_slice request_id, const struct sl_user_ref *user,
                               const struct sl_user *target, struct failure *reterr);

static int change(struct cli *cli, privacy_call_fn build, const char *login,
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

static int run(struct cli *cli, int argc, char **argv, privacy_call_fn build)
{
    while (cli_option(cli, argc, argv, NULL) >= 0)
        ;
    if (argc - optind != 2)
        cli_usage(cli, "two LOGINs are needed");
    return change(cli, build, argv[optind], argv[optind + 1]);
}

static int run_hide(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, sl_hide_call);
}

static int run_unhide(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, sl_unhide_call);
}

static int run_mute(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, sl_mute_call);
}

static int run_unmute(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, sl_unmute_call);
}

const struct command command_hide = {
    .name = "hide",
    .arguments = "LOGIN LOGIN",
    .summary = "hide one user's posts from another",
    .help = "The second does not see the posts of the first any more, in reads and on home\n"
            "timelines; public streams stay as they are. It is no error when that is so already.\n",
    .run = run_hide,
};

const struct command command_unhide = {
    .name = "unhide",
    .arguments = "LOGIN LOGIN",
    .summary = "hide one user's posts from another no more",
    .help = "Ends what 'sluice hide' began. It is no error when that is so already.\n",
    .run = run_unhide,
};

const struct command command_mute = {
    .name = "mute",
    .arguments = "LOGIN LOGIN",
    .summary = "let one user see another's posts no more",
    .help = "The first is not shown the posts of the second any more, in reads and on home\n"
            "timelines, and may go on following. It is no error when that is so already.\n",
    .run = run_mute,
};

const struct command command_unmute = {
    .name = "unmute",
    .arguments = "LOGIN LOGIN",
    .summary = "let one user see another's posts again",
    .help = "Ends what 'sluice mute' began. It is no error when that is so already.\n",
    .run = run_unmute,
};
