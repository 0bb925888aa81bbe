/* src/call/reply_read.h - how the parsers take a reply apart. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/call/reply.h"

/* 0 when the reply is an array of at least `count` elements; else a negative errno. */
int sl_reply_check_array(const struct redisReply *reply, size_t count, struct failure *reterr);

/* Element `i` of an array that has been checked. Absent when it is nil or no string. */
struct sl_slice sl_reply_at(const struct redisReply *reply, size_t i);

/* 0; -EBADMSG: element `i` is no id, or (sl_reply_read_flag) not 0 or 1. */
int sl_reply_read_id(const struct redisReply *reply, size_t i, uint64_t *ret_id,
                     struct failure *reterr);
int sl_reply_read_flag(const struct redisReply *reply, size_t i, bool *ret_flag,
                       struct failure *reterr);

/* 0; -EBADMSG: element `i` is not the text of a number from 0 to 2^53 - 1. */
int sl_reply_read_number(const struct redisReply *reply, size_t i, uint64_t *ret_number,
                         struct failure *reterr);

/* 0; -EBADMSG: element `i` is not an integer from 0 on. */
int sl_reply_read_count(const struct redisReply *reply, size_t i, uint64_t *ret_count,
                        struct failure *reterr);

/* Element `i` of an array that has been checked, which is an array of at least `count` elements. 0;
 * what it is an error of, as sl_reply_check(); -EBADMSG. */
int sl_reply_read_row(const struct redisReply *reply, size_t i, size_t count,
                      const struct redisReply **ret_row, struct failure *reterr);

/* -EBADMSG with a sentence. */
int sl_reply_unexpected(struct failure *reterr);
/* The same for one who took a node of a cluster for a Redis of its own: -EREMOTE. */
int sl_reply_of_cluster_node(struct failure *reterr);
