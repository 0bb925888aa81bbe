/* database.c - a blocking connection, users by the thousand, running tasks until none is left.
 *
 * Calls are sent in pipelines of limited length; an error ends the program with its message. Counts
 * are those of INFO, without the commands of this program that only observe. */
#include "bench/database.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/measure.h"
#include "src/call/call_build.h"
#include "src/call/reply.h"
#include "src/database/meta.h"
#include "src/database/settings.h"
#include "src/home/home_read.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/social/users.h"
#include "src/tasks/worker.h"

enum { BATCH = 200 };

void database_must(struct database *database, int r, const char *what)
{
    if (r < 0)
        measure_fail(what, database->failure.text);
}

void database_open(struct database *database, const char *url, uint32_t shards)
{
    const struct sl_redis_link_options options = {.answer_ms = 60000};
    const struct sl_meta wanted = sl_meta_wanted(shards);
    struct failure *failure = &database->failure;

    *database = (struct database){.link = NULL};
    if (!url)
        measure_fail("--redis", "needed: the URL of an empty Redis");
    if (shards < 1 || shards > SL_SHARDS_MAX)
        measure_fail("--shards", "a number from 1 to 64");
    database_must(database, sl_redis_address_parse(sl_slice_str(url), &database->address, failure),
                  "--redis");
    database_must(database,
                  sl_redis_link_open(&database->address, &options, &database->link, failure),
                  "open");
    database_must(database,
                  sl_redis_link_open(&database->address, &options, &database->watch, failure),
                  "open");
    database_must(database, sl_redis_link_meta(database->link, &wanted, &database->meta, failure),
                  "open");
    if (!database->meta.is_new)
        measure_fail("open", "there is a database already: an empty Redis is needed");
}

void database_open_by(struct database *database, int argc, char **argv)
{
    static const struct option options[] = {
        {"redis", required_argument, NULL, 'r'}, {"shards", required_argument, NULL, 's'}, {0}};
    const char *url = NULL;
    uint32_t shards = 1;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) >= 0) {
        if (option == 'r')
            url = optarg;
        else if (option == 's')
            shards = (uint32_t)strtoul(optarg, NULL, 10);
        else
            exit(2);
    }
    database_open(database, url, shards);
}

void database_close(struct database *database)
{
    sl_redis_link_close(database->link);
    sl_redis_link_close(database->watch);
}

redisReply *database_run(struct database *database, struct sl_call *call, int built)
{
    redisReply *reply = NULL;

    database_must(database, built, "build");
    database_must(database, sl_redis_link_run(database->link, call, &reply, &database->failure),
                  "run");
    database_must(database, sl_reply_check(reply, &database->failure), "run");
    sl_call_done(call);
    database->rounds++;
    return reply;
}

uint64_t database_write(struct database *database, struct sl_call *call, int built)
{
    redisReply *reply = database_run(database, call, built);
    struct sl_written written;

    database_must(database, sl_write_reply(reply, &written, &database->failure), "write");
    freeReplyObject(reply);
    return written.id;
}

void database_run_many(struct database *database, struct sl_call *calls, size_t count,
                       redisReply **ret_replies)
{
    database_must(
        database,
        sl_redis_link_run_many(database->link, calls, count, ret_replies, &database->failure),
        "run");
    database->rounds++;
}

static void write_batch(struct database *database, database_build_fn build, void *context,
                        size_t first, size_t count, uint64_t *ret_ids)
{
    struct sl_call calls[BATCH];
    redisReply *replies[BATCH];

    for (size_t i = 0; i < count; i++) {
        calls[i] = SL_CALL_INIT;
        database_must(database, build(context, &calls[i], first + i), "build");
    }
    database_run_many(database, calls, count, replies);
    for (size_t i = 0; i < count; i++) {
        struct sl_written written;

        database_must(database, sl_write_reply(replies[i], &written, &database->failure), "write");
        if (ret_ids)
            ret_ids[first + i] = written.id;
        freeReplyObject(replies[i]);
        sl_call_done(&calls[i]);
    }
}

void database_write_all(struct database *database, database_build_fn build, void *context,
                        size_t count, uint64_t *ret_ids)
{
    for (size_t i = 0; i < count; i += BATCH)
        write_batch(database, build, context, i, count - i < BATCH ? count - i : BATCH, ret_ids);
}

struct users {
    struct database *database;
    const char *name;
};

static int build_user(void *context, struct sl_call *call, size_t i)
{
    const struct users *users = context;
    char login[64];

    snprintf(login, sizeof(login), "%s%zu", users->name, i);
    return sl_user_create_call(call, &users->database->meta, SL_SLICE_NONE, sl_slice_str(login),
                               SL_SLICE_NONE, &users->database->failure);
}

void database_create_users(struct database *database, const char *name, size_t count,
                           uint64_t *ret_ids)
{
    struct users users = {database, name};

    database_write_all(database, build_user, &users, count, ret_ids);
}

void database_set(struct database *database, const char *name, const char *value)
{
    const struct sl_setting *setting;
    struct failure *failure = &database->failure;
    uint64_t number;
    size_t i;

    database_must(database, sl_setting_find(sl_slice_str(name), &i, failure), "setting");
    setting = sl_setting_at(i);
    database_must(database, sl_setting_parse(setting, sl_slice_str(value), &number, failure), name);
    for (uint32_t k = 0; k < database->meta.shards * sl_setting_rounds(setting); k++) {
        struct sl_call call = SL_CALL_INIT;

        freeReplyObject(
            database_run(database, &call,
                         sl_setting_change_call(&call, &database->meta, k % database->meta.shards,
                                                setting, &number, failure)));
    }
}

size_t database_read_home(struct database *database, uint64_t reader, size_t limit,
                          uint64_t *ret_newest)
{
    const struct sl_user_ref ref = sl_user_by_id(reader);
    const struct sl_home_page page = {.limit = limit};
    struct failure *failure = &database->failure;
    struct sl_home_read *read;
    struct sl_call *calls;
    size_t count;

    database_must(database, sl_home_read_new(&read, &database->meta, &ref, &page, failure), "home");
    for (;;) {
        redisReply *replies[256];

        database_must(database, sl_home_read_calls(read, &calls, &count, failure), "home");
        if (count == 0)
            break;
        database_run_many(database, calls, count, replies);
        for (size_t i = 0; i < count; i++) {
            database_must(database, sl_home_read_take(read, i, replies[i], failure), "home");
            freeReplyObject(replies[i]);
        }
    }
    count = sl_home_read_count(read);
    if (ret_newest)
        *ret_newest = count > 0 ? sl_home_read_at(read, 0)->id : 0;
    sl_home_read_free(read);
    return count;
}

void database_work(struct database *database)
{
    const struct sl_worker_options options = {.concurrency = 2, .until_empty = true};
    struct sl_worker *worker;

    database_must(
        database,
        sl_worker_new(&database->address, &database->meta, &options, &worker, &database->failure),
        "worker");
    database_must(database, sl_worker_run(worker, &database->failure), "worker");
    sl_worker_free(worker);
}

/* ---- observing ---- */

static redisReply *look(struct database *database, const char *command, const char *argument)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;

    sl_call_begin(&call, 0, true);
    sl_call_add_str(&call, command);
    sl_call_add_str(&call, argument);
    database_must(database, sl_call_finish(&call, &database->failure), command);
    database_must(database, sl_redis_link_run(database->watch, &call, &reply, &database->failure),
                  command);
    database_must(database, sl_reply_check(reply, &database->failure), command);
    sl_call_done(&call);
    database->watched++;
    return reply;
}

bool database_has_tasks(struct database *database)
{
    char key[SL_KEY_SIZE];
    bool has_some = false;

    for (uint32_t shard = 0; !has_some && shard < database->meta.shards; shard++) {
        redisReply *reply = look(database, "XLEN", sl_key(shard, "tasks", key));

        has_some = reply->integer > 0;
        freeReplyObject(reply);
    }
    return has_some;
}

static uint64_t calls_of(const char *stats, const char *command)
{
    char label[64];
    const char *found;

    snprintf(label, sizeof(label), "cmdstat_%s:calls=", command);
    found = strstr(stats, label);
    return found ? strtoull(found + strlen(label), NULL, 10) : 0;
}

/* A command is counted when it has ended, so INFO does not count itself. */
struct database_counts database_counts(struct database *database)
{
    struct database_counts counts = {.commands = 0 - database->watched};
    redisReply *info = look(database, "INFO", "commandstats");

    for (const char *at = info->str; (at = strstr(at, "calls=")); at++)
        counts.commands += strtoull(at + strlen("calls="), NULL, 10);
    counts.scripts = calls_of(info->str, "evalsha");
    freeReplyObject(info);
    return counts;
}
