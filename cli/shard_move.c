/* shard_move.c - moves a shard as a whole if the servers support it, otherwise in parts.
 *
 * In parts, by commands that take a few milliseconds each:
 *
 *   1. The target imports the slot, and most of the log is copied while it is written to.
 *   2. The shard is marked as moving: from here on its scripts refuse, wherever they run, and their
 *      callers repeat them. The source migrates the slot.
 *   3. The rest of the log is copied, compared, and removed at the source; other keys are moved by
 *      MIGRATE, a hundred at a time; `meta`, with the mark, is copied last.
 *   4. The target takes the slot, the source gives it up, the mark is removed.
 *   5. The other nodes are told, and waited for until they have learned of it.
 *
 * Each step checks the current state and does what is missing, so the same steps continue an
 * interrupted move. Until the target has the slot the mark is at the source, and at no moment is it
 * missing at both: scripts would create the shard anew. */
#include "cli/shard_move.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "cli/shard_atomic.h"
#include "cli/shard_check.h"
#include "cli/shard_copy.h"
#include "src/call/reply_read.h"
#include "src/redis/cluster_map.h"

enum { KEYS_AT_ONCE = 100, MIGRATE_WORDS = 16, HEARD_MS = 10000, HEARD_ANSWER_MS = 1000 };
#define MIGRATE_MS "30000"

static void tell(const struct shard_move *move)
{
    if (move->tell)
        move->tell(move);
}

/* ---- the log ---- */

static void note_copied(void *context)
{
    struct shard_move *move = context;

    tell(move);
}

static struct shard_copy copy_of(struct shard_move *move)
{
    return (struct shard_copy){
        .nodes = move->nodes,
        .from = move->from,
        .to = move->to,
        .key = move->log,
        .entries = &move->entries,
        .all = &move->all_entries,
        .tell = note_copied,
        .context = move,
    };
}

/* ---- the mark ---- */

static int mark(struct shard_move *move, struct failure *reterr)
{
    const char *words[] = {"HSET", move->meta, "moving", move->to->name};
    struct shard_node *node = move->from;
    redisReply *reply = NULL;
    bool has = false;
    int r = shard_node_has(move->nodes, node, false, move->meta, &has, reterr);

    if (r == 0 && !has) { /* another tool has already moved it */
        node = move->to;
        r = shard_node_has(move->nodes, node, true, move->meta, &has, reterr);
    }
    if (r == 0 && !has)
        r = failure_set(reterr, -EINVAL, "shard %" PRIu32 " has no meta at %s, nor at %s",
                        move->shard, move->from->name, move->to->name);
    if (r == 0)
        r = shard_node_ask_as(move->nodes, node, node == move->to, 4, words, NULL, &reply, reterr);
    freeReplyObject(reply);
    return r == 0 ? shard_node_wait(move->nodes, node, reterr) : r;
}

/* For when nothing has been moved but a copy of the log. */
static void unmark(struct shard_move *move)
{
    SHARD_NODE_DO(move->nodes, move->from, NULL, "HDEL", move->meta, "moving");
}

/* ---- keys ---- */

static int set_slot(const struct shard_move *move, struct shard_node *node, const char *what,
                    const struct shard_node *other, struct failure *reterr)
{
    return SHARD_NODE_DO(move->nodes, node, reterr, "CLUSTER", "SETSLOT", move->slot, what,
                         other->known.id);
}

/* MIGRATE of `count` keys; `copies`: they also stay at the source. */
static int migrate(struct shard_move *move, bool copies, const struct sl_slice *keys, size_t count,
                   struct failure *reterr)
{
    const struct sl_redis_login *login = &move->nodes->address.login;
    const char *argv[MIGRATE_WORDS + KEYS_AT_ONCE];
    size_t argvlen[MIGRATE_WORDS + KEYS_AT_ONCE];
    redisReply *reply = NULL;
    char port[8];
    int argc = 0, r;

    snprintf(port, sizeof(port), "%u", (unsigned)move->to->known.endpoint.port);
    for (const char *const *word =
             (const char *const[]){"MIGRATE", move->to->known.endpoint.host, port, "", "0",
                                   MIGRATE_MS, "REPLACE", NULL};
         *word; word++)
        argv[argc++] = *word;
    if (copies)
        argv[argc++] = "COPY";
    if (login->user[0]) {
        argv[argc++] = "AUTH2";
        argv[argc++] = login->user;
        argv[argc++] = login->password;
    } else if (login->password[0]) {
        argv[argc++] = "AUTH";
        argv[argc++] = login->password;
    }
    argv[argc++] = "KEYS";
    for (int i = 0; i < argc; i++)
        argvlen[i] = strlen(argv[i]);
    for (size_t i = 0; i < count; i++, argc++) {
        argv[argc] = keys[i].data;
        argvlen[argc] = keys[i].size;
    }
    r = shard_node_ask(move->nodes, move->from, argc, argv, argvlen, &reply, reterr);
    freeReplyObject(reply);
    return r;
}

/* Moves some keys, all but `meta`. *ret_count: their number; 0: there are no more. */
static int move_some(struct shard_move *move, size_t *ret_count, struct failure *reterr)
{
    struct sl_slice keys[KEYS_AT_ONCE];
    redisReply *reply = NULL;
    size_t count = 0;
    char most[8];
    int r;

    snprintf(most, sizeof(most), "%d", KEYS_AT_ONCE);
    r = shard_node_ask(move->nodes, move->from, 4,
                       (const char *[]){"CLUSTER", "GETKEYSINSLOT", move->slot, most}, NULL, &reply,
                       reterr);
    if (r == 0)
        r = sl_reply_check_array(reply, 0, reterr);
    for (size_t i = 0; r == 0 && i < reply->elements && count < KEYS_AT_ONCE; i++) {
        if (reply->element[i]->type == REDIS_REPLY_STRING &&
            !sl_slice_is(sl_reply_at(reply, i), move->meta))
            keys[count++] = sl_slice(reply->element[i]->str, reply->element[i]->len);
    }
    if (r == 0 && count > 0)
        r = migrate(move, false, keys, count, reterr);
    freeReplyObject(reply);
    *ret_count = count;
    return r;
}

static int move_keys(struct shard_move *move, struct failure *reterr)
{
    size_t count = 0;
    int r;

    do {
        r = move_some(move, &count, reterr);
        move->keys += count;
        tell(move);
    } while (r == 0 && count > 0);
    return r;
}

static int copy_meta(struct shard_move *move, struct failure *reterr)
{
    const struct sl_slice key = sl_slice_str(move->meta);
    bool has = false;
    int r = shard_node_has(move->nodes, move->from, false, move->meta, &has, reterr);

    return r == 0 && has ? migrate(move, true, &key, 1, reterr) : r;
}

/* ---- the owner ---- */

/* Nodes that cannot be told, or know it already, learn it from the others. */
static void tell_others(const struct shard_move *move)
{
    for (size_t i = 0; i < move->nodes->count; i++) {
        struct shard_node *node = &move->nodes->at[i];

        if (node != move->to && node != move->from)
            set_slot(move, node, "NODE", move->to, NULL);
    }
}

/* The target has the slot. Answers of the source are ignored: it may have learned of it, and
 * dropped its keys. */
static int end(struct shard_move *move, struct failure *reterr)
{
    const uint64_t bit = UINT64_C(1) << move->shard;
    int r;

    if (move->from != move->to) {
        SHARD_NODE_DO(move->nodes, move->from, NULL, "UNLINK", move->meta);
        set_slot(move, move->from, "NODE", move->to, NULL);
    }
    r = SHARD_NODE_DO(move->nodes, move->to, reterr, "HDEL", move->meta, "moving");
    tell_others(move);
    move->from->known.shards &= ~bit;
    move->to->known.shards |= bit;
    return r;
}

/* ---- by parts ---- */

static int move_held_up(struct shard_move *move, struct shard_copy *copy, struct failure *reterr)
{
    int r = set_slot(move, move->from, "MIGRATING", move->to, reterr);

    if (r == 0)
        r = shard_copy_finish(copy, reterr);
    if (r == 0)
        r = move_keys(move, reterr);
    if (r == 0)
        r = copy_meta(move, reterr);
    if (r == 0)
        r = set_slot(move, move->to, "NODE", move->to, reterr);
    return r == 0 ? end(move, reterr) : r;
}

static int move_by_parts(struct shard_move *move, struct failure *reterr)
{
    struct shard_copy copy = copy_of(move);
    uint64_t begun_ms;
    int r = shard_copy_check(&copy, reterr);

    if (r == 0)
        r = set_slot(move, move->to, "IMPORTING", move->from, reterr);
    if (r == 0)
        r = shard_copy_ahead(&copy, reterr);
    if (r < 0)
        return r;
    begun_ms = clock_monotonic_ms();
    r = mark(move, reterr);
    if (r < 0) {
        if (r == -ETIMEDOUT && !move->marked[0])
            unmark(move);
        return r;
    }
    r = move_held_up(move, &copy, reterr);
    move->paused_ms = clock_monotonic_ms() - begun_ms;
    return r;
}

/* ---- propagation to the other nodes ---- */

/* 0: the node does not say. */
static uint64_t epoch_at(const struct shard_move *move, struct shard_node *node, const char *name)
{
    char epoch[SHARD_NODE_INFO_SIZE] = "";

    shard_node_info(move->nodes, node, "CLUSTER", "INFO", name, epoch, NULL);
    return strtoull(epoch, NULL, 10);
}

/* Compares the epoch of the target's ownership: a node that has not learned of it may take a slot
 * by an older one. 0; -EAGAIN: not yet; otherwise it is down, and learns of it when it returns. */
static int check_heard(const struct shard_move *move, struct shard_node *node, uint64_t epoch)
{
    bool has = false;
    int r = shard_node_names(move->nodes, node, move->shard, move->to, &has, NULL);

    if (r < 0)
        return r;
    return has && epoch_at(move, node, "cluster_current_epoch") >= epoch ? 0 : -EAGAIN;
}

static bool will_have_heard(const struct shard_move *move, struct shard_node *node, uint64_t epoch,
                            uint64_t deadline_ms)
{
    int r;

    while ((r = check_heard(move, node, epoch)) == -EAGAIN && clock_monotonic_ms() < deadline_ms)
        shard_nodes_pause();
    return r != -EAGAIN;
}

/* Includes replicas, even those said to be loading: Redis reports that state until it learns
 * otherwise from the replica, which may take long. Redis before 7.2 forgets the owner of a slot
 * when a replica that has not learned of its move is promoted, or when it is moved on by a master
 * that has not: https://github.com/redis/redis/pull/12344 */
static void await_heard(struct shard_move *move)
{
    const uint64_t deadline_ms = clock_monotonic_ms() + HEARD_MS;
    const uint64_t epoch = epoch_at(move, move->to, "cluster_my_epoch");

    shard_nodes_set_answer_ms(move->nodes, HEARD_ANSWER_MS);
    for (size_t i = 0; i < move->nodes->all && !move->unheard; i++) {
        struct shard_node *node = &move->nodes->at[i];

        if (!node->known.is_failed && node->known.endpoint.host[0] &&
            !will_have_heard(move, node, epoch, deadline_ms))
            move->unheard = node;
    }
    shard_nodes_set_answer_ms(move->nodes, 0);
}

/* ---- the whole move ---- */

static bool is_untouched(const struct shard_move *move)
{
    return !move->marked[0] && !move->from->open.migrating[move->shard][0] &&
           !move->to->open.importing[move->shard][0];
}

/* The target claims to have the shard. So does a former owner that has given it away and does not
 * know that the new owner has it; but then the mark names another target. */
static int end_if_marked(struct shard_move *move, struct failure *reterr)
{
    if (!move->marked[0])
        return 0;
    if (strcmp(move->marked, move->to->name) == 0) {
        int r = end(move, reterr);

        if (r == 0)
            await_heard(move);
        return r;
    }
    return failure_set(reterr, -EINVAL,
                       "shard %" PRIu32
                       " is being moved from there to %s: sluice shards move %" PRIu32 " %s",
                       move->shard, move->marked, move->shard, move->marked);
}

int shard_move_run(struct shard_move *move, struct failure *reterr)
{
    bool is_done = false;
    int r;

    snprintf(move->slot, sizeof(move->slot), "%" PRIu32, sl_cluster_slot(move->shard));
    sl_key(move->shard, "meta", move->meta);
    sl_key(move->shard, "log", move->log);
    r = shard_check(move, reterr);
    if (r == 0 && move->is_there)
        return end_if_marked(move, reterr);
    if (r == 0 && is_untouched(move))
        r = shard_move_atomically(move, &is_done, reterr);
    if (r == 0 && !is_done) {
        r = move_by_parts(move, reterr);
        if (r == 0)
            await_heard(move);
        return r;
    }
    if (r < 0)
        return r;
    move->is_by_server = true;
    move->from->known.shards &= ~(UINT64_C(1) << move->shard);
    move->to->known.shards |= UINT64_C(1) << move->shard;
    return 0;
}
