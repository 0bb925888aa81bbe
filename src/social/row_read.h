/* src/social/row_read.h - the rows that user_row, post_row and their bare kin of
 * src/scripts/common.lua make.
 */
#pragma once

#include "src/social/post_rows.h"
#include "src/social/users.h"

/* Elements: by their number whole rows and bare ones are told apart. */
enum {
    SL_USER_ROW_SIZE = 9,
    SL_USER_BARE_ROW_SIZE = 6,
    SL_POST_ROW_SIZE = 4,
    SL_POST_BARE_ROW_SIZE = 6,
};

/* Read `row`, an array of at least the smaller size, a user's from `at` on. 0; -EBADMSG. */
int sl_user_row_read(const struct redisReply *row, size_t at, struct sl_user_row *ret_row,
                     struct failure *reterr);
int sl_post_row_read(const struct redisReply *row, struct sl_post_row *ret_row,
                     struct failure *reterr);
