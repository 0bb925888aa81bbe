#include "cli/rows.h"

#include <assert.h>
#include <errno.h>

#include <hiredis/hiredis.h>

#include "src/call/reply.h"

int rows_read(struct rows *rows, struct database *database, const struct cli *cli, int r,
              struct failure *failure)
{
    if (r < 0) {
        cli_failed(cli, failure);
        return r == -EINVAL ? CLI_USAGE : CLI_FAILED;
    }
    if (rows->calls.count > 0)
        r = sl_redis_link_run_many(database->link, rows->calls.calls, rows->calls.count,
                                   rows->replies, failure);
    for (size_t i = 0; r == 0 && i < rows->calls.count; i++) {
        size_t count;

        sl_shard_calls_items(&rows->calls, i, &count);
        r = sl_users_reply(rows->replies[i], count, failure); /* replies with many rows have the
                                                                 same form */
    }
    return r < 0 ? cli_failed(cli, failure) : CLI_GOOD;
}

void rows_done(struct rows *rows)
{
    for (size_t i = 0; i < SL_SHARDS_MAX; i++)
        freeReplyObject(rows->replies[i]);
    sl_shard_calls_done(&rows->calls);
    *rows = ROWS_INIT;
}

const struct redisReply *rows_find(const struct rows *rows, size_t item, size_t *ret_row)
{
    for (size_t i = 0; i < rows->calls.count; i++) {
        size_t count;
        const uint32_t *items = sl_shard_calls_items(&rows->calls, i, &count);

        for (size_t row = 0; row < count; row++) {
            if (items[row] == item) {
                *ret_row = row;
                return rows->replies[i];
            }
        }
    }
    assert(!"an item that was asked for");
    return NULL;
}
