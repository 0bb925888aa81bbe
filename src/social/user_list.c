#include "src/social/user_list.h"

#include <hiredis/hiredis.h>

#include "src/call/reply_read.h"
#include "src/social/row_read.h"

int sl_user_list_reply(const struct redisReply *reply, size_t *ret_count, struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 0, reterr);

    if (r == 0)
        *ret_count = reply->elements;
    return r;
}

int sl_user_list_at(const struct redisReply *reply, size_t i, struct sl_listed_user *ret_listed,
                    struct failure *reterr)
{
    struct sl_listed_user listed = {0};
    const struct redisReply *row;
    int r;

    r = sl_reply_read_row(reply, i, 2, &row, reterr);
    if (r == 0)
        r = sl_reply_read_id(row, 0, &listed.position, reterr);
    if (r < 0)
        return r;
    if (row->elements > SL_USER_BARE_ROW_SIZE)
        r = sl_user_row_read(row, 1, &listed.row, reterr);
    else
        r = sl_reply_read_id(row, 1, &listed.row.user.id, reterr);
    if (r == 0)
        *ret_listed = listed;
    return r;
}
