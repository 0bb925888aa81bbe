#include <inttypes.h>
#include <stdio.h>

#include "cli/database.h"

static int add(struct cli *cli, const char *login, const char *name)
{
    struct sl_call call = SL_CALL_INIT;
    struct database database;
    struct sl_written written;
    struct failure failure;
    int status, r;

    status = database_open(&database, cli, 1);
    if (status != CLI_GOOD)
        return status;
    r = sl_user_create_call(&call, &database.meta, sl_slice_str(database.request_id),
                            sl_slice_str(login), sl_slice_str(name), &failure);
    status = database_write(&database, cli, &call, r, &failure, &written);
    if (status == CLI_GOOD) {
        printf("%" PRIu64 "\n", written.id);
        status = cli_done(cli);
    }
    database_close(&database);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    static const struct option options[] = {{"name", required_argument, NULL, 'n'}, {0}};
    const char *name = NULL;

    while (cli_option(cli, argc, argv, options) == 'n')
        name = optarg;
    if (argc - optind != 1)
        cli_usage(cli, "one LOGIN is needed");
    return add(cli, argv[optind], name);
}

const struct command command_user_add = {
    .name = "user add",
    .arguments = "LOGIN [--name NAME]",
    .summary = "make a user; prints the id",
    .help = "LOGIN is 1 to 64 bytes of letters, digits and _, unique without regard to case.\n\n"
            "--name NAME   what others read (default: the login)\n",
    .run = run,
};
