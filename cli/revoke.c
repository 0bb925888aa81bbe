/* revoke.c - revokes tokens, lists revocations, and withdraws them.
 *
 * It is one command, because only one of these is done at a time and all concern the same list,
 * which is read a thousand at a time. Times are relative to the clock of this machine, as in
 * sluiced. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/database.h"
#include "src/database/revocations.h"
#include "src/model/id.h"

enum { KEY_SUB = 1, KEY_JTI, KEY_KID, KEY_BEFORE, KEY_UNTIL, KEY_LIST, KEY_UNDO };
enum { LIST_PAGE = 1000 };

struct arguments {
    struct sl_revocation revocation;
    bool lists;
    uint64_t undone; /* an id; 0: none */
};

static uint64_t time_of(const struct cli *cli, const char *option, const char *text)
{
    struct failure failure;
    uint64_t time_ms = 0;

    if (sl_revocation_time(sl_slice_str(text), clock_wall_ms(), &time_ms, &failure) < 0)
        cli_usage(cli, "--%s: %s", option, failure.text);
    return time_ms;
}

static struct arguments read_arguments(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {.undone = 0};
    struct sl_revocation *revocation = &arguments.revocation;
    int key;

    while ((key = cli_option(cli, argc, argv)) >= 0) {
        if (key == KEY_SUB)
            revocation->sub = sl_slice_str(optarg);
        else if (key == KEY_JTI)
            revocation->jti = sl_slice_str(optarg);
        else if (key == KEY_KID)
            revocation->kid = sl_slice_str(optarg);
        else if (key == KEY_BEFORE)
            revocation->before_ms = time_of(cli, "before", optarg);
        else if (key == KEY_UNTIL)
            revocation->until_ms = time_of(cli, "until", optarg);
        else if (key == KEY_LIST)
            arguments.lists = true;
        else if (sl_id_parse(sl_slice_str(optarg), &arguments.undone) < 0)
            cli_usage(cli, "--undo needs the ID of a revocation");
    }
    cli_no_arguments(cli, argc, argv);
    return arguments;
}

/* Checks that exactly one action is requested, and is possible. */
static void check_arguments(const struct cli *cli, const struct arguments *arguments)
{
    const struct sl_revocation *revocation = &arguments->revocation;
    bool makes = revocation->sub.data || revocation->jti.data || revocation->kid.data ||
                 revocation->before_ms || revocation->until_ms;
    struct failure failure;
    const char *member;

    if ((int)makes + (int)arguments->lists + (arguments->undone != 0) > 1)
        cli_usage(cli, "--list and --undo cannot be combined with other options");
    if (arguments->lists || arguments->undone)
        return;
    if (!makes)
        cli_usage(cli, "one of --sub, --jti, --kid and --before is needed, or --list, or --undo");
    if (sl_revocation_check(revocation, clock_wall_ms(), &member, &failure) < 0)
        cli_usage(cli, "%s", failure.text);
}

/* *last is the id of the last one printed. */
static int print_page(struct database *database, uint64_t *last, size_t *ret_count,
                      struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = sl_revocations_call(&call, *last, LIST_PAGE, reterr);
    r = database_run(database, &call, r, &reply, reterr);
    if (r == 0)
        r = sl_revocations_reply(reply, ret_count, reterr);
    for (size_t i = 0; r == 0 && i < *ret_count; i++) {
        struct sl_slice json = sl_revocations_json(reply, i);
        struct sl_revocation one;

        r = sl_revocation_parse(json, &one, reterr);
        if (r < 0)
            break;
        *last = one.id;
        if (one.until_ms > clock_wall_ms()) {
            cli_print(stdout, json);
            printf("\n");
        }
        sl_revocation_done(&one);
    }
    freeReplyObject(reply);
    return r;
}

static int list(struct database *database, const struct cli *cli)
{
    struct failure failure;
    size_t count = LIST_PAGE;
    uint64_t last = 0;
    int r = 0;

    while (r == 0 && count == LIST_PAGE)
        r = print_page(database, &last, &count, &failure);
    return r < 0 ? cli_failed(cli, &failure) : cli_done(cli);
}

static int change(struct database *database, const struct cli *cli,
                  const struct arguments *arguments)
{
    const struct sl_slice request_id = sl_slice_str(database->request_id);
    struct sl_call call = SL_CALL_INIT;
    struct sl_written written;
    struct failure failure;
    int status, r;

    if (arguments->undone)
        r = sl_unrevoke_call(&call, &database->meta, request_id, arguments->undone, &failure);
    else
        r = sl_revoke_call(&call, &database->meta, request_id, &arguments->revocation, &failure);
    status = database_write(database, cli, &call, r, &failure, &written);
    if (status != CLI_GOOD || arguments->undone)
        return status;
    printf("%" PRIu64 "\n", written.id);
    return cli_done(cli);
}

static int run(struct cli *cli, int argc, char **argv)
{
    const struct arguments arguments = read_arguments(cli, argc, argv);
    struct database database;
    int status;

    check_arguments(cli, &arguments);
    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    status = arguments.lists ? list(&database, cli) : change(&database, cli, &arguments);
    database_close(&database);
    return status;
}

static const struct cli_option options[] = {
    {"sub", KEY_SUB, "SUBJECT", "Tokens of this subject, existing and new ones.", NULL, CLI_ONCE},
    {"jti", KEY_JTI, "ID", "The token with this jti.", NULL, CLI_ONCE},
    {"kid", KEY_KID, "KEY", "Tokens signed with this key of any issuer, by its name in sluiced.",
     NULL, CLI_ONCE},
    {"before", KEY_BEFORE, "TIME",
     "Tokens issued (iat) before then, and tokens without iat: now, 2026-11-22T10:00:00Z, a Unix "
     "time, or 1h for an hour ago.",
     "now", CLI_ONCE},
    {"until", KEY_UNTIL, "TIME",
     "The end of the revocation; the default is as long as a token may live (token-life, 30 days).",
     NULL, CLI_ONCE},
    {"list", KEY_LIST, NULL, "Print the active ones, oldest first, as lines of JSON.", NULL,
     CLI_ONCE},
    {"undo", KEY_UNDO, "ID", "Undo the revocation with this id.", NULL, CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_revoke = {
    .name = "revoke",
    .arguments = "",
    .summary = "revoke tokens before they expire",
    .help = "Within a second, every sluiced refuses such tokens, and ends streams that were "
            "opened with one, with the code token_revoked. If several options are given, a token "
            "must match all of them. Prints the id of the revocation.",
    .options = options,
    .examples = "sluice revoke --sub 42                 # shut somebody out\n"
                "sluice revoke --sub 42 --before now    # log out everywhere; new tokens are good\n"
                "sluice revoke --kid 2026-11            # a key that has leaked\n"
                "sluice revoke --list\n"
                "sluice revoke --undo 114677036875776\n",
    .run = run,
};
