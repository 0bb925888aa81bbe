/* cli/rows.h - reads many users or posts in one round trip, in the requested order.
 *
 *     struct rows rows = ROWS_INIT;
 *
 *     status = rows_read(&rows, database, cli, sl_users_calls(&rows.calls, ...), &failure);
 *     reply = rows_find(&rows, item, &row);
 *     r = sl_users_at(reply, row, ...);
 *     rows_done(&rows); */
#pragma once

#include "cli/database.h"
#include "src/call/shard_calls.h"
#include "src/model/id.h"

struct rows {
    struct sl_shard_calls calls;
    struct redisReply *replies[SL_SHARDS_MAX];
};

#define ROWS_INIT ((struct rows){.calls = SL_SHARD_CALLS_INIT})

/* Sends the calls, whose builder returned `r`. CLI_GOOD, or the exit status after printing why. */
int rows_read(struct rows *rows, struct database *database, const struct cli *cli, int r,
              struct failure *failure);
void rows_done(struct rows *rows);

/* The reply about item number `item`, and its row there. */
const struct redisReply *rows_find(const struct rows *rows, size_t item, size_t *ret_row);
