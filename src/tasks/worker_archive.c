/* worker_archive.c - compares what the database knows about its archive with the archive of the
 * worker.
 *
 * A database of an earlier version may have archived posts without recording an identity. Then keys
 * archived:USER show that there must be an archive, whichever it is. Each worker looks for them
 * with SCAN at its start, until an identity is recorded: 10,000 keys at a time, about 2 s for ten
 * million keys, and at once if the first page has one. */
#include "src/tasks/worker_archive.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/call_build.h"
#include "src/call/reply_read.h"
#include "src/model/keys.h"

enum { SCAN_COUNT = 10000, AWAY_MS = 60000, CURSOR_SIZE = 24 };

static const char FIELD[] = "archive_id"; /* as in archive_take.lua */

static int run(struct sl_redis_link *link, struct sl_call *call, redisReply **ret_reply,
               struct failure *reterr)
{
    int r = sl_call_finish(call, reterr);

    if (r == 0)
        r = sl_redis_link_run(link, call, ret_reply, reterr);
    return r < 0 ? r : sl_reply_check(*ret_reply, reterr);
}

/* The identity recorded in the first shard that has one. */
static int read_identity(struct sl_worker *worker, struct sl_redis_link *link,
                         struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    int r = 0;

    worker->archive_identity[0] = '\0';
    for (uint32_t shard = 0;
         r == 0 && worker->archive_identity[0] == '\0' && shard < worker->meta.shards; shard++) {
        redisReply *reply = NULL;
        char key[SL_KEY_SIZE];

        sl_call_begin(&call, shard, true);
        sl_call_add_str(&call, "HGET");
        sl_call_add_str(&call, sl_key(shard, "meta", key));
        sl_call_add_str(&call, FIELD);
        r = run(link, &call, &reply, reterr);
        if (r == 0 && reply->type == REDIS_REPLY_STRING)
            snprintf(worker->archive_identity, sizeof(worker->archive_identity), "%s", reply->str);
        freeReplyObject(reply);
    }
    sl_call_done(&call);
    return r;
}

/* Scans a page of keys, and advances `cursor`. *ret_has_some: it has some of the wanted keys. */
static int scan_page(struct sl_redis_link *link, char cursor[static CURSOR_SIZE],
                     bool *ret_has_some, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    sl_call_begin(&call, 0, true);
    sl_call_add_str(&call, "SCAN");
    sl_call_add_str(&call, cursor);
    sl_call_add_str(&call, "MATCH");
    sl_call_add_str(&call, "sluice:{*}:archived:*");
    sl_call_add_str(&call, "COUNT");
    sl_call_add_id(&call, SCAN_COUNT);
    r = run(link, &call, &reply, reterr);
    if (r == 0)
        r = sl_reply_check_array(reply, 2, reterr);
    if (r == 0 && (!sl_reply_at(reply, 0).data || reply->element[1]->type != REDIS_REPLY_ARRAY))
        r = sl_reply_unexpected(reterr);
    if (r == 0) {
        snprintf(cursor, CURSOR_SIZE, "%s", reply->element[0]->str);
        *ret_has_some = reply->element[1]->elements > 0;
    }
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

static int find_archived(struct sl_redis_link *link, bool *ret_has_some, struct failure *reterr)
{
    char cursor[CURSOR_SIZE] = "0";
    int r;

    do {
        r = scan_page(link, cursor, ret_has_some, reterr);
    } while (r == 0 && !*ret_has_some && strcmp(cursor, "0") != 0);
    return r;
}

int sl_worker_archive_find(struct sl_worker *worker, struct sl_redis_link *link,
                           struct failure *reterr)
{
    bool has_archived = true;
    int r;

    worker->archive_mode = SL_ARCHIVE_MAKE;
    if (worker->options.accept_archive)
        return 0;
    r = read_identity(worker, link, reterr);
    if (r == 0 && worker->archive_identity[0] == '\0')
        r = find_archived(link, &has_archived, reterr);
    if (r == 0 && has_archived)
        worker->archive_mode = SL_ARCHIVE_KEEP;
    return r;
}

/* Records it for a minute, as task_put_off.lua does; a worker that keeps trying renews it. NULL:
 * the archive is available. */
static void note_away(struct sl_redis_link *link, const char *why)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    char key[SL_KEY_SIZE];

    sl_call_begin(&call, 0, true);
    sl_call_add_str(&call, why ? "SET" : "DEL");
    sl_call_add_str(&call, sl_key(0, "archive_away", key));
    if (why) {
        sl_call_add_str(&call, why);
        sl_call_add_str(&call, "PX");
        sl_call_add_id(&call, AWAY_MS);
    }
    run(link, &call, &reply, NULL);
    freeReplyObject(reply);
    sl_call_done(&call);
}

static int compare(struct sl_worker *worker, const struct sl_archive *archive,
                   struct failure *reterr)
{
    const char *identity = sl_archive_identity(archive);

    if (worker->archive_identity[0] == '\0')
        memcpy(worker->archive_identity, identity, SL_ARCHIVE_IDENTITY_SIZE);
    if (strcmp(worker->archive_identity, identity) == 0)
        return 0;
    return failure_set(reterr, -ESTALE, "the archive is %s, and posts were archived to %s",
                       identity, worker->archive_identity);
}

int sl_worker_archive_open(struct sl_worker_thread *thread, struct failure *reterr)
{
    struct sl_worker *worker = thread->worker;
    bool is_known = worker->archive_identity[0] != '\0'; /* so another one would not be accepted */
    struct failure why;
    int r;

    r = sl_archive_open(worker->options.archive, worker->meta.database_id,
                        is_known ? SL_ARCHIVE_KEEP : worker->archive_mode, &thread->archive, &why);
    if (r == 0)
        r = compare(worker, thread->archive, &why);
    if (r == 0) {
        note_away(thread->link, NULL);
        return 0;
    }
    sl_archive_close(thread->archive);
    thread->archive = NULL;
    note_away(thread->link, why.text);
    if (worker->archive_mode == SL_ARCHIVE_KEEP && (r == -ENOENT || r == -ESTALE))
        return failure_set(reterr, r,
                           "%.240s; this database has archived posts: put their archive back, or "
                           "give it up with 'sluice worker --archive URL --accept-archive'",
                           why.text);
    return failure_set(reterr, r, "%s", why.text);
}

int sl_worker_archive_accept(struct sl_worker *worker, struct sl_redis_link *link,
                             struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    int r = 0;

    for (uint32_t shard = 0; r == 0 && shard < worker->meta.shards; shard++) {
        redisReply *reply = NULL;
        char key[SL_KEY_SIZE];

        sl_call_begin(&call, shard, true);
        sl_call_add_str(&call, "HSET");
        sl_call_add_str(&call, sl_key(shard, "meta", key));
        sl_call_add_str(&call, FIELD);
        sl_call_add_str(&call, worker->archive_identity);
        r = run(link, &call, &reply, reterr);
        freeReplyObject(reply);
    }
    sl_call_done(&call);
    return r;
}
