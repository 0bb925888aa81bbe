/* shard_check.c - checks before a move: the owner, the mark of a move that was begun, keys at other
 * nodes, memory.
 *
 * `moving` in the shard's meta names the master that it is moved to. Scripts refuse while it is
 * set, whatever the servers know about the move: after a failover the promoted replica does not
 * know about an open slot, and a script on half of a shard would begin a second log. The mark is
 * part of `meta`, which is moved last. */
#include "cli/shard_check.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "base/figure.h"
#include "src/call/reply_read.h"

enum { SAMPLE = 100 };

/* ---- the owner ---- */

static int check_state(const struct shard_move *move, struct shard_node *node,
                       struct failure *reterr)
{
    char state[SHARD_NODE_INFO_SIZE];
    int r = shard_node_info(move->nodes, node, "CLUSTER", "INFO", "cluster_state", state, reterr);

    if (r == 0 && strcmp(state, "ok") != 0)
        r = failure_set(
            reterr, -EINVAL,
            "%s says that the state of the cluster is '%s'; nothing is moved until it is "
            "ok",
            node->name, state);
    return r;
}

/* A node that imports a slot is not told of changes of its owner: after a failover of the owner it
 * thinks that the slot has none, and with full coverage that the cluster is down. */
static int tell_owner(const struct shard_move *move, struct failure *reterr)
{
    if (!move->to->open.importing[move->shard][0] || move->from == move->to)
        return 0;
    return SHARD_NODE_DO(move->nodes, move->to, reterr, "CLUSTER", "SETSLOT", move->slot, "NODE",
                         move->from->known.id);
}

/* The target of a move that was begun. */
static int read_mark(struct shard_move *move, struct shard_node *node, bool is_asking,
                     struct failure *reterr)
{
    const char *words[] = {"HGET", move->meta, "moving"};
    redisReply *reply = NULL;
    bool has = false;
    int r = shard_node_has(move->nodes, node, is_asking, move->meta, &has, reterr);

    if (r == 0 && has)
        r = shard_node_ask_as(move->nodes, node, is_asking, 3, words, NULL, &reply, reterr);
    if (r == 0 && has && reply->type == REDIS_REPLY_STRING)
        snprintf(move->marked, sizeof(move->marked), "%s", reply->str);
    freeReplyObject(reply);
    return r;
}

/* ---- keys at other nodes ---- */

static int count_keys(const struct shard_move *move, struct shard_node *node, uint64_t *ret_count,
                      struct failure *reterr)
{
    return SHARD_NODE_COUNT(move->nodes, node, ret_count, reterr, "CLUSTER", "COUNTKEYSINSLOT",
                            move->slot);
}

/* Removes a copy of a log that is not needed. */
static int clear_copy(const struct shard_move *move, struct shard_node *node,
                      struct failure *reterr)
{
    redisReply *reply = NULL;
    int r;

    r = SHARD_NODE_DO(move->nodes, node, reterr, "CLUSTER", "SETSLOT", move->slot, "IMPORTING",
                      move->from->known.id);
    if (r == 0)
        r = shard_node_ask_as(move->nodes, node, true, 2, (const char *[]){"UNLINK", move->log},
                              NULL, &reply, reterr);
    freeReplyObject(reply);
    if (r == 0)
        r = SHARD_NODE_DO(move->nodes, node, reterr, "CLUSTER", "SETSLOT", move->slot, "STABLE");
    return r;
}

/* Checks for keys of the slot at a master that neither has it nor is the target. */
static int check_other(const struct shard_move *move, struct shard_node *node,
                       struct failure *reterr)
{
    const bool is_begun = move->marked[0] || move->from->open.migrating[move->shard][0];
    uint64_t count = 0;
    bool has_log = false;
    int r = count_keys(move, node, &count, reterr);

    if (r < 0 || count == 0)
        return r;
    if (!is_begun && node->open.importing[move->shard][0])
        r = shard_node_has(move->nodes, node, true, move->log, &has_log, reterr);
    if (r == 0 && count == 1 && has_log)
        return clear_copy(move, node, reterr);
    return r < 0 ? r
                 : failure_set(reterr, -EINVAL,
                               "%" PRIu64 " keys of shard %" PRIu32 " are at %s, the target of an "
                               "unfinished move: sluice "
                               "shards move %" PRIu32 " %s",
                               count, move->shard, node->name, move->shard, node->name);
}

/* The target of an earlier move may have keys, even if it is down. */
static int check_marked(const struct shard_move *move, struct failure *reterr)
{
    struct shard_node *marked = NULL;
    uint64_t count = 0;
    int r;

    if (!move->marked[0] || strcmp(move->marked, move->to->name) == 0)
        return 0;
    r = count_keys(move, move->to, &count, reterr); /* it was promoted in place of the other */
    if (r < 0 || count > 0)
        return r;
    if (shard_nodes_find(move->nodes, move->marked, &marked, NULL) == 0)
        return 0; /* it has none: check_other() has asked */
    return failure_set(reterr, -EINVAL,
                       "shard %" PRIu32
                       " was being moved to %s, which is not a master now: what it has received "
                       "is there, or at its promoted replica",
                       move->shard, move->marked);
}

static int check_elsewhere(const struct shard_move *move, struct failure *reterr)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < move->nodes->count; i++) {
        struct shard_node *node = &move->nodes->at[i];

        if (node != move->from && node != move->to)
            r = check_other(move, node, reterr);
    }
    return r == 0 ? check_marked(move, reterr) : r;
}

/* ---- memory ---- */

/* Estimates the size of a key from some keys of the slot. */
static int estimate_key(const struct shard_move *move, double *ret_bytes, struct failure *reterr)
{
    char count[12];
    redisReply *keys = NULL;
    double sum = 0;
    size_t known = 0;
    int r;

    snprintf(count, sizeof(count), "%d", SAMPLE);
    r = shard_node_ask(move->nodes, move->from, 4,
                       (const char *[]){"CLUSTER", "GETKEYSINSLOT", move->slot, count}, NULL, &keys,
                       reterr);
    if (r == 0)
        r = sl_reply_check_array(keys, 0, reterr);
    for (size_t i = 0; r == 0 && i < keys->elements; i++) {
        uint64_t bytes = 0;

        if (keys->element[i]->type != REDIS_REPLY_STRING ||
            sl_slice_is(sl_reply_at(keys, i), move->log))
            continue;
        r = SHARD_NODE_COUNT(move->nodes, move->from, &bytes, reterr, "MEMORY", "USAGE",
                             keys->element[i]->str);
        sum += (double)bytes;
        known++;
    }
    freeReplyObject(keys);
    *ret_bytes = known > 0 ? sum / (double)known : 0;
    return r;
}

static int estimate(struct shard_move *move, double *ret_bytes, struct failure *reterr)
{
    uint64_t log_bytes = 0, keys = 0;
    double key_bytes = 0;
    int r = count_keys(move, move->from, &keys, reterr);

    if (r == 0)
        r = SHARD_NODE_COUNT(move->nodes, move->from, &log_bytes, reterr, "MEMORY", "USAGE",
                             move->log, "SAMPLES", "5");
    if (r == 0)
        r = estimate_key(move, &key_bytes, reterr);
    move->all_keys = keys;
    *ret_bytes = (double)log_bytes + key_bytes * (double)keys;
    return r;
}

/* A replica stores the same as its master; a master without a limit has room. */
static int check_room(struct shard_move *move, struct failure *reterr)
{
    char most[SHARD_NODE_INFO_SIZE], used[SHARD_NODE_INFO_SIZE];
    double bytes = 0, room;
    int r = shard_node_info(move->nodes, move->to, "INFO", "memory", "maxmemory", most, reterr);

    if (r == 0)
        r = shard_node_info(move->nodes, move->to, "INFO", "memory", "used_memory", used, reterr);
    if (r == 0)
        r = estimate(move, &bytes, reterr);
    if (r < 0 || strtod(most, NULL) == 0)
        return r;
    room = strtod(most, NULL) - strtod(used, NULL);
    if (bytes <= room)
        return 0;
    return failure_set(
        reterr, -EINVAL, "shard %" PRIu32 " takes about %s, and %s has room for %s (maxmemory %s)",
        move->shard, figure_bytes(bytes).text, move->to->name,
        figure_bytes(room > 0 ? room : 0).text, figure_bytes(strtod(most, NULL)).text);
}

/* ---- the whole check ---- */

static bool is_begun(const struct shard_move *move)
{
    return move->marked[0] || move->from->open.migrating[move->shard][0] ||
           move->to->open.importing[move->shard][0];
}

int shard_check(struct shard_move *move, struct failure *reterr)
{
    int r = 0;

    move->from = shard_nodes_owner(move->nodes, move->shard);
    if (!move->from)
        return failure_set(reterr, -EINVAL, "no available master has shard %" PRIu32 " (slot %s)",
                           move->shard, move->slot);
    r = check_state(move, move->from, reterr);
    if (r == 0)
        r = tell_owner(move, reterr);
    if (r == 0)
        r = check_state(move, move->to, reterr);
    if (r == 0)
        r = shard_node_names(move->nodes, move->to, move->shard, move->to, &move->is_there, reterr);
    if (r == 0)
        r = read_mark(move, move->is_there ? move->to : move->from, false, reterr);
    if (r < 0 || move->is_there)
        return r;
    if (!move->marked[0] && move->to->open.importing[move->shard][0])
        r = read_mark(move, move->to, true, reterr);
    if (r == 0)
        r = check_elsewhere(move, reterr);
    if (r == 0 && !is_begun(move))
        r = check_room(move, reterr);
    return r;
}
