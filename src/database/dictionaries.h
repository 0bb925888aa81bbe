/* src/database/dictionaries.h - the dictionaries that streams may be compressed with (zstd).
 *
 * A dictionary is public: whoever asks a gateway is given it. Its bytes never change, and its id,
 * which is in its bytes and in each frame that was made with it, is never used again: a withdrawn
 * one stays in the list. Shard 0 has them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"
#include "src/model/database.h"
#include "src/model/dictionary_id.h"

struct redisReply;

enum {
    SL_DICTIONARIES_MAX = 8,          /* that are not withdrawn */
    SL_DICTIONARY_BYTES_MAX = 112640 /* of one */
};

struct sl_dictionary {
    uint32_t id;
    uint64_t trained_ms; /* Unix time */
    uint64_t bytes;
    uint64_t posts;        /* that it was made from */
    uint64_t withdrawn_ms; /* 0: it is not */
};

/* All of them. 0; -ENOMEM. */
int sl_dictionaries_call(struct sl_call *call, struct failure *reterr);
/* Fills at most `room`, sorted by time and then by id; more than there is room for are counted, and
 * of these the ones that were withdrawn first are left out. 0; -EBADMSG, or as sl_reply_check(). */
int sl_dictionaries_reply(const struct redisReply *reply, struct sl_dictionary *ret_list,
                          size_t room, size_t *ret_count, struct failure *reterr);

/* The bytes of one. 0; -ENOMEM. */
int sl_dictionary_call(struct sl_call *call, uint32_t id, struct failure *reterr);
/* *ret_bytes, of the reply. 0; -ENOENT: there is none; -EBADMSG, or as sl_reply_check(). */
int sl_dictionary_reply(const struct redisReply *reply, struct sl_slice *ret_bytes,
                        struct failure *reterr);

/* Adds one; may be sent again. 0; -ENOMEM. Answered by 0; -EEXIST: the id was used before; -EDQUOT:
 * there are SL_DICTIONARIES_MAX (sl_reply_check()). */
int sl_dictionary_add_call(struct sl_call *call, const struct sl_meta *meta, uint32_t id,
                           uint64_t posts, struct sl_slice bytes, struct failure *reterr);
/* Withdraws one; may be sent again. 0; -ENOMEM. Answered by 0; -ENOENT: there is none. */
int sl_dictionary_withdraw_call(struct sl_call *call, const struct sl_meta *meta, uint32_t id,
                                struct failure *reterr);
