/* cli/shard_rows.h - what each shard of the database has, and where. */
#pragma once

#include "cli/database.h"
#include "cli/shard_nodes.h"
#include "src/model/id.h"

struct shard_row {
    size_t node;           /* of rows->nodes; of one Redis 0; SIZE_MAX: nobody has it */
    double keys;           /* in its slot, whoever they belong to; NAN: not known */
    double entries, bytes; /* of its log; likewise */
    double rate;           /* events a second, lately; likewise */
    bool is_open;          /* it is being moved, or was and nobody has gone on */
    char to[SL_REDIS_ENDPOINT_TEXT_SIZE]; /* where it goes then; empty: not known */
};

struct shard_rows {
    struct database database;
    bool is_cluster;
    struct shard_nodes nodes;                /* of one Redis none */
    char place[SL_REDIS_ENDPOINT_TEXT_SIZE]; /* of one Redis */
    struct shard_row at[SL_SHARDS_MAX];
};

/* Connects, looks, and leaves the connections open. CLI_GOOD, or the exit status when it has said
 * why. What a master that is away would say is not known, and it has warned of that. */
int shard_rows_open(struct shard_rows *rows, const struct cli *cli);
void shard_rows_close(struct shard_rows *rows);

/* How a node is called: HOST:PORT; a socket by its path, what sentinels know by its name. */
const char *shard_rows_node(const struct shard_rows *rows, size_t node);
size_t shard_rows_nodes(const struct shard_rows *rows);
