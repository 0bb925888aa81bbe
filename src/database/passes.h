/* src/database/passes.h - tickets and sessions of streams: a text stored under a name for some
 * time.
 *
 * The name is the hash of a secret, so that reading the database reveals no secret. It also
 * determines the shard. */
#pragma once

#include <stdint.h>

#include "base/failure.h"
#include "base/slice.h"
#include "src/call/call.h"

struct redisReply;

enum sl_pass_kind { SL_PASS_TICKET, SL_PASS_SESSION };

/* `name`: 43 bytes. 0; -ENOMEM. */
int sl_pass_put_call(struct sl_call *call, uint32_t shards, enum sl_pass_kind kind,
                     const char *name, struct sl_slice text, uint64_t ttl_ms,
                     struct failure *reterr);
int sl_pass_put_reply(const struct redisReply *reply, struct failure *reterr);

/* Reads the text, or takes it: reads and deletes it, so that only one caller gets it. 0;
 * -ENOMEM. */
int sl_pass_get_call(struct sl_call *call, uint32_t shards, enum sl_pass_kind kind,
                     const char *name, struct failure *reterr);
int sl_pass_take_call(struct sl_call *call, uint32_t shards, enum sl_pass_kind kind,
                      const char *name, struct failure *reterr);
/* The reply to both calls: *ret_text is a slice of the reply. 0; -ENOENT: there is none; or as
 * sl_reply_check(). */
int sl_pass_reply(const struct redisReply *reply, struct sl_slice *ret_text,
                  struct failure *reterr);
