/* cli/shard_rows.h - reads the content and location of each shard of the database. */
#pragma once

#include "cli/database.h"
#include "cli/shard_nodes.h"
#include "src/model/id.h"

struct shard_row {
    size_t node;           /* index in rows->nodes; 0 for a single Redis; SIZE_MAX: no node has
                              it */
    double keys;           /* in its slot, including those of other applications; NAN: unknown */
    double entries, bytes; /* of its log; NAN: unknown */
    double rate;           /* recent events per second; NAN: unknown */
    bool is_open;          /* it is being moved, or a move was interrupted */
    char to[SL_REDIS_ENDPOINT_TEXT_SIZE]; /* the target of the move; empty: unknown */
};

struct shard_rows {
    struct database database;
    bool is_cluster;
    struct shard_nodes nodes;                /* none for a single Redis */
    char place[SL_REDIS_ENDPOINT_TEXT_SIZE]; /* of a single Redis */
    struct shard_row at[SL_SHARDS_MAX];
};

/* Connects, reads, and leaves the connections open. CLI_GOOD, or the exit status after printing
 * why. What a master that is down would return is unknown; a warning is printed. */
int shard_rows_open(struct shard_rows *rows, const struct cli *cli);
void shard_rows_close(struct shard_rows *rows);

/* The name of a node: HOST:PORT; for a socket its path, with sentinels the name of the master. */
const char *shard_rows_node(const struct shard_rows *rows, size_t node);
size_t shard_rows_nodes(const struct shard_rows *rows);
