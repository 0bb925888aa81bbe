/* privacy.c - hide, unhide, mute, unmute: four commands with the same code and four builders.
 *
 * Each makes one call; a target in another shard is looked up before, because that shard is told
 * its login. No options, no state. */
#include <errno.h>

#include "cli/argument.h"
#include "cli/database.h"
#include "src/social/privacy.h"

typedef int (*privacy_call_fn)(struct sl_call *call, const struct sl_meta *meta,
                               struct sl_slice request_id, const struct sl_user_ref *user,
                               const struct sl_user *target, struct failure *reterr);

struct change {
    privacy_call_fn call;
    struct sl_user_ref user;
};

static int build(struct sl_call *call, const struct database *database,
                 const struct sl_user *target, const void *context, struct failure *reterr)
{
    const struct change *change = context;

    if (target->id && !target->login.data)
        return -EXDEV; /* another shard is also told the login */
    return change->call(call, &database->meta, sl_slice_str(database->request_id), &change->user,
                        target, reterr);
}

static int run(struct cli *cli, int argc, char **argv, privacy_call_fn call)
{
    struct change change = {.call = call};
    struct sl_user_ref target;
    struct sl_written written;

    cli_no_options(cli, argc, argv);
    if (argc - optind != 2)
        cli_usage(cli, "two USERs are needed");
    change.user = argument_user(cli, argv[optind]);
    target = argument_user(cli, argv[optind + 1]);
    return database_change(cli, &target, build, &change, &written);
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
    .arguments = "USER USER",
    .summary = "hide one user's posts from another",
    .help = "The second no longer sees the posts of the first, in reads and on home timelines "
            "and streams; follows and the public streams do not change. If there is nothing to "
            "change, this is not an error. " ARGUMENT_USER_HELP,
    .examples = "sluice hide ada bob\n",
    .run = run_hide,
};

const struct command command_unhide = {
    .name = "unhide",
    .arguments = "USER USER",
    .summary = "stop hiding one user's posts from another",
    .help = "Undoes 'sluice hide'. If there is nothing to change, this is not an "
            "error. " ARGUMENT_USER_HELP,
    .examples = "sluice unhide ada bob\n",
    .run = run_unhide,
};

const struct command command_mute = {
    .name = "mute",
    .arguments = "USER USER",
    .summary = "let one user mute another",
    .help = "The first no longer sees the posts of the second, in reads and on home timelines "
            "and streams, and may still follow. If there is nothing to change, this is not an "
            "error. " ARGUMENT_USER_HELP,
    .examples = "sluice mute ada bob\n",
    .run = run_mute,
};

const struct command command_unmute = {
    .name = "unmute",
    .arguments = "USER USER",
    .summary = "let one user unmute another",
    .help = "Undoes 'sluice mute'. If there is nothing to change, this is not an "
            "error. " ARGUMENT_USER_HELP,
    .examples = "sluice unmute ada bob\n",
    .run = run_unmute,
};
