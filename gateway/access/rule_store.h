/* gateway/access/rule_store.h - reads and changes the kept rules of subjects in Redis, where all
 * gateways of a database use them.
 *
 * The name of a subject is never sent to Redis; the key's name contains its hash. Belongs to the
 * thread of the commands' loop. */
#pragma once

#include <stdint.h>

#include "gateway/front/subject_rules.h"

struct redis_commands;
struct rule_store;

/* NULL: out of memory. `commands` must be freed before the store, because that ends outstanding
 * requests. */
struct rule_store *rule_store_new(struct redis_commands *commands);
void rule_store_free(struct rule_store *store);

/* Sets the number of shards; 0, as at the beginning: the database is unknown, and requests fail. */
void rule_store_set_shards(struct rule_store *store, uint32_t shards);

/* `r` is 0: the callee may take *rules, leaving it zeroed. Other: Redis did not answer, or not
 * correctly, and `why` says what happened. */
typedef void (*rule_store_got_fn)(void *owner, int r, struct subject_rules *rules, const char *why);
/* `r` is 0: `version` is the version of the rules now; -ESTALE: they have changed since they were
 * read; other: as above. */
typedef void (*rule_store_version_fn)(void *owner, int r, uint64_t version, const char *why);

/* 0: `done` will be called once, later; -EAGAIN: the database is unknown; -ENOMEM. */
int rule_store_get(struct rule_store *store, struct sl_slice holder, rule_store_got_fn done,
                   void *owner);
int rule_store_look(struct rule_store *store, struct sl_slice holder, rule_store_version_fn done,
                    void *owner);
int rule_store_change(struct rule_store *store, struct sl_slice holder, uint64_t version,
                      const struct rules_change *change, rule_store_version_fn done, void *owner);
