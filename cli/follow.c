/* follow.c - follow and unfollow: two commands with the same code and two builders.
 *
 * Targets in the follower's shard are found by the script; those in other shards are looked up
 * before, all of them in one round trip. The write is one call for all targets, each of which may
 * fail separately. At most SL_FOLLOW_MAX targets. */
#include <errno.h>
#include <stdio.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "cli/argument.h"
#include "cli/rows.h"
#include "src/social/follows.h"

typedef int (*follow_many_call_fn)(struct sl_call *call, const struct sl_meta *meta,
                                   struct sl_slice request_id, const struct sl_user_ref *user,
                                   const struct sl_user *targets, size_t count,
                                   struct failure *reterr);

/* The state of the command. */
struct errand {
    struct cli *cli;
    struct database database;
    struct sl_user_ref user;
    char *const *names; /* of the targets */
    size_t count;
    struct sl_user *targets;   /* in the form for the call */
    struct sl_user_ref *found; /* targets that had to be looked up */
    struct rows rows;          /* own the strings of `found` */
};

/* Looks up the targets in other shards, all in one round trip. A target that does not exist stays
 * empty. */
static int look_up(struct errand *errand, struct failure *reterr)
{
    const struct sl_meta *meta = &errand->database.meta;
    size_t *indices = mem_alloc(mem_array_size(errand->count, sizeof(*indices)));
    size_t found = 0;
    int status = CLI_GOOD, r = 0;

    if (!indices)
        return cli_failed_with(errand->cli, "out of memory");
    for (size_t i = 0; r == 0 && i < errand->count; i++) {
        struct sl_user_ref target = argument_user(errand->cli, errand->names[i]);
        bool is_far;

        r = sl_follow_needs_lookup(meta, &errand->user, &target, &is_far, reterr);
        if (r == 0 && is_far) {
            indices[found] = i;
            errand->found[found++] = target;
        }
        errand->targets[i] = (struct sl_user){.id = target.id, .login = target.login};
    }
    if (r == 0)
        r = sl_users_calls(&errand->rows.calls, meta, errand->found, found, reterr);
    status = rows_read(&errand->rows, &errand->database, errand->cli, r, reterr);
    for (size_t i = 0; status == CLI_GOOD && i < found; i++) {
        struct sl_user_row row = {0};
        size_t at;
        const redisReply *reply = rows_find(&errand->rows, i, &at);

        r = sl_users_at(reply, at, &row, reterr);
        if (r < 0 && r != -ENOENT)
            status = cli_failed(errand->cli, reterr);
        errand->targets[indices[i]] = row.user;
    }
    mem_free(indices);
    return status;
}

/* Prints the result for each target. For a single target only errors, like all commands. */
static int report(const struct errand *errand, const redisReply *reply, const char *done)
{
    struct failure failure;
    bool is_repeated;
    int status = CLI_GOOD;
    uint64_t id;

    if (sl_write_many_reply(reply, errand->count, &is_repeated, &failure) < 0)
        return cli_failed(errand->cli, &failure);
    for (size_t i = 0; i < errand->count; i++) {
        if (sl_write_many_at(reply, i, &id, &failure) < 0)
            status = cli_failed_with(errand->cli, "%s: %s", errand->names[i], failure.text);
        else if (errand->count > 1)
            printf("%s: %s\n", errand->names[i], id ? done : "nothing to do");
    }
    return cli_done(errand->cli) == CLI_GOOD ? status : CLI_FAILED;
}

static int change(struct errand *errand, follow_many_call_fn build, const char *done)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    struct failure failure;
    int status, r;

    status = look_up(errand, &failure);
    if (status != CLI_GOOD)
        return status;
    r = build(&call, &errand->database.meta, sl_slice_str(errand->database.request_id),
              &errand->user, errand->targets, errand->count, &failure);
    if (r == 0)
        r = sl_redis_link_run(errand->database.link, &call, &reply, &failure);
    if (r == 0) {
        status = report(errand, reply, done);
    } else {
        cli_failed(errand->cli, &failure);
        status = r == -EINVAL ? CLI_USAGE : CLI_FAILED;
    }
    freeReplyObject(reply);
    sl_call_done(&call);
    return status;
}

static int run(struct cli *cli, int argc, char **argv, follow_many_call_fn build, const char *done)
{
    struct errand errand = {.cli = cli, .rows = ROWS_INIT};
    int status;

    cli_no_options(cli, argc, argv);
    if (argc - optind < 2)
        cli_usage(cli, "two USERs are needed");
    errand.user = argument_user(cli, argv[optind]);
    errand.names = argv + optind + 1;
    errand.count = (size_t)(argc - optind - 1);
    errand.targets = mem_zalloc(mem_array_size(errand.count, sizeof(*errand.targets)));
    errand.found = mem_zalloc(mem_array_size(errand.count, sizeof(*errand.found)));
    if (errand.targets && errand.found)
        status = database_open(&errand.database, cli, 0);
    else
        status = cli_failed_with(cli, "out of memory");
    if (status == CLI_GOOD) {
        status = change(&errand, build, done);
        database_close(&errand.database);
    }
    rows_done(&errand.rows);
    mem_free(errand.targets);
    mem_free(errand.found);
    return status;
}

static int run_follow(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, sl_follow_many_call, "followed");
}

static int run_unfollow(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, sl_unfollow_many_call, "unfollowed");
}

#define HELP                                                                                       \
    " All in one step, up to 1000. If there is nothing to change, this is not an error. With "     \
    "several users, the result for each is printed in a line; refusals go to standard error, "     \
    "and then the exit status is 1."                                                               \
    "\n\n" ARGUMENT_USER_HELP

const struct command command_follow = {
    .name = "follow",
    .arguments = "USER USER...",
    .summary = "let one user follow others",
    .help = "The first follows the others." HELP,
    .examples = "sluice follow bob ada eve\n",
    .run = run_follow,
};

const struct command command_unfollow = {
    .name = "unfollow",
    .arguments = "USER USER...",
    .summary = "let one user unfollow others",
    .help = "The first unfollows the others." HELP,
    .examples = "sluice unfollow bob ada\n",
    .run = run_unfollow,
};
