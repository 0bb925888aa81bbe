#include <stdio.h>

#include "base/buffer.h"
#include "cli/argument.h"
#include "cli/show.h"
#include "src/home/home_read.h"
#include "src/model/id.h"
#include "src/social/row_json.h"

enum { LIMIT_DEFAULT = 20 };

static int show(const struct cli *cli, const struct sl_home_read *read)
{
    struct buffer json = BUFFER_INIT;

    for (size_t i = 0; i < sl_home_read_count(read); i++) {
        sl_post_row_json(&json, sl_home_read_at(read, i));
        buffer_append_char(&json, '\n');
    }
    if (json.failed) {
        buffer_done(&json);
        return cli_failed_with(cli, "out of memory");
    }
    cli_print(stdout, buffer_slice(&json));
    buffer_done(&json);
    return cli_done(cli);
}

static int show_home(struct cli *cli, const struct sl_user_ref *reader,
                     const struct sl_home_page *page)
{
    struct sl_home_read *read = NULL;
    struct database database;
    struct failure failure;
    int status, r;

    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    r = sl_home_read_new(&read, &database.meta, reader, page, &failure);
    if (r == 0)
        r = sl_home_run(database.link, read, &failure);
    status = r < 0 ? cli_failed(cli, &failure) : show(cli, read);
    sl_home_read_free(read);
    database_close(&database);
    return status;
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct sl_home_page page = {.limit = LIMIT_DEFAULT};
    struct sl_user_ref reader;
    int option;

    while ((option = cli_option(cli, argc, argv)) >= 0) {
        switch (option) {
        case ARGUMENT_KEY_BEFORE:
            page.before = argument_number(cli, "before", optarg, SL_ID_MAX);
            break;
        case 'a':
            page.after = argument_number(cli, "after", optarg, SL_ID_MAX);
            break;
        case ARGUMENT_KEY_LIMIT:
            page.limit = (size_t)argument_number(cli, "limit", optarg, SL_HOME_PAGE_MAX);
            break;
        }
    }
    if (argc - optind != 1)
        cli_usage(cli, "one USER is needed");
    reader = argument_user(cli, argv[optind]);
    return show_home(cli, &reader, &page);
}

static const struct cli_option options[] = {
    ARGUMENT_OPTION_LIMIT("200"),
    {"before", ARGUMENT_KEY_BEFORE, "ID", "Posts older than this one: the next page.", NULL,
     CLI_ONCE},
    {"after", 'a', "ID", "Posts newer than this one.", NULL, CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_home = {
    .name = "home",
    .arguments = "USER",
    .summary = "read a home timeline, newest first, as lines of JSON",
    .help = "The posts by the user and by the users it follows, as far as the user may see "
            "them. " ARGUMENT_USER_HELP,
    .options = options,
    .examples = "sluice home ada --limit 50\n",
    .run = run,
};
