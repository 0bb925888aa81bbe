/* dictionary_train.c - sluice dictionary train: makes a dictionary from the log and adds it to the
 * database.
 *
 * Every tenth post is excluded from the training: how well these are compressed shows the effect on
 * other posts. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "cli/argument.h"
#include "cli/dictionary_ids.h"
#include "cli/dictionary_log.h"
#include "cli/dictionary_make.h"
#include "src/call/reply.h"

enum {
    KEY_SIZE = 1,
    KEY_POSTS,
    KEY_DRY_RUN,
    SIZE_MIN = 1024,
    SIZE = 16384,
    POSTS = 10000,
    POSTS_MAX = 20000,
    HELD_OUT = 10, /* one of this many */
    MEASURED_MIN = 5
};

struct arguments {
    size_t size, posts;
    bool is_dry_run;
};

/* An id that was never used. */
static int choose_id(struct database *database, uint32_t *ret_id, struct failure *reterr)
{
    const uint32_t ids = SL_DICTIONARY_ID_MAX - SL_DICTIONARY_ID_MIN + 1;
    uint32_t at = (uint32_t)(hash_key_random().k0 % ids);
    struct dictionary_list *list;
    bool *is_used = mem_zalloc(ids);
    int r;

    if (!is_used)
        return failure_set(reterr, -ENOMEM, "out of memory");
    r = dictionary_list_read(database, &list, reterr);
    if (r == 0) {
        for (size_t i = 0; i < list->count; i++)
            is_used[list->at[i].id - SL_DICTIONARY_ID_MIN] = true;
        if (list->count == ids)
            r = failure_set(reterr, -EDQUOT, "all ids of dictionaries have been used");
        while (r == 0 && is_used[at])
            at = (at + 1) % ids;
        mem_free(list);
    }
    mem_free(is_used);
    *ret_id = SL_DICTIONARY_ID_MIN + at;
    return r;
}

/* Moves the excluded samples to the end. Returns the number of the others. */
static size_t hold_out(struct piece_sample *samples, size_t count)
{
    size_t kept = 0;

    for (size_t i = 0; i < count; i++) {
        if (i % HELD_OUT != HELD_OUT - 1) {
            struct piece_sample sample = samples[i];

            samples[i] = samples[kept];
            samples[kept++] = sample;
        }
    }
    return kept;
}

static int add(struct database *database, uint32_t id, size_t posts, struct sl_slice bytes,
               struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r = sl_dictionary_add_call(&call, &database->meta, id, posts, bytes, reterr);

    r = database_run(database, &call, r, &reply, reterr);
    if (r == 0)
        r = sl_reply_check(reply, reterr);
    freeReplyObject(reply);
    return r;
}

static double average(uint64_t bytes, const struct dictionary_measure *measure)
{
    return measure->events ? (double)bytes / (double)measure->events : 0;
}

static int print_result(const struct cli *cli, uint32_t id, size_t bytes, size_t posts,
                        const struct dictionary_log *log, const struct dictionary_measure *measure)
{
    printf("{\"id\":%" PRIu32 ",\"bytes\":%zu,\"posts\":%zu,\"authors\":%" PRIu32, id, bytes, posts,
           log->authors);
    if (measure->events >= MEASURED_MIN)
        printf(",\"others\":%zu,\"event_bytes\":%.0f,\"by_itself\":%.0f,\"with_it\":%.0f",
               measure->events, average(measure->bytes, measure),
               average(measure->by_itself, measure), average(measure->with_it, measure));
    printf("}\n");
    return cli_done(cli);
}

static int train(struct database *database, const struct cli *cli,
                 const struct arguments *arguments, struct dictionary_log *log)
{
    size_t posts = hold_out(log->samples, log->count);
    struct buffer dictionary = BUFFER_INIT;
    struct dictionary_measure measure = {0};
    struct failure failure = {"out of memory"};
    uint32_t id = 0;
    int r, status;

    r = choose_id(database, &id, &failure);
    if (r == 0)
        r = dictionary_make(log->samples, posts, id, arguments->size, &dictionary, &failure);
    if (r == 0)
        r = dictionary_measure(log->samples + posts, log->count - posts, buffer_slice(&dictionary),
                               &measure);
    if (r == 0 && !arguments->is_dry_run)
        r = add(database, id, posts, buffer_slice(&dictionary), &failure);
    status = r < 0 ? cli_failed(cli, &failure)
                   : print_result(cli, id, dictionary.size, posts, log, &measure);
    buffer_done(&dictionary);
    return status;
}

static struct arguments read_arguments(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {.size = SIZE, .posts = POSTS};
    int key;

    while ((key = cli_option(cli, argc, argv)) >= 0) {
        if (key == KEY_SIZE)
            arguments.size = argument_number(cli, "size", optarg, SL_DICTIONARY_BYTES_MAX);
        else if (key == KEY_POSTS)
            arguments.posts = argument_number(cli, "posts", optarg, POSTS_MAX);
        else
            arguments.is_dry_run = true;
    }
    cli_no_arguments(cli, argc, argv);
    if (arguments.size < SIZE_MIN)
        cli_usage(cli, "--size is at least %d", SIZE_MIN);
    return arguments;
}

static int run(struct cli *cli, int argc, char **argv)
{
    const struct arguments arguments = read_arguments(cli, argc, argv);
    struct dictionary_log log;
    struct database database;
    struct failure failure;
    int status;

    status = database_open(&database, cli, 0);
    if (status != CLI_GOOD)
        return status;
    if (dictionary_log_read(&database, arguments.posts, &log, &failure) < 0) {
        status = cli_failed(cli, &failure);
    } else {
        status = train(&database, cli, &arguments, &log);
        dictionary_log_done(&log);
    }
    database_close(&database);
    return status;
}

static const struct cli_option options[] = {
    {"size", KEY_SIZE, "BYTES", "1,024 to 112,640; the default is 16,384.", NULL, CLI_ONCE},
    {"posts", KEY_POSTS, "N",
     "Use at most this many of the newest posts, up to 20,000; the "
     "default is 10,000.",
     NULL, CLI_ONCE},
    {"dry-run", KEY_DRY_RUN, NULL, "Only print what it would save.", NULL, CLI_ONCE},
    CLI_OPTIONS_END,
};

const struct command command_dictionary_train = {
    .name = "dictionary train",
    .arguments = "",
    .summary = "train a dictionary for compressed streams",
    .help =
        "Uses the newest posts of the log that everybody may read and that have not been "
        "deleted. A dictionary is public, so it contains only strings that at least five authors "
        "have written; 'sluice dictionary show' prints them. Prints its id, and the size of an "
        "event of other posts: uncompressed, compressed by itself, and with the dictionary.\n\n"
        "Every sluiced has it within seconds, in addition to the others; clients choose one by "
        "its id. There may be eight that are not withdrawn. A dictionary is useful as long as "
        "posts are similar: some months.",
    .options = options,
    .examples = "sluice dictionary train\nsluice dictionary train --size 32768 --dry-run\n",
    .run = run,
};
