/* gateway/access/pass_store.h - stores tickets and sessions of browsers in Redis, where all
 * gateways of a database can use them.
 *
 * The secret of a pass is never sent to Redis; the key's name contains its hash. Belongs to the
 * thread of the commands' loop. */
#pragma once

#include <stdint.h>

#include "gateway/front/stream_pass.h"
#include "src/database/passes.h"

struct pass_store;
struct redis_commands;

/* NULL: out of memory. `commands` must be freed before the store, because that ends outstanding
 * requests. */
struct pass_store *pass_store_new(struct redis_commands *commands);
void pass_store_free(struct pass_store *store);

/* Sets the number of shards; 0, as at the beginning: the database is unknown, and requests fail. */
void pass_store_set_shards(struct pass_store *store, uint32_t shards);

/* `r` is 0: found or stored; `pass` is set unless it was stored. -ENOENT: there is no such pass.
 * Other: Redis did not answer, or not correctly, and `why` says what happened. */
typedef void (*pass_store_fn)(void *owner, int r, const struct stream_pass *pass, const char *why);

/* 0: `done` will be called once, later; -EAGAIN: the database is unknown; -ENOMEM. */
int pass_store_put(struct pass_store *store, enum sl_pass_kind kind, struct sl_slice secret,
                   const struct stream_pass *pass, uint64_t ttl_ms, pass_store_fn done,
                   void *owner);
int pass_store_look(struct pass_store *store, enum sl_pass_kind kind, struct sl_slice secret,
                    pass_store_fn done, void *owner);
/* Reads and removes it: of several calls only one succeeds. */
int pass_store_take(struct pass_store *store, enum sl_pass_kind kind, struct sl_slice secret,
                    pass_store_fn done, void *owner);
