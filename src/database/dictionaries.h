/* src/database/dictionaries.h - the zstd dictionaries with which streams may be compressed.
 *
 * A dictionary is public: gateways send it to any client that asks. Its bytes never change. Its id,
 * which is part of its bytes and of each frame compressed with it, is never used again; therefore a
 * withdrawn dictionary stays in the list. Dictionaries are stored in shard 0. */
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
    SL_DICTIONARIES_MAX = 8,         /* not counting withdrawn ones */
    SL_DICTIONARY_BYTES_MAX = 112640 /* of one dictionary */
};

struct sl_dictionary {
    uint32_t id;
    uint64_t trained_ms; /* Unix time */
    uint64_t bytes;
    uint64_t posts;        /* the number of posts it was trained on */
    uint64_t withdrawn_ms; /* 0: not withdrawn */
};

/* Reads the list of all dictionaries. 0; -ENOMEM. */
int sl_dictionaries_call(struct sl_call *call, struct failure *reterr);
/* Fills at most `room` entries, sorted by time and then by id. *ret_count counts all dictionaries;
 * if there are more than `room`, those withdrawn first are left out. 0; -EBADMSG, or as
 * sl_reply_check(). */
int sl_dictionaries_reply(const struct redisReply *reply, struct sl_dictionary *ret_list,
                          size_t room, size_t *ret_count, struct failure *reterr);

/* Reads the bytes of one dictionary. 0; -ENOMEM. */
int sl_dictionary_call(struct sl_call *call, uint32_t id, struct failure *reterr);
/* *ret_bytes is a slice of the reply. 0; -ENOENT: there is none; -EBADMSG, or as
 * sl_reply_check(). */
int sl_dictionary_reply(const struct redisReply *reply, struct sl_slice *ret_bytes,
                        struct failure *reterr);

/* Adds a dictionary; repeatable. 0; -ENOMEM. The answer, read with sl_reply_check(), is 0; -EEXIST:
 * the id was used before; -EDQUOT: there are SL_DICTIONARIES_MAX. */
int sl_dictionary_add_call(struct sl_call *call, const struct sl_meta *meta, uint32_t id,
                           uint64_t posts, struct sl_slice bytes, struct failure *reterr);
/* Withdraws a dictionary; repeatable. 0; -ENOMEM. The answer is 0; -ENOENT: there is none. */
int sl_dictionary_withdraw_call(struct sl_call *call, const struct sl_meta *meta, uint32_t id,
                                struct failure *reterr);
