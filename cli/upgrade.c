/* upgrade.c - sluice upgrade: adds forms, which change what newer programs write.
 *
 * A form (src/database/forms.h) is added to one shard after the other. From the first on older
 * programs refuse that shard. Newer ones check the form of each shard, so the upgrade may be
 * interrupted anywhere and is completed by repeating it. Long work follows when older programs can
 * no longer change anything: the lists of what users like are filled, shard by shard, and only then
 * the form is added to the shards. */
#include <inttypes.h>
#include <stdio.h>

#include <hiredis/hiredis.h>

#include "cli/database.h"
#include "src/call/reply.h"
#include "src/database/forms.h"
#include "src/model/id.h"
#include "src/social/liked_fill.h"

enum { KEY_YES = 1 };

struct upgrade {
    struct database database;
    unsigned forms[SL_SHARDS_MAX]; /* of each shard */
};

/* The number of shards with the form. */
static uint32_t count_shards(const struct upgrade *upgrade, unsigned form)
{
    uint32_t count = 0;

    for (uint32_t shard = 0; shard < upgrade->database.meta.shards; shard++)
        count += (upgrade->forms[shard] & 1U << form) != 0;
    return count;
}

/* Sends a call whose builder returned `r`, and records the forms of the shard. */
static int run_call(struct upgrade *upgrade, struct sl_call *call, int r, struct failure *reterr)
{
    const uint32_t shard = call->shard;
    redisReply *reply = NULL;

    r = database_run(&upgrade->database, call, r, &reply, reterr);
    if (r == 0)
        r = sl_forms_reply(reply, &upgrade->forms[shard], reterr);
    freeReplyObject(reply);
    return r;
}

static int ask_shards(struct upgrade *upgrade, struct failure *reterr)
{
    int r = 0;

    for (uint32_t shard = 0; r == 0 && shard < upgrade->database.meta.shards; shard++) {
        struct sl_call call = SL_CALL_INIT;

        r = sl_forms_call(&call, &upgrade->database.meta, shard, reterr);
        r = run_call(upgrade, &call, r, reterr);
    }
    return r;
}

static int give_shards(struct upgrade *upgrade, unsigned forms, struct failure *reterr)
{
    int r = 0;

    for (uint32_t shard = 0; r == 0 && shard < upgrade->database.meta.shards; shard++) {
        struct sl_call call = SL_CALL_INIT;

        r = sl_upgrade_call(&call, &upgrade->database.meta, shard, forms, reterr);
        r = run_call(upgrade, &call, r, reterr);
    }
    return r;
}

/* ---- the lists of what users like ---- */

/* Adds some likes to the lists in the shards of their users. */
static int note_likes(struct database *database, const redisReply *likes, uint64_t *count,
                      struct failure *reterr)
{
    int r = 0;

    for (uint32_t shard = 0; r == 0 && shard < database->meta.shards; shard++) {
        struct sl_call call = SL_CALL_INIT;
        redisReply *reply = NULL;
        uint64_t noted = 0;
        size_t found = 0;

        r = sl_note_likes_call(&call, &database->meta, shard, likes, &found, reterr);
        if (r == 0 && found > 0)
            r = sl_redis_link_run(database->link, &call, &reply, reterr);
        if (r == 0 && found > 0)
            r = sl_note_likes_reply(reply, &noted, reterr);
        *count += noted;
        freeReplyObject(reply);
        sl_call_done(&call);
    }
    return r;
}

static int note_likes_of_user(struct database *database, uint64_t user, uint64_t *count,
                              struct failure *reterr)
{
    struct sl_likes_place place = {0};
    int r;

    do {
        struct sl_call call = SL_CALL_INIT;
        redisReply *reply = NULL;

        r = sl_likes_of_call(&call, &database->meta, user, &place, reterr);
        r = database_run(database, &call, r, &reply, reterr);
        if (r == 0)
            r = sl_likes_of_reply(reply, &place, reterr);
        if (r == 0)
            r = note_likes(database, reply, count, reterr);
        freeReplyObject(reply);
    } while (r == 0 && place.post != 0);
    return r;
}

enum { CURSOR_SIZE = 24 };

/* Handles some users of the shard; advances `cursor`. */
static int note_likes_of_some(struct database *database, uint32_t shard, char *cursor,
                              uint64_t *count, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    struct sl_slice next = SL_SLICE_NONE;
    size_t users = 0;
    uint64_t user;
    int r;

    r = sl_shard_users_call(&call, &database->meta, shard, sl_slice_str(cursor), reterr);
    r = database_run(database, &call, r, &reply, reterr);
    if (r == 0)
        r = sl_shard_users_reply(reply, &next, &users, reterr);
    for (size_t i = 0; r == 0 && i < users; i++) {
        r = sl_shard_users_at(reply, i, &user, reterr);
        if (r == 0)
            r = note_likes_of_user(database, user, count, reterr);
    }
    if (r == 0)
        snprintf(cursor, CURSOR_SIZE, "%.*s", SL_SLICE_ARG(next));
    freeReplyObject(reply);
    return r;
}

static int fill_liked(struct database *database, struct failure *reterr)
{
    uint64_t count = 0;
    int r = 0;

    for (uint32_t shard = 0; r == 0 && shard < database->meta.shards; shard++) {
        char cursor[CURSOR_SIZE] = "0";

        do
            r = note_likes_of_some(database, shard, cursor, &count, reterr);
        while (r == 0 && !sl_slice_is(SL_SLICE("0"), cursor));
    }
    if (r == 0)
        printf("put %" PRIu64 " likes on the lists of their users' likes\n", count);
    return r;
}

/* ---- the command ---- */

static void print_forms(const struct upgrade *upgrade)
{
    const uint32_t shards = upgrade->database.meta.shards;

    printf("database %s, shards: %" PRIu32 "\n", upgrade->database.meta.database_id, shards);
    for (unsigned form = 0; form < SL_FORMS; form++) {
        const uint32_t count = count_shards(upgrade, form);

        printf("  %-12s %-10s %s\n", sl_form_at(form)->name,
               count == shards ? "has it"
               : count         ? "in part"
                               : "not yet",
               sl_form_at(form)->meaning);
    }
}

static bool is_upgraded(const struct upgrade *upgrade)
{
    for (unsigned form = 0; form < SL_FORMS; form++) {
        if (count_shards(upgrade, form) < upgrade->database.meta.shards)
            return false;
    }
    return true;
}

static int carry_out(struct upgrade *upgrade, struct failure *reterr)
{
    const unsigned all = (1U << SL_FORMS) - 1;
    int r = give_shards(upgrade, all & ~(1U << SL_FORM_LIKES), reterr);

    if (r == 0 && count_shards(upgrade, SL_FORM_LIKES) < upgrade->database.meta.shards)
        r = fill_liked(&upgrade->database, reterr);
    return r == 0 ? give_shards(upgrade, all, reterr) : r;
}

static int run_on(struct upgrade *upgrade, const struct cli *cli, bool is_yes)
{
    struct failure failure;

    if (ask_shards(upgrade, &failure) < 0)
        return cli_failed(cli, &failure);
    if (is_yes && !is_upgraded(upgrade) && carry_out(upgrade, &failure) < 0)
        return cli_failed(cli, &failure);
    print_forms(upgrade);
    if (!is_upgraded(upgrade))
        printf("'sluice upgrade --yes' writes what is missing; programs before version 0.2 "
               "refuse the database from then on\n");
    return cli_done(cli);
}

static int run(struct cli *cli, int argc, char **argv)
{
    struct upgrade upgrade = {0};
    bool is_yes = false;
    int status;

    while (cli_option(cli, argc, argv) >= 0)
        is_yes = true;
    cli_no_arguments(cli, argc, argv);
    status = database_open(&upgrade.database, cli, 1);
    if (status != CLI_GOOD)
        return status;
    status = run_on(&upgrade, cli, is_yes);
    database_close(&upgrade.database);
    return status;
}

static const struct cli_option options[] = {
    {"yes", KEY_YES, NULL, "Do it. Without this option, only print what there is to do.", NULL,
     CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_upgrade = {
    .name = "upgrade",
    .arguments = "",
    .summary = "let newer programs write what older ones cannot read",
    .help = "Programs of consecutive versions can use a database side by side, until it is "
            "upgraded. After that, programs before version 0.2 refuse it: stop or replace all of "
            "them first, sluiced, workers and sluice, and keep a copy of the data of Redis, "
            "because there is no way back. It may run while newer programs do, and may be "
            "interrupted and run again.",
    .options = options,
    .examples = "sluice upgrade\nsluice upgrade --yes\n",
    .run = run,
};
