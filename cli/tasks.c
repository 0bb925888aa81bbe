/* tasks.c - sluice tasks: lists pending tasks and dead letters, retries or drops dead letters.
 *
 * Streams and dead letters of all shards are read in batches of 1,000, one shard after the other,
 * and each entry is visited once. Kinds are counted in a table of 64. Retrying or dropping is a
 * call for each letter; with --all at most as many as there were at the beginning, so that one that
 * fails again at once is not processed for ever. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/log.h"
#include "cli/database.h"
#include "src/model/id.h"
#include "src/tasks/tasks.h"

enum { BATCH = 1000, KINDS_MAX = 64, ENTRY_SIZE = 48 };

/* ---- iterating over the shards ---- */

typedef int (*list_call_fn)(struct sl_call *call, uint32_t shard, const char *after, uint32_t count,
                            struct failure *reterr);
typedef int (*visit_fn)(struct database *database, const struct sl_task *task, void *context,
                        struct failure *reterr);

/* Visits a batch of a shard; advances `after` to its end. *ret_is_last: there are no more. */
static int visit_batch(struct database *database, uint32_t shard, list_call_fn list, char *after,
                       visit_fn visit, void *context, bool *ret_is_last, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    struct sl_task *tasks = NULL;
    size_t count = 0;
    int r;

    r = list(&call, shard, after[0] ? after : NULL, BATCH, reterr);
    r = database_run(database, &call, r, &reply, reterr);
    if (r == 0)
        r = sl_task_list_reply(reply, shard, &tasks, &count, reterr);
    for (size_t i = 0; r == 0 && i < count; i++) {
        snprintf(after, ENTRY_SIZE, "%.*s", SL_SLICE_ARG(tasks[i].entry));
        r = visit(database, &tasks[i], context, reterr);
    }
    sl_tasks_free(tasks);
    freeReplyObject(reply);
    *ret_is_last = count < BATCH;
    return r;
}

static int visit_all(struct database *database, list_call_fn list, visit_fn visit, void *context,
                     struct failure *reterr)
{
    int r = 0;

    for (uint32_t shard = 0; r == 0 && shard < database->meta.shards; shard++) {
        char after[ENTRY_SIZE] = "";
        bool is_last = false;

        while (r == 0 && !is_last)
            r = visit_batch(database, shard, list, after, visit, context, &is_last, reterr);
    }
    return r;
}

/* ---- tasks ---- */

struct kinds {
    struct {
        char name[32];
        uint64_t count;
    } at[KINDS_MAX];
    size_t count;
};

static int count_kind(struct database *database, const struct sl_task *task, void *context,
                      struct failure *reterr)
{
    struct kinds *kinds = context;
    char name[32];
    size_t i = 0;

    (void)database, (void)reterr;
    snprintf(name, sizeof(name), "%.*s", SL_SLICE_ARG(task->kind));
    while (i < kinds->count && strcmp(kinds->at[i].name, name) != 0)
        i++;
    if (i == kinds->count && i < KINDS_MAX)
        strcpy(kinds->at[kinds->count++].name, name);
    if (i < kinds->count)
        kinds->at[i].count++;
    return 0;
}

/* Prints a word from outside, at least `width` characters wide. */
static int print_word(struct sl_slice word, int width, struct failure *reterr)
{
    struct buffer shown = BUFFER_INIT;
    int r = 0;

    cli_append_word(&shown, word);
    if (shown.failed)
        r = failure_set(reterr, -ENOMEM, "out of memory");
    else
        printf("%-*.*s", width, SL_SLICE_ARG(buffer_slice(&shown)));
    buffer_done(&shown);
    return r;
}

static int print_letter(struct database *database, const struct sl_task *task, void *context,
                        struct failure *reterr)
{
    int r;

    (void)database, (void)context;
    printf("  %" PRIu32 ":%.*s  ", task->shard, SL_SLICE_ARG(task->entry));
    r = print_word(task->kind, 0, reterr);
    printf("  id %" PRIu64 ", tried ", task->id);
    if (r == 0)
        r = print_word(sl_task_field(task, "tries"), 0, reterr);
    printf(" times: ");
    if (r == 0)
        r = print_word(sl_task_field(task, "error"), 0, reterr);
    printf("\n");
    return r;
}

static int sum_counts(struct database *database, struct sl_task_counts *sum, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    int r = 0;

    for (uint32_t shard = 0; r == 0 && shard < database->meta.shards; shard++) {
        struct sl_task_counts counts = {0};
        redisReply *reply = NULL;

        r = sl_task_counts_call(&call, &database->meta, shard, reterr);
        r = database_run(database, &call, r, &reply, reterr);
        if (r == 0)
            r = sl_task_counts_reply(reply, &counts, reterr);
        freeReplyObject(reply);
        sum->tasks += counts.tasks;
        sum->taken += counts.taken;
        sum->dead += counts.dead;
        if (counts.archive_away[0])
            memcpy(sum->archive_away, counts.archive_away, sizeof(sum->archive_away));
        if (counts.oldest_ms > sum->oldest_ms)
            sum->oldest_ms = counts.oldest_ms;
    }
    return r;
}

static int print_all(struct database *database, struct failure *reterr)
{
    struct sl_task_counts sum = {0};
    struct kinds kinds = {.count = 0};
    char why[LOG_QUOTE_SIZE];
    int r;

    r = sum_counts(database, &sum, reterr);
    if (r == 0)
        r = visit_all(database, sl_task_list_call, count_kind, &kinds, reterr);
    if (r < 0)
        return r;
    printf("tasks: %" PRIu64, sum.tasks);
    if (sum.tasks > 0)
        printf(", begun %" PRIu64 ", the oldest %.1f s old", sum.taken,
               (double)sum.oldest_ms / 1000);
    printf("\n");
    for (size_t i = 0; r == 0 && i < kinds.count; i++) {
        printf("  ");
        r = print_word(sl_slice_str(kinds.at[i].name), 12, reterr);
        printf(" %" PRIu64 "\n", kinds.at[i].count);
    }
    if (r < 0)
        return r;
    if (sum.archive_away[0])
        printf("the archive: %s\n", log_quote(sl_slice_str(sum.archive_away), why));
    printf("dead letters: %" PRIu64 "\n", sum.dead);
    return visit_all(database, sl_dead_list_call, print_letter, NULL, reterr);
}

static int run_list(struct cli *cli, int argc, char **argv)
{
    struct database database;
    struct failure failure;
    int status, r;

    cli_no_options(cli, argc, argv);
    cli_no_arguments(cli, argc, argv);
    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    r = print_all(&database, &failure);
    database_close(&database);
    return r < 0 ? cli_failed(cli, &failure) : cli_done(cli);
}

/* ---- dead letters ---- */

/* Parses "6:1795279267000-0". */
static bool parse_letter(const char *text, const struct sl_meta *meta, uint32_t *ret_shard,
                         struct sl_slice *ret_entry)
{
    const char *colon = strchr(text, ':');
    char *end;
    unsigned long shard = strtoul(text, &end, 10);
    uint64_t ms, n;
    int length = 0;

    if (!colon || end != colon || text[0] < '0' || text[0] > '9' || shard >= meta->shards)
        return false;
    if (sscanf(colon + 1, "%" SCNu64 "-%" SCNu64 "%n", &ms, &n, &length) != 2 ||
        colon[1 + length] != '\0')
        return false;
    *ret_shard = (uint32_t)shard;
    *ret_entry = sl_slice_str(colon + 1);
    return true;
}

static int change_letter(struct database *database, uint32_t shard, struct sl_slice entry,
                         bool is_retry, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = is_retry ? sl_dead_retry_call(&call, &database->meta, shard, entry, reterr)
                 : sl_dead_drop_call(&call, shard, entry, reterr);
    r = database_run(database, &call, r, &reply, reterr);
    if (r == 0)
        r = sl_dead_reply(reply, reterr);
    freeReplyObject(reply);
    return r;
}

struct change {
    bool is_retry;
    uint64_t count, most; /* a letter that returns meanwhile is not processed again */
};

static int change_visited(struct database *database, const struct sl_task *task, void *context,
                          struct failure *reterr)
{
    struct change *change = context;
    int r;

    if (change->count == change->most)
        return 0;
    r = change_letter(database, task->shard, task->entry, change->is_retry, reterr);
    if (r == 0)
        change->count++;
    return r == -ENOENT ? 0 : r; /* somebody else has already processed it */
}

static int change_letters(struct cli *cli, int argc, char **argv, bool is_retry)
{
    struct change change = {.is_retry = is_retry};
    struct sl_task_counts counts = {0};
    struct database database;
    struct failure failure;
    bool all = false;
    int status, r = 0;

    while (cli_option(cli, argc, argv) == 'a')
        all = true;
    if (all == (optind < argc))
        cli_usage(cli, "give IDs or --all");
    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    if (all)
        r = sum_counts(&database, &counts, &failure);
    change.most = counts.dead;
    if (all && r == 0)
        r = visit_all(&database, sl_dead_list_call, change_visited, &change, &failure);
    for (int i = optind; r == 0 && status == CLI_GOOD && i < argc; i++) {
        struct sl_slice entry;
        uint32_t shard;

        if (!parse_letter(argv[i], &database.meta, &shard, &entry)) {
            status = CLI_USAGE;
            cli_failed_with(cli, "'%s' is not the ID of a dead letter as printed by 'sluice tasks'",
                            argv[i]);
        } else {
            r = change_letter(&database, shard, entry, is_retry, &failure);
            change.count += r == 0;
        }
    }
    database_close(&database);
    if (r < 0)
        return cli_failed(cli, &failure);
    if (status == CLI_GOOD)
        printf("%" PRIu64 "\n", change.count);
    return status == CLI_GOOD ? cli_done(cli) : status;
}

static int run_retry(struct cli *cli, int argc, char **argv)
{
    return change_letters(cli, argc, argv, true);
}

static int run_drop(struct cli *cli, int argc, char **argv)
{
    return change_letters(cli, argc, argv, false);
}

const struct command command_tasks = {
    .name = "tasks",
    .arguments = "",
    .summary = "list pending tasks and dead letters",
    .help = "Prints how many tasks there are, by kind, and the dead letters: tasks that failed too "
            "often, with the reason of the last failure.",
    .examples = "sluice tasks\n",
    .run = run_list,
};

static const struct cli_option options[] = {
    {"all", 'a', NULL, "All dead letters that exist when the command starts.", NULL, CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_tasks_retry = {
    .name = "tasks retry",
    .arguments = "[ID...]",
    .summary = "retry dead letters",
    .help = "They become tasks again, as if they were new. Prints how many. Give IDs as printed by "
            "'sluice tasks', or --all.",
    .options = options,
    .examples = "sluice tasks retry 6:1795279267000-0\n"
                "sluice tasks retry --all\n",
    .run = run_retry,
};

const struct command command_tasks_drop = {
    .name = "tasks drop",
    .arguments = "[ID...]",
    .summary = "drop dead letters",
    .help = "Their work is not done. Prints how many. Give IDs as printed by 'sluice tasks', or "
            "--all.",
    .options = options,
    .examples = "sluice tasks drop 6:1795279267000-0\n",
    .run = run_drop,
};
