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
    struct sl_user_ref login;
    struct sl_written written;
    const char *name = NULL;
    int status;

    while (cli_option(cli, argc, argv) == 'n')
        name = optarg;
    if (argc - optind != 1)
        cli_usage(cli, "give one LOGIN; a NAME goes after --name, in quotes");
    login = sl_user_by_login(sl_slice_str(argv[optind]));
    status = database_change(cli, &login, build, name, &written);
    if (status != CLI_GOOD)
        return status;
    printf("%" PRIu64 "\n", written.id);
    return cli_done(cli);
}

static const struct cli_option options[] = {
    {"name", 'n', "NAME", "The name shown to others; the default is the login.", NULL, CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_user_add = {
    .name = "user add",
    .arguments = "LOGIN",
    .summary = "create a user; prints the id",
    .help = "A login is 1 to 64 bytes of letters, digits and _ of any script; logins that differ "
            "only in case are the same.",
    .options = options,
    .examples = "sluice user add ada --name 'Ada Lovelace'\n",
    .run = run,
};
