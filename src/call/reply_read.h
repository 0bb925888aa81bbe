/* src/call/reply_read.h - used by the parsers to read the parts of a reply. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/call/reply.h"

/* 0 if the reply is an array of at least `count` elements; else a negative errno. */
int sl_reply_check_array(const struct redisReply *reply, size_t count, struct failure *reterr);

/* Element `i` of an array that has been checked. Absent when it is nil or not a string. */
struct sl_slice sl_reply_at(const struct redisReply *reply, size_t i);

/* 0; -EBADMSG: element `i` is not an id, or (sl_reply_read_flag) not 0 or 1. */
int sl_reply_read_id(const struct redisReply *reply, size_t i, uint64_t *ret_id,
                     struct failure *reterr);
int sl_reply_read_flag(const struct redisReply *reply, size_t i, bool *ret_flag,
                       struct failure *reterr);

/* 0; -EBADMSG: element `i` is not the text of a number from 0 to 2^53 - 1. */
int sl_reply_read_number(const struct redisReply *reply, size_t i, uint64_t *ret_number,
                         struct failure *reterr);

/* 0; -EBADMSG: element `i` is not an integer of 0 or more. */
int sl_reply_read_count(const struct redisReply *reply, size_t i, uint64_t *ret_count,
                        struct failure *reterr);

/* Element `i` of an array that has been checked, which must itself be an array of at least `count`
 * elements. 0; -EBADMSG; if the element is an error, as sl_reply_check(). */
int sl_reply_read_row(const struct redisReply *reply, size_t i, size_t count,
                      const struct redisReply **ret_row, struct failure *reterr);

/* -EBADMSG with a message. */
int sl_reply_unexpected(struct failure *reterr);
/* -EREMOTE with a message: the caller took a node of a cluster for a single Redis. */
int sl_reply_of_cluster_node(struct failure *reterr);
