/* src/social/row_read.h - parses the rows made by user_row and post_row, and their bare variants,
 * in src/scripts/common.lua. */
#pragma once

#include "src/social/post_rows.h"
#include "src/social/users.h"

/* Numbers of elements, by which complete and bare rows are told apart. */
enum {
    SL_USER_ROW_SIZE = 9,
    SL_USER_BARE_ROW_SIZE = 6,
    SL_POST_ROW_SIZE = 4,
    SL_POST_BARE_ROW_SIZE = 6,
};

/* Read a `row`, which is an array of at least the smaller size. A user's begins at element `at`. 0;
 * -EBADMSG. */
int sl_user_row_read(const struct redisReply *row, size_t at, struct sl_user_row *ret_row,
                     struct failure *reterr);
int sl_post_row_read(const struct redisReply *row, struct sl_post_row *ret_row,
                     struct failure *reterr);
