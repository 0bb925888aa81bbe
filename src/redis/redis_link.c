/* redis_link.c - rounds: send every call that has no reply yet, collect replies, see what is left.
 *
 * A call is left when its connection broke, when the server lacked its script or was not ready.
 * Each round ends with all calls answered, with a pause and another round, or with failure. */
#include "src/redis/redis_link.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "src/call/reply.h"
#include "src/call/scripts.h"
#include "src/database/meta.h"
#include "src/redis/redis_connection.h"
#include "src/redis/redis_dial.h"
#include "src/redis/sentinel.h"
#include "src/redis/sentinels.h"

enum { CONNECT_MS = 5000, ANSWER_MS = 10000, FIRST_PAUSE_MS = 20, LAST_PAUSE_MS = 1000 };
enum { WAIT_MS = 1000 };
enum { SENTINEL_MS = 1000 }; /* a sentinel that is slower is passed over */
enum { SCRIPTS_MAX = 64 };

struct sl_redis_link {
    struct sl_redis_address address;
    struct sl_redis_link_options options;
    struct sl_redis_connection *connection; /* NULL: not connected */
    struct sl_sentinels *sentinels;         /* NULL: the address has none */
    bool was_told;                          /* by them, that address.endpoint is the master now */
    const struct sl_script *loaded[SCRIPTS_MAX]; /* what this connection has sent the text of */
    size_t loaded_count;
};

static void pause_ms(uint64_t ms)
{
    struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

static void disconnect(struct sl_redis_link *link)
{
    sl_redis_connection_close(link->connection);
    link->connection = NULL;
    link->loaded_count = 0;
}

/* ---- connect ---- */

static int check_role(struct sl_redis_connection *connection, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = sl_sentinel_role_call(&call, reterr);
    if (r == 0)
        r = sl_redis_ask(connection, call.argc, call.argv, call.argvlen, &reply, reterr);
    if (r == 0)
        r = sl_sentinel_role_reply(reply, reterr);
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

/* One that the sentinels have told us of is tried first; they are asked when it is not there. */
static int find_master(struct sl_redis_link *link, struct failure *reterr)
{
    bool was_told = link->was_told;

    link->was_told = false;
    return was_told ? 0 : sl_sentinels_find(link->sentinels, &link->address.endpoint, reterr);
}

/* Nobody waits until the old master hangs up: what it is given until then is lost. */
static void follow_master(struct sl_redis_link *link)
{
    struct sl_redis_endpoint master;

    if (!link->connection || !link->sentinels ||
        !sl_sentinels_have_moved(link->sentinels, clock_monotonic_ms(), &master))
        return;
    disconnect(link);
    link->address.endpoint = master;
    link->was_told = true;
}

static int connect_and_greet(struct sl_redis_link *link, struct failure *reterr)
{
    const struct sl_redis_address *address = &link->address;
    char db[16];
    int r = 0;

    if (link->sentinels)
        r = find_master(link, reterr);
    if (r == 0)
        r = sl_redis_dial(address->path[0] ? address->path : NULL, &address->endpoint,
                          link->options.connect_ms, link->options.answer_ms, &link->connection,
                          reterr);
    if (r == 0)
        r = sl_redis_log_in(link->connection, &address->login, reterr);
    if (r == 0 && address->db > 0) {
        snprintf(db, sizeof(db), "%u", (unsigned)address->db);
        r = sl_redis_greet(link->connection, 2, (const char *[]){"SELECT", db}, reterr);
    }
    if (r == 0 && address->sentinel_count > 0)
        r = check_role(link->connection, reterr);
    return r;
}

/* 0; -ECONNREFUSED: nobody there, or not ready to serve, which may pass; another errno: refused. */
static int ensure_connected(struct sl_redis_link *link, struct failure *reterr)
{
    char where[SL_REDIS_ADDRESS_TEXT_SIZE];
    struct failure failure = {""};
    int r;

    if (link->connection)
        return 0;
    r = connect_and_greet(link, &failure);
    if (r == 0)
        return 0;
    disconnect(link);
    sl_redis_address_print(&link->address, where, sizeof(where));
    return failure_set(reterr, r == -EAGAIN || r == -EROFS ? -ECONNREFUSED : r,
                       "cannot connect to %s: %s", where, failure.text);
}

/* During a failover nobody is the master for a while. */
static int connect_first(struct sl_redis_link *link, struct failure *reterr)
{
    uint64_t deadline_ms = clock_monotonic_ms() + link->options.retry_ms;
    struct backoff backoff = {0};
    int r;

    for (;;) {
        uint32_t wait_ms = backoff_next_ms(&backoff, FIRST_PAUSE_MS, LAST_PAUSE_MS);

        r = ensure_connected(link, reterr);
        if (r != -ECONNREFUSED || link->address.sentinel_count == 0 ||
            clock_monotonic_ms() + wait_ms > deadline_ms)
            return r;
        pause_ms(wait_ms);
    }
}

static int prepare_sentinels(struct sl_redis_link *link, struct failure *reterr)
{
    uint32_t connect_ms = link->options.connect_ms;

    if (link->address.sentinel_count == 0)
        return 0;
    link->sentinels =
        sl_sentinels_new(&link->address, connect_ms < SENTINEL_MS ? connect_ms : SENTINEL_MS);
    return link->sentinels ? 0 : failure_set(reterr, -ENOMEM, "out of memory");
}

int sl_redis_link_open(const struct sl_redis_address *address,
                       const struct sl_redis_link_options *options, struct sl_redis_link **ret_link,
                       struct failure *reterr)
{
    struct sl_redis_link *link = mem_zalloc(sizeof(*link));
    int r;

    if (!link)
        return failure_set(reterr, -ENOMEM, "out of memory");
    link->address = *address;
    link->options = *options;
    if (link->options.connect_ms == 0)
        link->options.connect_ms = CONNECT_MS;
    if (link->options.answer_ms == 0)
        link->options.answer_ms = ANSWER_MS;
    if (link->options.wait_ms == 0)
        link->options.wait_ms = WAIT_MS;
    r = prepare_sentinels(link, reterr);
    if (r == 0)
        r = connect_first(link, reterr);
    if (r < 0) {
        sl_redis_link_close(link);
        return r;
    }
    *ret_link = link;
    return 0;
}

void sl_redis_link_close(struct sl_redis_link *link)
{
    if (!link)
        return;
    disconnect(link);
    sl_sentinels_free(link->sentinels);
    explicit_bzero(&link->address.login, sizeof(link->address.login));
    explicit_bzero(&link->address.sentinel_login, sizeof(link->address.sentinel_login));
    mem_free(link);
}

/* ---- one round ---- */

static bool is_loaded(const struct sl_redis_link *link, const struct sl_script *script)
{
    for (size_t i = 0; i < link->loaded_count; i++) {
        if (link->loaded[i] == script)
            return true;
    }
    return link->loaded_count == SCRIPTS_MAX;
}

static int append(struct sl_redis_link *link, const struct sl_call *call, struct failure *reterr)
{
    return sl_redis_connection_append(link->connection, call->argc, call->argv, call->argvlen,
                                      reterr);
}

/* Sends the text of scripts that calls of one batch need: where one is missing, the calls behind
 * it must not overtake it. 0: so many replies will come of that; -ENOMEM. */
static int append_scripts(struct sl_redis_link *link, const struct sl_call *calls, size_t count,
                          size_t *ret_sent, struct failure *reterr)
{
    size_t sent = 0;

    for (size_t i = 0; i < count; i++) {
        const struct sl_script *script = calls[i].script;
        int r;

        if (!script || is_loaded(link, script))
            continue;
        r = sl_redis_connection_append(link->connection, 3,
                                       (const char *[]){"SCRIPT", "LOAD", script->source},
                                       (size_t[]){6, 4, script->source_size}, reterr);
        if (r < 0)
            return r;
        assert(link->loaded_count < SCRIPTS_MAX);
        link->loaded[link->loaded_count++] = script;
        sent++;
    }
    *ret_sent = sent;
    return 0;
}

/* Sends all calls without a reply and reads their replies, as far as they come. 0; negative errno:
 * the connection is good for nothing any more. */
static int exchange(struct sl_redis_link *link, const struct sl_call *calls, size_t count,
                    redisReply **replies, struct failure *reterr)
{
    size_t scripts = 0;
    redisReply *reply;
    int r = 0;

    assert(link->connection);
    if (count > 1)
        r = append_scripts(link, calls, count, &scripts, reterr);
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (!replies[i])
            r = append(link, &calls[i], reterr);
    }
    for (size_t i = 0; r == 0 && i < scripts; i++) {
        r = sl_redis_connection_read(link->connection, &reply, reterr);
        if (r == 0)
            freeReplyObject(reply);
    }
    for (size_t i = 0; r == 0 && i < count; i++) {
        if (!replies[i])
            r = sl_redis_connection_read(link->connection, &replies[i], reterr);
    }
    return r;
}

static void drop_reply(redisReply **reply)
{
    freeReplyObject(*reply);
    *reply = NULL;
}

static bool all_repeatable(const struct sl_call *calls, size_t count, redisReply *const *replies)
{
    for (size_t i = 0; i < count; i++) {
        if (!replies[i] && !calls[i].is_repeatable)
            return false;
    }
    return true;
}

enum round { ROUND_COMPLETE, ROUND_AGAIN, ROUND_AGAIN_LATER, ROUND_FAILED };

/* Was this answered by a master that is one no more? Then nothing was done. */
static bool is_demoted(const struct sl_redis_link *link, const redisReply *reply)
{
    return link->address.sentinel_count > 0 && sl_reply_is_replica(reply);
}

/* Takes back replies that only ask for another try. */
static enum round judge_replies(struct sl_redis_link *link, struct sl_call *calls, size_t count,
                                redisReply **replies, bool may_wait)
{
    enum round result = ROUND_COMPLETE;
    bool was_demoted = false;

    for (size_t i = 0; i < count; i++) {
        if (sl_reply_is_noscript(replies[i])) {
            sl_call_use_source(&calls[i], true);
            drop_reply(&replies[i]);
            if (result == ROUND_COMPLETE)
                result = ROUND_AGAIN;
        } else if (may_wait && (sl_reply_is_not_yet(replies[i]) || is_demoted(link, replies[i]))) {
            was_demoted = was_demoted || is_demoted(link, replies[i]);
            drop_reply(&replies[i]);
            result = ROUND_AGAIN_LATER;
        }
    }
    if (was_demoted)
        disconnect(link);
    return result;
}

static enum round run_round(struct sl_redis_link *link, struct sl_call *calls, size_t count,
                            redisReply **replies, bool may_wait, struct failure *reterr)
{
    struct failure why;
    int r;

    follow_master(link);
    r = ensure_connected(link, reterr);
    if (r < 0)
        return may_wait && r == -ECONNREFUSED ? ROUND_AGAIN_LATER : ROUND_FAILED;
    if (exchange(link, calls, count, replies, &why) == 0)
        return judge_replies(link, calls, count, replies, may_wait);
    failure_set(reterr, 0, "the connection to Redis broke before it answered: %s", why.text);
    disconnect(link);
    return may_wait && all_repeatable(calls, count, replies) ? ROUND_AGAIN_LATER : ROUND_FAILED;
}

static bool any_writes(const struct sl_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (calls[i].is_write)
            return true;
    }
    return false;
}

static int ask_for_replicas(struct sl_redis_link *link, redisReply **ret_reply,
                            struct failure *reterr)
{
    const struct sl_redis_link_options *options = &link->options;
    char replicas[16], wait_ms[16];
    int r;

    snprintf(replicas, sizeof(replicas), "%u", (unsigned)options->wait_replicas);
    snprintf(wait_ms, sizeof(wait_ms), "%u", (unsigned)options->wait_ms);
    sl_redis_connection_set_answer_ms(link->connection, options->answer_ms + options->wait_ms);
    r = sl_redis_connection_append(link->connection, 3, (const char *[]){"WAIT", replicas, wait_ms},
                                   NULL, reterr);
    if (r == 0)
        r = sl_redis_connection_read(link->connection, ret_reply, reterr);
    sl_redis_connection_set_answer_ms(link->connection, options->answer_ms);
    return r;
}

/* Redis answers when so many replicas have all that this connection has written, or after wait_ms
 * with how many they are. */
static int wait_for_replicas(struct sl_redis_link *link, struct failure *reterr)
{
    const struct sl_redis_link_options *options = &link->options;
    redisReply *reply = NULL;
    struct failure why = {""};
    long long count;

    if (ask_for_replicas(link, &reply, &why) < 0 || reply->type != REDIS_REPLY_INTEGER) {
        failure_set(reterr, 0, "it is done, but nobody knows whether the replicas have it: %s",
                    reply ? reply->str : why.text);
        freeReplyObject(reply);
        disconnect(link);
        return -EIO;
    }
    count = reply->integer;
    freeReplyObject(reply);
    if (count >= options->wait_replicas)
        return 0;
    return failure_set(reterr, -ETIMEDOUT,
                       "it is done, but only %lld of %u replicas had it after %u ms", count,
                       options->wait_replicas, options->wait_ms);
}

int sl_redis_link_run_many(struct sl_redis_link *link, struct sl_call *calls, size_t count,
                           struct redisReply **ret_replies, struct failure *reterr)
{
    uint64_t deadline_ms = clock_monotonic_ms() + link->options.retry_ms;
    struct backoff backoff = {0};
    enum round round;
    int r;

    memset(ret_replies, 0, count * sizeof(*ret_replies));
    do {
        uint32_t wait_ms = backoff_peek_ms(&backoff, FIRST_PAUSE_MS, LAST_PAUSE_MS);
        bool may_wait = clock_monotonic_ms() + wait_ms <= deadline_ms;

        round = run_round(link, calls, count, ret_replies, may_wait, reterr);
        if (round == ROUND_AGAIN_LATER)
            pause_ms(backoff_next_ms(&backoff, FIRST_PAUSE_MS, LAST_PAUSE_MS));
    } while (round == ROUND_AGAIN || round == ROUND_AGAIN_LATER);

    r = round == ROUND_COMPLETE ? 0 : -EIO;
    if (r == 0 && link->options.wait_replicas > 0 && any_writes(calls, count))
        r = wait_for_replicas(link, reterr);
    for (size_t i = 0; i < count; i++) {
        sl_call_use_source(&calls[i], false);
        if (r < 0 && ret_replies[i])
            drop_reply(&ret_replies[i]);
    }
    return r;
}

int sl_redis_link_run(struct sl_redis_link *link, struct sl_call *call,
                      struct redisReply **ret_reply, struct failure *reterr)
{
    return sl_redis_link_run_many(link, call, 1, ret_reply, reterr);
}

/* ---- which database is it? ---- */

static int ask_meta(struct sl_redis_link *link, uint32_t shard, const struct sl_meta *wanted,
                    struct sl_meta *ret_meta, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = sl_meta_call(&call, shard, wanted, reterr);
    if (r == 0)
        r = sl_redis_link_run(link, &call, &reply, reterr);
    if (r == 0)
        r = sl_meta_reply(reply, ret_meta, reterr);
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

int sl_redis_link_meta(struct sl_redis_link *link, const struct sl_meta *wanted,
                       struct sl_meta *ret_meta, struct failure *reterr)
{
    struct sl_meta meta, other;
    int r;

    r = ask_meta(link, 0, wanted, &meta, reterr);
    for (uint32_t shard = 1; r == 0 && shard < meta.shards; shard++) {
        r = ask_meta(link, shard, &meta, &other, reterr);
        if (r == 0)
            r = sl_meta_check_same(&meta, &other, reterr);
    }
    if (r == 0)
        *ret_meta = meta;
    return r;
}
