/* dictionary.c - dictionary list, show and withdraw.
 *
 * The list contains all dictionaries that ever existed, because an id is never used again. The
 * content of a dictionary is shown without the tables before the strings. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/dictionary_ids.h"
#include "cli/dictionary_make.h"
#include "src/call/reply.h"

enum { KEY_RAW = 1 };

int dictionary_list_read(struct database *database, struct dictionary_list **ret_list,
                         struct failure *reterr)
{
    struct dictionary_list *list = mem_alloc(sizeof(*list));
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    if (!list)
        return failure_set(reterr, -ENOMEM, "out of memory");
    r = database_run(database, &call, sl_dictionaries_call(&call, reterr), &reply, reterr);
    if (r == 0)
        r = sl_dictionaries_reply(reply, list->at, sizeof(list->at) / sizeof(list->at[0]),
                                  &list->count, reterr);
    freeReplyObject(reply);
    if (r < 0)
        mem_free(list);
    else
        *ret_list = list;
    return r;
}

static uint32_t id_of(const struct cli *cli, int argc, char **argv)
{
    struct failure failure;
    uint32_t id;

    if (argc - optind != 1)
        cli_usage(cli, "an ID is needed");
    if (sl_dictionary_id_parse(sl_slice_str(argv[optind]), &id, &failure) < 0)
        cli_usage(cli, "%s", failure.text);
    return id;
}

/* ---- list ---- */

static void print_one(const struct sl_dictionary *known)
{
    char when[CLOCK_RFC3339_SIZE];

    clock_format_rfc3339(known->trained_ms, when);
    printf("{\"id\":%" PRIu32 ",\"bytes\":%" PRIu64 ",\"trained_at\":\"%s\",\"posts\":%" PRIu64,
           known->id, known->bytes, when, known->posts);
    if (known->withdrawn_ms) {
        clock_format_rfc3339(known->withdrawn_ms, when);
        printf(",\"withdrawn_at\":\"%s\"", when);
    }
    printf("}\n");
}

static int run_list(struct cli *cli, int argc, char **argv)
{
    struct dictionary_list *list;
    struct database database;
    struct failure failure;
    int status;

    cli_no_options(cli, argc, argv);
    cli_no_arguments(cli, argc, argv);
    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    if (dictionary_list_read(&database, &list, &failure) < 0) {
        status = cli_failed(cli, &failure);
    } else {
        for (size_t i = 0; i < list->count; i++)
            print_one(&list->at[i]);
        mem_free(list);
        status = cli_done(cli);
    }
    database_close(&database);
    return status;
}

/* ---- show ---- */

static int print_bytes(const struct cli *cli, struct sl_slice bytes, bool is_raw)
{
    if (is_raw) {
        fwrite(bytes.data, 1, bytes.size, stdout);
    } else {
        cli_print(stdout, sl_slice_from(bytes, dictionary_strings_at(bytes)));
        printf("\n");
    }
    return cli_done(cli);
}

static int show(struct database *database, const struct cli *cli, uint32_t id, bool is_raw)
{
    struct sl_call call = SL_CALL_INIT;
    struct failure failure;
    redisReply *reply = NULL;
    struct sl_slice bytes;
    int status, r;

    r = sl_dictionary_call(&call, id, &failure);
    r = database_run(database, &call, r, &reply, &failure);
    if (r == 0)
        r = sl_dictionary_reply(reply, &bytes, &failure);
    if (r == -ENOENT)
        status =
            cli_failed_with(cli, "there is no dictionary %" PRIu32 ", or it was withdrawn", id);
    else
        status = r < 0 ? cli_failed(cli, &failure) : print_bytes(cli, bytes, is_raw);
    freeReplyObject(reply);
    return status;
}

static int run_show(struct cli *cli, int argc, char **argv)
{
    struct database database;
    bool is_raw = false;
    uint32_t id;
    int status;

    while (cli_option(cli, argc, argv) >= 0)
        is_raw = true;
    id = id_of(cli, argc, argv);
    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    status = show(&database, cli, id, is_raw);
    database_close(&database);
    return status;
}

/* ---- withdraw ---- */

static int run_withdraw(struct cli *cli, int argc, char **argv)
{
    struct sl_call call = SL_CALL_INIT;
    struct database database;
    struct failure failure;
    redisReply *reply = NULL;
    uint32_t id;
    int status, r;

    cli_no_options(cli, argc, argv);
    id = id_of(cli, argc, argv);
    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    r = sl_dictionary_withdraw_call(&call, &database.meta, id, &failure);
    r = database_run(&database, &call, r, &reply, &failure);
    if (r == 0)
        r = sl_reply_check(reply, &failure);
    status = r < 0 ? cli_failed(cli, &failure) : CLI_GOOD;
    freeReplyObject(reply);
    database_close(&database);
    return status;
}

/* ---- the table ---- */

const struct command command_dictionary_list = {
    .name = "dictionary list",
    .arguments = "",
    .summary = "list dictionaries of streams, as lines of JSON",
    .help = "The list includes withdrawn ones, whose ids are never used again.",
    .examples = "sluice dictionary list\n",
    .run = run_list,
};

static const struct cli_option show_options[] = {
    {"raw", KEY_RAW, NULL,
     "Print all its bytes, in the format for zstd(1) -D, as sluiced serves them.", NULL, CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_dictionary_show = {
    .name = "dictionary show",
    .arguments = "ID",
    .summary = "print the content of a dictionary",
    .help = "Prints the strings, one per line, without the tables of bytes before them.",
    .options = show_options,
    .examples = "sluice dictionary show 40961\n"
                "sluice dictionary show --raw 40961 > dictionary\n",
    .run = run_show,
};

const struct command command_dictionary_withdraw = {
    .name = "dictionary withdraw",
    .arguments = "ID",
    .summary = "withdraw a dictionary",
    .help = "Within seconds, sluiced answers requests for it with 410. Streams that use it go on, "
            "with frames that use no dictionary. Clients that have fetched it keep it.",
    .examples = "sluice dictionary withdraw 40961\n",
    .run = run_withdraw,
};
