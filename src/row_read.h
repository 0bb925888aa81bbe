/* src/row_read.h - the rows that user_row and post_row of src/scripts/common.lua make. */
#pragma once

#include "src/post_rows.h"
#include "src/users.h"

enum { SL_USER_ROW_SIZE = 7, SL_POST_ROW_SIZE = 4 }; /* elements */

/* Reads the elements of `row`, an array that has been checked, from `at` on. 0; -EBADMSG. */
int sl_user_row_read(const struct redisReply *row, size_t at, struct sl_user_row *ret_row,
                     struct failure *reterr);
int sl_post_row_read(const struct redisReply *row, size_t at, struct sl_post_row *ret_row,
                     struct failure *reterr);
