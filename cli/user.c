/* user.c - user show and user rename. */
#include <stdlib.h>

#include "base/alloc.h"
#include "cli/argument.h"
#include "cli/show.h"

static int show(struct cli *cli, char *const *names, size_t count)
{
    struct sl_user_ref *users = mem_alloc(mem_array_size(count, sizeof(*users)));
    struct database database;
    int status;

    if (!users)
        return cli_failed_with(cli, "out of memory");
    for (size_t i = 0; i < count; i++)
        users[i] = argument_user(cli, names[i]);
    status = database_open(&database, cli, 0);
    if (status == CLI_GOOD) {
        status = show_users(&database, cli, users, NULL, count);
        database_close(&database);
    }
    mem_free(users);
    return status;
}

static int run_show(struct cli *cli, int argc, char **argv)
{
    cli_no_options(cli, argc, argv);
    if (argc == optind)
        cli_usage(cli, "a USER is needed");
    return show(cli, argv + optind, (size_t)(argc - optind));
}

static int set_name(struct cli *cli, const char *user, const char *name)
{
    const struct sl_user_ref ref = argument_user(cli, user);
    struct sl_call call = SL_CALL_INIT;
    struct database database;
    struct sl_written written;
    struct failure failure;
    int status, r;

    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    r = sl_user_rename_call(&call, &database.meta, sl_slice_str(database.request_id), &ref,
                            sl_slice_str(name), &failure);
    status = database_write(&database, cli, &call, r, &failure, &written);
    database_close(&database);
    return status;
}

static int run_rename(struct cli *cli, int argc, char **argv)
{
    cli_no_options(cli, argc, argv);
    if (argc - optind != 2)
        cli_usage(cli, "give a USER and a NAME");
    return set_name(cli, argv[optind], argv[optind + 1]);
}

const struct command command_user_show = {
    .name = "user show",
    .arguments = "USER...",
    .summary = "print users with their counters, as lines of JSON",
    .help = ARGUMENT_USER_HELP " Any number of users is read in one round trip.",
    .examples = "sluice user show ada @bob 114871006736384\n",
    .run = run_show,
};

const struct command command_user_rename = {
    .name = "user rename",
    .arguments = "USER NAME",
    .summary = "change the name of a user; the login stays",
    .help = "The name is shown to others from now on, in old posts, too: 1 to 200 "
            "bytes. " ARGUMENT_USER_HELP,
    .examples = "sluice user rename ada 'Ada King'\n",
    .run = run_rename,
};
