/* shard_rows.c - some commands for each shard, and for a cluster one to its master.
 *
 * All but the rate are plain commands, which also work while a shard is moved. The rate is computed
 * from the ids in the log, which contain the time of each event: those of the last minute, at most
 * the newest 1,000. The memory of the log is an estimate of Redis, from a few of its nodes.
 *
 * A cluster knows how many keys each slot has. For a single Redis the keys are counted with SCAN,
 * at most 100,000; the first results are a fair sample, because SCAN is ordered by the hash of the
 * names, so a larger database is estimated from them. */
#include "cli/shard_rows.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/call/call_build.h"
#include "src/call/reply_read.h"
#include "src/database/event_log.h"
#include "src/model/keys.h"
#include "src/redis/cluster_map.h"

enum { RATE_WINDOW_MS = 60000, RATE_MOST = 1000, SAMPLE_MOST = 100000, SCAN_COUNT = 1000 };
enum { ASK_MOVING, ASK_ENTRIES, ASK_BYTES, ASKS };

/* ---- a shard ---- */

static int build(struct sl_call *call, uint32_t shard, const char *const *words,
                 struct failure *reterr)
{
    sl_call_begin(call, shard, true);
    for (; *words; words++)
        sl_call_add_str(call, *words);
    return sl_call_finish(call, reterr);
}

static int build_all(struct sl_call *calls, uint32_t shard, struct failure *reterr)
{
    char key[SL_KEY_SIZE], log[SL_KEY_SIZE];
    int r;

    sl_key(shard, "meta", key);
    sl_key(shard, "log", log);
    r = build(&calls[ASK_MOVING], shard, (const char *[]){"HGET", key, "moving", NULL}, reterr);
    if (r == 0)
        r = build(&calls[ASK_ENTRIES], shard, (const char *[]){"XLEN", log, NULL}, reterr);
    if (r == 0)
        r = build(&calls[ASK_BYTES], shard,
                  (const char *[]){"MEMORY", "USAGE", log, "SAMPLES", "5", NULL}, reterr);
    return r;
}

static double number_of(const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_NIL)
        return 0;
    return reply->type == REDIS_REPLY_INTEGER ? (double)reply->integer : NAN;
}

static void take_replies(struct shard_row *row, redisReply *const *replies)
{
    if (replies[ASK_MOVING]->type == REDIS_REPLY_STRING) {
        row->is_open = true;
        snprintf(row->to, sizeof(row->to), "%s", replies[ASK_MOVING]->str);
    }
    row->entries = number_of(replies[ASK_ENTRIES]);
    row->bytes = number_of(replies[ASK_BYTES]);
}

/* Uses a script, which is refused while the shard is moved; not worth waiting for. */
static int read_rate(struct shard_rows *rows, uint32_t shard, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    uint64_t count, ms;
    int r;

    r = sl_event_log_rate_call(&call, &rows->database.meta, shard, RATE_WINDOW_MS, RATE_MOST,
                               reterr);
    if (r == 0)
        r = sl_redis_link_try(rows->database.link, &call, &reply, reterr);
    if (r == 0 && sl_event_log_rate_reply(reply, &count, &ms, NULL) == 0)
        rows->at[shard].rate = (double)count * 1000 / (double)ms;
    freeReplyObject(reply);
    sl_call_done(&call);
    return r;
}

static int read_shard(struct shard_rows *rows, uint32_t shard, struct failure *reterr)
{
    struct sl_call calls[ASKS] = {0};
    redisReply *replies[ASKS] = {0};
    int r;

    r = build_all(calls, shard, reterr);
    if (r == 0)
        r = sl_redis_link_run_many(rows->database.link, calls, ASKS, replies, reterr);
    if (r == 0)
        take_replies(&rows->at[shard], replies);
    if (r == 0)
        r = read_rate(rows, shard, reterr);
    for (int i = 0; i < ASKS; i++) {
        freeReplyObject(replies[i]);
        sl_call_done(&calls[i]);
    }
    return r;
}

/* ---- a cluster ---- */

/* Open slots of a node are being moved to another one, or from there. */
static void note_open(struct shard_rows *rows, struct shard_node *node)
{
    for (uint32_t shard = 0; shard < rows->database.meta.shards; shard++) {
        struct shard_row *row = &rows->at[shard];
        const struct shard_node *to = NULL;

        if (node->open.migrating[shard][0])
            to = shard_nodes_by_id(&rows->nodes, node->open.migrating[shard]);
        else if (node->open.importing[shard][0])
            to = node;
        else
            continue;
        row->is_open = true;
        if (to && !row->to[0])
            snprintf(row->to, sizeof(row->to), "%s", to->name);
    }
}

static int count_keys(struct shard_rows *rows, struct shard_node *node, uint32_t shard,
                      struct failure *reterr)
{
    char slot[12];
    uint64_t keys;
    int r;

    snprintf(slot, sizeof(slot), "%" PRIu32, sl_cluster_slot(shard));
    r = SHARD_NODE_COUNT(&rows->nodes, node, &keys, reterr, "CLUSTER", "COUNTKEYSINSLOT", slot);
    if (r == 0)
        rows->at[shard].keys = (double)keys;
    return r;
}

/* Reads the shards of a master; after the first one without an answer no more are read. */
static int read_master(struct shard_rows *rows, size_t i, struct failure *reterr)
{
    struct shard_node *node = &rows->nodes.at[i];
    int r = 0;

    for (uint32_t shard = 0; shard < rows->database.meta.shards; shard++) {
        if (!(node->known.shards >> shard & 1))
            continue;
        rows->at[shard].node = i;
        if (r == 0)
            r = count_keys(rows, node, shard, reterr);
        if (r == 0)
            r = read_shard(rows, shard, reterr);
    }
    return r;
}

static int read_cluster(struct shard_rows *rows, const struct cli *cli)
{
    struct failure failure;

    if (shard_nodes_look(&rows->nodes, &failure) < 0)
        cli_warn(cli, "%s", failure.text);
    for (size_t i = 0; i < rows->nodes.count; i++) {
        if (read_master(rows, i, &failure) < 0)
            cli_warn(cli, "%s", failure.text);
    }
    for (size_t i = 0; i < rows->nodes.count; i++)
        note_open(rows, &rows->nodes.at[i]);
    return CLI_GOOD;
}

/* ---- a single Redis ---- */

struct sample {
    uint64_t seen, of_shard[SL_SHARDS_MAX];
    char cursor[24];
};

static void count_name(struct sample *sample, const char *name, uint32_t shards)
{
    uint32_t shard;

    sample->seen++;
    if (sscanf(name, "sluice:{%" SCNu32 "}:", &shard) == 1 && shard < shards)
        sample->of_shard[shard]++;
}

static int scan_some(struct shard_rows *rows, struct sample *sample, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    char count[12];
    int r;

    snprintf(count, sizeof(count), "%d", SCAN_COUNT);
    r = build(&call, 0, (const char *[]){"SCAN", sample->cursor, "COUNT", count, NULL}, reterr);
    r = database_run(&rows->database, &call, r, &reply, reterr);
    if (r == 0)
        r = sl_reply_check_array(reply, 2, reterr);
    if (r == 0 && (!sl_reply_at(reply, 0).data || reply->element[1]->type != REDIS_REPLY_ARRAY))
        r = sl_reply_unexpected(reterr);
    if (r == 0) {
        snprintf(sample->cursor, sizeof(sample->cursor), "%s", reply->element[0]->str);
        for (size_t i = 0; i < reply->element[1]->elements; i++)
            count_name(sample, reply->element[1]->element[i]->str, rows->database.meta.shards);
    }
    freeReplyObject(reply);
    return r;
}

static int count_all_keys(struct shard_rows *rows, double *ret_count, struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = build(&call, 0, (const char *[]){"DBSIZE", NULL}, reterr);
    r = database_run(&rows->database, &call, r, &reply, reterr);
    if (r == 0)
        r = sl_reply_check(reply, reterr);
    if (r == 0)
        *ret_count = number_of(reply);
    freeReplyObject(reply);
    return r;
}

static int sample_keys(struct shard_rows *rows, struct failure *reterr)
{
    struct sample sample = {.cursor = "0"};
    double all = 0;
    int r = 0;

    do
        r = scan_some(rows, &sample, reterr);
    while (r == 0 && strcmp(sample.cursor, "0") != 0 && sample.seen < SAMPLE_MOST);
    if (r == 0)
        r = count_all_keys(rows, &all, reterr);
    for (uint32_t shard = 0; r == 0 && shard < rows->database.meta.shards; shard++) {
        const double seen = (double)sample.of_shard[shard];

        rows->at[shard].keys =
            strcmp(sample.cursor, "0") == 0 ? seen : round(seen * all / (double)sample.seen);
    }
    return r;
}

static int read_one(struct shard_rows *rows, const struct cli *cli)
{
    struct failure failure;
    int r = sample_keys(rows, &failure);

    for (uint32_t shard = 0; r == 0 && shard < rows->database.meta.shards; shard++) {
        rows->at[shard].node = 0;
        r = read_shard(rows, shard, &failure);
    }
    return r < 0 ? cli_failed(cli, &failure) : CLI_GOOD;
}

/* ---- all ---- */

static void name_one(struct shard_rows *rows, const struct sl_redis_address *address)
{
    if (address->path[0] || address->sentinel_count > 0)
        snprintf(rows->place, sizeof(rows->place), "%s",
                 address->path[0] ? address->path : address->master_name);
    else
        sl_redis_endpoint_print(&address->endpoint, rows->place, sizeof(rows->place));
}

static int read_all(struct shard_rows *rows, const struct cli *cli)
{
    struct sl_redis_address address;
    struct failure failure;
    int r;

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        rows->at[shard] = (struct shard_row){
            .node = SIZE_MAX, .keys = NAN, .entries = NAN, .bytes = NAN, .rate = NAN};
    r = database_address(cli, &address, &failure);
    rows->is_cluster = r == 0 && address.seed_count > 0;
    if (r == 0)
        name_one(rows, &address);
    if (rows->is_cluster)
        r = shard_nodes_open(&rows->nodes, &address, &failure);
    if (r < 0)
        return cli_failed(cli, &failure);
    return rows->is_cluster ? read_cluster(rows, cli) : read_one(rows, cli);
}

int shard_rows_open(struct shard_rows *rows, const struct cli *cli)
{
    int status;

    *rows = (struct shard_rows){.is_cluster = false};
    status = database_look(&rows->database, cli);
    if (status != CLI_GOOD)
        return status;
    status = read_all(rows, cli);
    if (status != CLI_GOOD)
        shard_rows_close(rows);
    return status;
}

void shard_rows_close(struct shard_rows *rows)
{
    shard_nodes_close(&rows->nodes);
    database_close(&rows->database);
}

const char *shard_rows_node(const struct shard_rows *rows, size_t node)
{
    return node == SIZE_MAX ? "-" : rows->is_cluster ? rows->nodes.at[node].name : rows->place;
}

size_t shard_rows_nodes(const struct shard_rows *rows)
{
    return rows->is_cluster ? rows->nodes.count : 1;
}
