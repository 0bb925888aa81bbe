/* gateway/access/revocations.h - the set of revoked tokens in a worker's memory.
 *
 * It is used for every request: one look-up each for the token's jti, subject and key, however many
 * revocations there are. No I/O, no clock. Belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/front/token.h"
#include "src/database/revocations.h"

struct revocations;

/* An empty set. NULL: out of memory. */
struct revocations *revocations_new(void);
void revocations_free(struct revocations *set);

/* Copies the revocation, unless one with its id exists. 0; -ENOMEM: nothing has changed. */
int revocations_add(struct revocations *set, const struct sl_revocation *revocation);
/* false: there is none with this id. */
bool revocations_remove(struct revocations *set, uint64_t id);
size_t revocations_count(const struct revocations *set);

/* The id of a revocation by which the token is invalid at the Unix time `now_ms`; 0: none. A token
 * without a time of issue counts as older than any revocation. */
uint64_t revocations_find(const struct revocations *set, const struct token *token,
                          uint64_t now_ms);
/* Removes the revocations that no longer have an effect. */
void revocations_drop_old(struct revocations *set, uint64_t now_ms);
