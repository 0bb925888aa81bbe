#include <inttypes.h>
#include <stdio.h>

#include "cli/database.h"

static int build(struct sl_call *call, const struct database *database, const struct sl_user *user,
                 const void *name, struct failure *reterr)
{
    return sl_user_create_call(call, &database->meta, sl_slice_str(database->request_id),
                               user->login, sl_slice_str(name), reterr);
}

static int run(struct cli *cli, int argc, char **argv)
{
    static const struct option options[] = {{"name", required_argument, NULL, 'n'}, {0}};
    struct sl_written written;
    const char *name = NULL;
    int status;

    while (cli_option(cli, argc, argv, options) == 'n')
        name = optarg;
    if (argc - optind != 1)
        cli_usage(cli, "one LOGIN is needed");
    status = database_change(cli, argv[optind], build, name, &written);
    if (status != CLI_GOOD)
        return status;
    printf("%" PRIu64 "\n", written.id);
    return cli_done(cli);
}

const struct command command_user_add = {
    .name = "user add",
    .arguments = "LOGIN [--name NAME]",
    .summary = "make a user; prints the id",
    .help = "LOGIN is 1 to 64 bytes of letters, digits and _, unique without regard to case.\n\n"
            "--name NAME   what others read (default: the login)\n",
    .run = run,
};
