/* common.c - common followers and common following of two users.
 *
 * The first user's shard returns candidates; the second user's shard is asked about them if it is
 * another one. Pages are read until there are as many users as requested, because a page may have
 * few common ones. What is printed is looked up at the end, in one round trip. */
#include <errno.h>

#include <hiredis/hiredis.h>

#include "cli/argument.h"
#include "cli/rows.h"
#include "cli/show.h"
#include "src/model/id.h"
#include "src/social/common_users.h"

enum { LIMIT_DEFAULT = 20 };

struct search {
    struct database *database;
    enum sl_common_list list;
    uint64_t users[2];
    struct sl_page page;
    size_t found;
    struct sl_user_ref common[SL_PAGE_MAX];
    uint64_t positions[SL_PAGE_MAX];
};

/* Asks the second user's shard about all candidates. */
static int check(struct search *search, const redisReply *candidates, redisReply **ret_reply,
                 size_t count, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    int r;

    r = sl_common_users_check_call(&call, &search->database->meta, search->list, search->users[1],
                                   candidates, reterr);
    r = database_run(search->database, &call, r, ret_reply, reterr);
    if (r == 0)
        r = sl_common_users_check_reply(*ret_reply, count, reterr);
    return r;
}

/* Takes the common users of a page, up to the limit. */
static int take_page(struct search *search, const redisReply *reply, struct failure *reterr)
{
    redisReply *checked = NULL;
    struct sl_common_page page;
    int r;

    r = sl_common_users_reply(reply, &page, reterr);
    if (r == 0 && page.needs_check)
        r = check(search, reply, &checked, page.count, reterr);
    for (size_t i = 0; r == 0 && i < page.count && search->found < search->page.limit; i++) {
        struct sl_common_user user;
        bool is_common = true;

        r = sl_common_users_at(reply, i, &user, reterr);
        if (r == 0 && page.needs_check)
            r = sl_common_users_check_at(checked, i, &is_common, reterr);
        if (r == 0 && is_common) {
            search->common[search->found] = sl_user_by_id(user.id);
            search->positions[search->found++] = user.position;
        }
    }
    search->page.before = page.next;
    freeReplyObject(checked);
    return r;
}

static int read_all(struct search *search, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    int r;

    do {
        redisReply *reply = NULL;

        r = sl_common_users_call(&call, &search->database->meta, search->list, search->users[0],
                                 search->users[1], &search->page, reterr);
        r = database_run(search->database, &call, r, &reply, reterr);
        if (r == 0)
            r = take_page(search, reply, reterr);
        freeReplyObject(reply);
    } while (r == 0 && search->page.before > 0 && search->found < search->page.limit);
    return r;
}

/* Looks up both users of the command line. */
static int find_users(struct search *search, const struct cli *cli, char *const *names)
{
    const struct sl_user_ref refs[2] = {argument_user(cli, names[0]), argument_user(cli, names[1])};
    struct rows rows = ROWS_INIT;
    struct failure failure;
    int status;

    status = rows_read(&rows, search->database, cli,
                       sl_users_calls(&rows.calls, &search->database->meta, refs, 2, &failure),
                       &failure);
    for (size_t i = 0; status == CLI_GOOD && i < 2; i++) {
        struct sl_user_row row;
        size_t at;
        const redisReply *reply = rows_find(&rows, i, &at);

        if (sl_users_at(reply, at, &row, &failure) < 0)
            status = cli_failed(cli, &failure);
        else
            search->users[i] = row.user.id;
    }
    rows_done(&rows);
    return status;
}

static int show_common(struct cli *cli, enum sl_common_list list, const struct sl_page *page,
                       char *const *names)
{
    struct search search = {.list = list, .page = *page};
    struct database database;
    struct failure failure;
    int status;

    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    search.database = &database;
    status = find_users(&search, cli, names);
    if (status == CLI_GOOD && read_all(&search, &failure) < 0)
        status = cli_failed(cli, &failure);
    if (status == CLI_GOOD)
        status = show_users(&database, cli, search.common, search.positions, search.found);
    database_close(&database);
    return status;
}

static int run(struct cli *cli, int argc, char **argv, enum sl_common_list list)
{
    struct sl_page page = {.limit = LIMIT_DEFAULT};
    int option;

    while ((option = cli_option(cli, argc, argv)) >= 0) {
        if (option == ARGUMENT_KEY_BEFORE)
            page.before = argument_number(cli, "before", optarg, SL_ID_MAX);
        else
            page.limit = argument_number(cli, "limit", optarg, SL_PAGE_MAX);
    }
    if (argc - optind != 2)
        cli_usage(cli, "two USERs are needed");
    return show_common(cli, list, &page, argv + optind);
}

static int run_followers(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, SL_COMMON_FOLLOWERS);
}

static int run_following(struct cli *cli, int argc, char **argv)
{
    return run(cli, argc, argv, SL_COMMON_FOLLOWING);
}

#define HELP                                                                                       \
    "In the order of the first user's list; it is faster with the shorter list "                   \
    "first. " ARGUMENT_USER_HELP

static const struct cli_option options[] = {
    ARGUMENT_OPTION_LIMIT("1000"),
    ARGUMENT_OPTION_BEFORE,
    CLI_OPTIONS_END,
};

const struct command command_common_followers = {
    .name = "common followers",
    .arguments = "USER USER",
    .summary = "list common followers of two users, as lines of JSON",
    .help = HELP,
    .options = options,
    .examples = "sluice common followers ada bob\n",
    .run = run_followers,
};

const struct command command_common_following = {
    .name = "common following",
    .arguments = "USER USER",
    .summary = "list users whom two users follow, as lines of JSON",
    .help = HELP,
    .options = options,
    .examples = "sluice common following ada bob\n",
    .run = run_following,
};
