/* gateway/access/rule_store.h - the rules of subjects, which all gateways of a database have
 * together: read and changed in Redis.
 *
 * The name of a subject never goes to Redis; its hash is the name of the key. */
#pragma once

#include <stdint.h>

#include "gateway/front/subject_rules.h"

struct redis_commands;
struct rule_store;

/* NULL: out of memory. `commands` must be freed first: it answers what is under way. */
struct rule_store *rule_store_new(struct redis_commands *commands);
void rule_store_free(struct rule_store *store);

/* Of the database; 0, as at the beginning: it is not known, and nothing can be asked. */
void rule_store_set_shards(struct rule_store *store, uint32_t shards);

/* 0: `rules` are what the callee may keep by taking *rules (and leaving it zeroed); other: Redis
 * did not answer, or not as it should, and `why` says what. */
typedef void (*rule_store_got_fn)(void *owner, int r, struct subject_rules *rules, const char *why);
/* 0; -ESTALE: they have been changed since they were read; other: as above. `version` is theirs. */
typedef void (*rule_store_version_fn)(void *owner, int r, uint64_t version, const char *why);

/* Each 0: `done` is called, once and later; -EAGAIN: no database is known; -ENOMEM: it is not. */
int rule_store_get(struct rule_store *store, struct sl_slice holder, rule_store_got_fn done,
                   void *owner);
int rule_store_look(struct rule_store *store, struct sl_slice holder, rule_store_version_fn done,
                    void *owner);
int rule_store_change(struct rule_store *store, struct sl_slice holder, uint64_t version,
                      const struct rules_change *change, rule_store_version_fn done, void *owner);
