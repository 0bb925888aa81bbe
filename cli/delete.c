#include "cli/database.h"
#include "src/id.h"
#include "src/posts.h"

static int delete_post(struct cli *cli, const char *user, uint64_t post)
{
    const struct sl_user_ref author = sl_user_by_login(sl_slice_str(user));
    struct sl_call call = SL_CALL_INIT;
    struct database database;
    struct sl_written written;
    struct failure failure;
    int status, r;

    status = database_open(&database, cli, 1);
    if (status != CLI_GOOD)
        return status;
    r = sl_delete_call(&call, &database.meta, sl_slice_str(database.request_id), &author, post,
                       &failure);
    status = database_write(&database, cli, &call, r, &failure, &written);
    sl_call_done(&call);
    database_close(&database);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
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
    return delete_post(cli, user, post);
}

const struct command command_delete = {
    .name = "delete",
    .arguments = "--user LOGIN ID",
    .summary = "take a post back",
    .help = "--user LOGIN   whose post it is; nobody else may delete it\n"
            "ID             what 'sluice post' printed\n",
    .run = run,
};
