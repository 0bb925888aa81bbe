/* redis_link.c - runs calls in rounds: send every call without a reply, collect replies, and see
 * what is left.
 *
 * A call is left if its connection broke, or if the server lacked its script, was not ready, or
 * redirected it to another node. After each round all calls are answered, or there is another
 * round, at once or after a pause, or the run fails.
 *
 * A single Redis is a node that has all shards. In a cluster each node (src/redis/redis_cluster.h)
 * has some of them. A round sends to all nodes before it reads from the first. */
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
#include "src/call/call_build.h"
#include "src/redis/redis_cluster.h"
#include "src/redis/redis_connection.h"
#include "src/redis/redis_dial.h"
#include "src/redis/redis_link_parts.h"
#include "src/redis/redis_node.h"
#include "src/redis/sentinel.h"
#include "src/redis/sentinels.h"

enum { CONNECT_MS = 5000, ANSWER_MS = 10000, FIRST_PAUSE_MS = 20, LAST_PAUSE_MS = 1000 };
enum { WAIT_MS = 1000 };
enum { SENTINEL_MS = 1000 }; /* a slower sentinel is skipped */
enum { HOPS_MAX = 5 };       /* redirections in a row; after that the cluster needs a pause */

struct sl_redis_link {
    struct sl_redis_address address;
    struct sl_redis_link_options options;
    struct sl_redis_node only;        /* the node of a single Redis */
    struct sl_redis_cluster *cluster; /* NULL: a single Redis */
    struct sl_sentinels *sentinels;   /* NULL: the address has none */
    bool was_told;                    /* the sentinels have announced that address.endpoint is the
                                         master now */
};

static void pause_ms(uint64_t ms)
{
    struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
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

/* A master that the sentinels have announced is tried first; they are asked if it is not there. */
static int find_master(struct sl_redis_link *link, struct failure *reterr)
{
    bool was_told = link->was_told;

    link->was_told = false;
    return was_told ? 0 : sl_sentinels_find(link->sentinels, &link->address.endpoint, reterr);
}

/* Leaves a replaced master at once, without waiting until it closes the connection: writes to it
 * until then would be lost. */
static void follow_master(struct sl_redis_link *link)
{
    struct sl_redis_endpoint master;

    if (!link->only.connection || !link->sentinels ||
        !sl_sentinels_have_moved(link->sentinels, clock_monotonic_ms(), &master))
        return;
    sl_redis_node_disconnect(&link->only);
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
        r = sl_redis_dial(address, &address->endpoint, link->options.connect_ms,
                          link->options.answer_ms, &link->only.connection, reterr);
    if (r == 0)
        r = sl_redis_log_in(link->only.connection, &address->login, reterr);
    if (r == 0 && address->db > 0) {
        snprintf(db, sizeof(db), "%u", (unsigned)address->db);
        r = sl_redis_greet(link->only.connection, 2, (const char *[]){"SELECT", db}, reterr);
    }
    if (r == 0 && address->sentinel_count > 0)
        r = check_role(link->only.connection, reterr);
    return r;
}

/* 0; -ECONNREFUSED: nobody there, or not ready to serve, which may be temporary; another errno:
 * refused. */
static int ensure_connected(struct sl_redis_link *link, struct failure *reterr)
{
    char where[SL_REDIS_ADDRESS_TEXT_SIZE];
    struct failure failure = {""};
    int r;

    if (link->only.connection)
        return 0;
    r = connect_and_greet(link, &failure);
    if (r == 0)
        return 0;
    sl_redis_node_disconnect(&link->only);
    sl_redis_address_print(&link->address, where, sizeof(where));
    return failure_set(reterr, r == -EAGAIN || r == -EROFS ? -ECONNREFUSED : r,
                       "cannot connect to %s: %s", where, failure.text);
}

static int connect_once(struct sl_redis_link *link, struct failure *reterr)
{
    return link->cluster ? sl_redis_cluster_refresh(link->cluster, reterr)
                         : ensure_connected(link, reterr);
}

/* Retries, because during a failover there is no master for a while. */
static int connect_first(struct sl_redis_link *link, struct failure *reterr)
{
    uint64_t deadline_ms = clock_monotonic_ms() + link->options.retry_ms;
    bool may_wait = link->cluster || link->sentinels;
    struct backoff backoff = {0};
    int r;

    for (;;) {
        uint32_t wait_ms = backoff_next_ms(&backoff, FIRST_PAUSE_MS, LAST_PAUSE_MS);

        r = connect_once(link, reterr);
        if (r != -ECONNREFUSED || !may_wait || clock_monotonic_ms() + wait_ms > deadline_ms)
            return r;
        pause_ms(wait_ms);
    }
}

/* Prepares the sentinels or the cluster. */
static int prepare_servers(struct sl_redis_link *link, struct failure *reterr)
{
    const struct sl_redis_address *address = &link->address;
    uint32_t connect_ms = link->options.connect_ms;

    link->only.shards = UINT64_MAX;
    if (address->seed_count > 0)
        link->cluster = sl_redis_cluster_new(address, connect_ms, link->options.answer_ms);
    if (address->sentinel_count > 0)
        link->sentinels =
            sl_sentinels_new(address, connect_ms < SENTINEL_MS ? connect_ms : SENTINEL_MS);
    if ((address->seed_count > 0 && !link->cluster) ||
        (address->sentinel_count > 0 && !link->sentinels))
        return failure_set(reterr, -ENOMEM, "out of memory");
    return 0;
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
    r = prepare_servers(link, reterr);
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
    sl_redis_node_disconnect(&link->only);
    sl_redis_cluster_free(link->cluster);
    sl_sentinels_free(link->sentinels);
    explicit_bzero(&link->address.login, sizeof(link->address.login));
    explicit_bzero(&link->address.sentinel_login, sizeof(link->address.sentinel_login));
    mem_free(link);
}

/* ---- the nodes: one, or those of a cluster ---- */

static size_t node_count(const struct sl_redis_link *link)
{
    return link->cluster ? sl_redis_cluster_count(link->cluster) : 1;
}

static struct sl_redis_node *node_at(struct sl_redis_link *link, size_t i)
{
    return link->cluster ? sl_redis_cluster_at(link->cluster, i) : &link->only;
}

static int connect_node(struct sl_redis_link *link, struct sl_redis_node *node,
                        struct failure *reterr)
{
    return link->cluster ? sl_redis_cluster_connect(link->cluster, node, reterr)
                         : ensure_connected(link, reterr);
}

/* After an unexpected reply: in a cluster, another node may have the shard by now. */
static void doubt(struct sl_redis_link *link)
{
    if (link->cluster)
        sl_redis_cluster_doubt(link->cluster);
}

/* ---- one round ---- */

/* In ascending order of precedence. */
enum round { ROUND_COMPLETE, ROUND_AGAIN, ROUND_AGAIN_LATER, ROUND_FAILED };

/* Calls that are run together. */
struct run {
    struct sl_redis_link *link;
    struct sl_call *calls;
    size_t count;
    redisReply **replies; /* NULL: no reply yet */
    unsigned hops;        /* rounds since the last pause */
    bool may_wait;        /* there is time for another round */
    enum round round;
    struct failure *reterr;
};

static void drop_reply(redisReply **reply)
{
    freeReplyObject(*reply);
    *reply = NULL;
}

static void weigh(struct run *run, enum round round)
{
    if (round > run->round)
        run->round = round;
}

static bool is_unanswered(const struct run *run, size_t i, uint64_t shards)
{
    return !run->replies[i] && (shards >> run->calls[i].shard & 1);
}

/* The first call to one of these shards without a reply; NULL: none. */
static const struct sl_call *find_unanswered(const struct run *run, uint64_t shards)
{
    for (size_t i = 0; i < run->count; i++) {
        if (is_unanswered(run, i, shards))
            return &run->calls[i];
    }
    return NULL;
}

/* The connection broke while calls were outstanding. */
static void note_broken(struct run *run, struct sl_redis_node *node, const struct failure *why)
{
    bool may_repeat = run->may_wait;
    char where[SL_REDIS_ENDPOINT_TEXT_SIZE];

    sl_redis_endpoint_print(&node->endpoint, where, sizeof(where));
    failure_set(run->reterr, 0, "the connection to %s broke before it answered: %s",
                node->endpoint.host[0] ? where : "Redis", why->text);
    sl_redis_node_disconnect(node);
    doubt(run->link);
    for (size_t i = 0; i < run->count; i++)
        may_repeat =
            may_repeat && (!is_unanswered(run, i, node->shards) || run->calls[i].is_repeatable);
    weigh(run, may_repeat ? ROUND_AGAIN_LATER : ROUND_FAILED);
}

static void send_to(struct run *run, struct sl_redis_node *node)
{
    struct failure why;
    int r = connect_node(run->link, node, &why);

    if (r < 0) {
        if (run->link->cluster)
            failure_set(run->reterr, 0, "shard %u is away: %s",
                        (unsigned)find_unanswered(run, node->shards)->shard, why.text);
        else
            failure_set(run->reterr, 0, "%s", why.text);
        weigh(run, run->may_wait && r == -ECONNREFUSED ? ROUND_AGAIN_LATER : ROUND_FAILED);
        return;
    }
    if (sl_redis_node_send(node, run->calls, run->count, run->replies, &why) < 0)
        note_broken(run, node, &why);
}

static void receive_from(struct run *run, struct sl_redis_node *node)
{
    struct failure why;

    if (sl_redis_node_receive(node, run->calls, run->count, run->replies, &why) < 0)
        note_broken(run, node, &why);
}

/* Sends to all nodes before waiting for the first. */
static void exchange(struct run *run)
{
    const struct sl_call *lost;
    uint64_t served = 0;

    for (size_t i = 0; i < node_count(run->link); i++) {
        struct sl_redis_node *node = node_at(run->link, i);

        served |= node->shards;
        if (find_unanswered(run, node->shards))
            send_to(run, node);
    }
    for (size_t i = 0; i < node_count(run->link); i++) {
        struct sl_redis_node *node = node_at(run->link, i);

        if (node->is_asked)
            receive_from(run, node);
    }
    lost = find_unanswered(run, ~served);
    if (!lost)
        return;
    if (sl_redis_cluster_seek(run->link->cluster, lost->shard)) {
        weigh(run, ROUND_AGAIN);
        return;
    }
    failure_set(run->reterr, 0, "nobody in the cluster has shard %u", (unsigned)lost->shard);
    doubt(run->link);
    weigh(run, run->may_wait ? ROUND_AGAIN_LATER : ROUND_FAILED);
}

/* ---- evaluating the replies ---- */

/* Whether the reply comes from a master that was demoted. Then nothing was executed. */
static bool is_demoted(const struct sl_redis_link *link, const redisReply *reply)
{
    return (link->cluster || link->address.sentinel_count > 0) && sl_reply_is_replica(reply);
}

/* The key of a plain command has already moved to the other node. A script must wait until all keys
 * have. */
static void ask_other(struct run *run, size_t i, const struct sl_redis_endpoint *endpoint)
{
    int r;

    drop_reply(&run->replies[i]);
    r = sl_redis_cluster_ask(run->link->cluster, endpoint, &run->calls[i], &run->replies[i],
                             run->reterr);
    if (r == -ECONNREFUSED || (r < 0 && run->calls[i].is_repeatable))
        weigh(run, run->may_wait ? ROUND_AGAIN_LATER : ROUND_FAILED);
    else if (r < 0)
        weigh(run, ROUND_FAILED);
}

/* Follows a redirection: afterwards the call has the reply of the other node, or none. */
static void follow_redirect(struct run *run, size_t i)
{
    struct sl_redis_cluster *cluster = run->link->cluster;
    uint32_t shard = run->calls[i].shard;
    const struct sl_redis_node *node = sl_redis_cluster_find(cluster, shard);
    struct sl_cluster_redirect redirect;

    if (!node || run->hops == HOPS_MAX ||
        sl_cluster_redirect_reply(run->replies[i], &node->endpoint, &redirect) < 0 ||
        redirect.slot != sl_cluster_slot(shard))
        return;
    if (!redirect.is_ask) {
        sl_redis_cluster_move(cluster, shard, &redirect.endpoint);
        drop_reply(&run->replies[i]);
        weigh(run, ROUND_AGAIN);
    } else if (!run->calls[i].script) {
        ask_other(run, i, &redirect.endpoint);
    }
}

/* Nothing was executed, but it may be later. */
static bool is_not_yet(const struct run *run, const redisReply *reply)
{
    return sl_reply_is_not_yet(reply) || is_demoted(run->link, reply) ||
           (run->link->cluster && sl_reply_check(reply, NULL) == -EREMOTE);
}

/* Removes replies that only ask for another attempt. */
static void judge_replies(struct run *run)
{
    bool was_demoted = false;

    for (size_t i = 0; i < run->count; i++) {
        redisReply **reply = &run->replies[i];

        if (sl_reply_is_noscript(*reply)) {
            sl_call_use_source(&run->calls[i], true);
            drop_reply(reply);
            weigh(run, ROUND_AGAIN);
        }
        if (run->link->cluster && *reply)
            follow_redirect(run, i);
        if (*reply && run->may_wait && is_not_yet(run, *reply)) {
            was_demoted = was_demoted || is_demoted(run->link, *reply);
            doubt(run->link);
            drop_reply(reply);
            weigh(run, ROUND_AGAIN_LATER);
        }
    }
    if (was_demoted)
        sl_redis_node_disconnect(&run->link->only);
}

static void run_round(struct run *run)
{
    struct sl_redis_link *link = run->link;
    int r = 0;

    run->round = ROUND_COMPLETE;
    follow_master(link);
    if (link->cluster)
        r = sl_redis_cluster_refresh(link->cluster, run->reterr);
    if (r < 0) {
        run->round = run->may_wait && r == -ECONNREFUSED ? ROUND_AGAIN_LATER : ROUND_FAILED;
        return;
    }
    exchange(run);
    judge_replies(run);
}

/* ---- replicas ---- */

static int ask_for_replicas(struct sl_redis_link *link, struct sl_redis_node *node,
                            redisReply **ret_reply, struct failure *reterr)
{
    const struct sl_redis_link_options *options = &link->options;
    char replicas[16], wait_ms[16];
    int r;

    if (!node->connection)
        return failure_set(reterr, -EIO, "the connection broke");
    snprintf(replicas, sizeof(replicas), "%u", (unsigned)options->wait_replicas);
    snprintf(wait_ms, sizeof(wait_ms), "%u", (unsigned)options->wait_ms);
    sl_redis_connection_set_answer_ms(node->connection, options->answer_ms + options->wait_ms);
    r = sl_redis_connection_append(node->connection, 3, (const char *[]){"WAIT", replicas, wait_ms},
                                   NULL, reterr);
    if (r == 0)
        r = sl_redis_connection_read(node->connection, ret_reply, reterr);
    sl_redis_connection_set_answer_ms(node->connection, options->answer_ms);
    return r;
}

/* WAIT returns when this many replicas have everything that this connection has written, or after
 * wait_ms with their number. */
static int wait_for_replicas(struct sl_redis_link *link, struct sl_redis_node *node,
                             struct failure *reterr)
{
    const struct sl_redis_link_options *options = &link->options;
    redisReply *reply = NULL;
    struct failure why = {""};
    long long count;

    if (ask_for_replicas(link, node, &reply, &why) < 0 || reply->type != REDIS_REPLY_INTEGER) {
        failure_set(reterr, 0, "it is done, but nobody knows whether the replicas have it: %s",
                    reply ? reply->str : why.text);
        freeReplyObject(reply);
        sl_redis_node_disconnect(node);
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

/* Each node that was sent a write has its own replicas. */
static int wait_for_all_replicas(struct sl_redis_link *link, struct failure *reterr)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < node_count(link); i++) {
        struct sl_redis_node *node = node_at(link, i);

        if (node->has_written)
            r = wait_for_replicas(link, node, reterr);
    }
    return r;
}

/* ---- runs ---- */

static void begin_run(struct run *run)
{
    memset(run->replies, 0, run->count * sizeof(*run->replies));
    for (size_t i = 0; i < node_count(run->link); i++)
        node_at(run->link, i)->has_written = false;
}

static int run_calls(struct run *run, uint32_t retry_ms)
{
    uint64_t deadline_ms = clock_monotonic_ms() + retry_ms;
    struct backoff backoff = {0};
    int r;

    begin_run(run);
    do {
        uint32_t wait_ms = backoff_peek_ms(&backoff, FIRST_PAUSE_MS, LAST_PAUSE_MS);

        run->may_wait = clock_monotonic_ms() + wait_ms <= deadline_ms;
        run_round(run);
        run->hops = run->round == ROUND_AGAIN ? run->hops + 1 : 0;
        if (run->round == ROUND_AGAIN_LATER)
            pause_ms(backoff_next_ms(&backoff, FIRST_PAUSE_MS, LAST_PAUSE_MS));
    } while (run->round == ROUND_AGAIN || run->round == ROUND_AGAIN_LATER);

    r = run->round == ROUND_COMPLETE ? 0 : -EIO;
    if (r == 0 && run->link->options.wait_replicas > 0)
        r = wait_for_all_replicas(run->link, run->reterr);
    for (size_t i = 0; i < run->count; i++) {
        sl_call_use_source(&run->calls[i], false);
        if (r < 0 && run->replies[i])
            drop_reply(&run->replies[i]);
    }
    return r;
}

int sl_redis_link_run_many(struct sl_redis_link *link, struct sl_call *calls, size_t count,
                           struct redisReply **ret_replies, struct failure *reterr)
{
    struct run run = {
        .link = link, .calls = calls, .count = count, .replies = ret_replies, .reterr = reterr};

    return run_calls(&run, link->options.retry_ms);
}

int sl_redis_link_run(struct sl_redis_link *link, struct sl_call *call,
                      struct redisReply **ret_reply, struct failure *reterr)
{
    return sl_redis_link_run_many(link, call, 1, ret_reply, reterr);
}

int sl_redis_link_try(struct sl_redis_link *link, struct sl_call *call,
                      struct redisReply **ret_reply, struct failure *reterr)
{
    return sl_redis_link_try_many(link, call, 1, ret_reply, reterr);
}

/* ---- for finding the database ---- */

struct sl_redis_cluster *sl_redis_link_cluster(struct sl_redis_link *link)
{
    return link->cluster;
}

int sl_redis_link_try_many(struct sl_redis_link *link, struct sl_call *calls, size_t count,
                           redisReply **ret_replies, struct failure *reterr)
{
    struct run run = {
        .link = link, .calls = calls, .count = count, .replies = ret_replies, .reterr = reterr};

    return run_calls(&run, 0);
}

void sl_redis_link_expect(struct sl_redis_link *link, const struct sl_meta *meta)
{
    if (link->cluster)
        sl_redis_cluster_expect(link->cluster, meta);
}
