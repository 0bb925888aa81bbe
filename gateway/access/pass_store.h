/* gateway/access/pass_store.h - the passes of tickets and sessions, which all gateways of a
 * database have together: put, looked at and taken in Redis.
 *
 * The secret of a pass never goes to Redis; its hash is the name of the key. */
#pragma once

#include <stdint.h>

#include "gateway/front/stream_pass.h"
#include "src/database/passes.h"

struct pass_store;
struct redis_commands;

/* NULL: out of memory. `commands` must be freed first: it answers what is under way. */
struct pass_store *pass_store_new(struct redis_commands *commands);
void pass_store_free(struct pass_store *store);

/* Of the database; 0, as at the beginning: it is not known, and nothing can be asked. */
void pass_store_set_shards(struct pass_store *store, uint32_t shards);

/* 0: it is there, or was put, and `pass` is what it says (of a put: NULL); -ENOENT: there is none;
 * other: Redis did not answer, or not as it should, and `why` says what. */
typedef void (*pass_store_fn)(void *owner, int r, const struct stream_pass *pass, const char *why);

/* Each 0: `done` is called, once and later; -EAGAIN: no database is known; -ENOMEM: it is not. */
int pass_store_put(struct pass_store *store, enum sl_pass_kind kind, struct sl_slice secret,
                   const struct stream_pass *pass, uint64_t ttl_ms, pass_store_fn done,
                   void *owner);
int pass_store_look(struct pass_store *store, enum sl_pass_kind kind, struct sl_slice secret,
                    pass_store_fn done, void *owner);
/* Looks, and nobody after. */
int pass_store_take(struct pass_store *store, enum sl_pass_kind kind, struct sl_slice secret,
                    pass_store_fn done, void *owner);
