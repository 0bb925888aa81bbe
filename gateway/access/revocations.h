/* gateway/access/revocations.h - which tokens have been taken back, as one worker knows it.
 *
 * A set in memory, asked for every request: a look-up each for the token's jti, subject and key,
 * however many there are. Pure: no sockets, no clock. Belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/front/token.h"
#include "src/database/revocations.h"

struct revocations;

/* Empty. NULL: out of memory. */
struct revocations *revocations_new(void);
void revocations_free(struct revocations *set);

/* Copies it, unless one of its id is there. 0; -ENOMEM: nothing has changed. */
int revocations_add(struct revocations *set, const struct sl_revocation *revocation);
/* false: there is none of this id. */
bool revocations_remove(struct revocations *set, uint64_t id);
size_t revocations_count(const struct revocations *set);

/* The id of one by which the token is good no more at the Unix time `now_ms`; 0: there is none. A
 * token that does not say when it was issued is older than any time. */
uint64_t revocations_find(const struct revocations *set, const struct token *token,
                          uint64_t now_ms);
/* Forgets those that matter no more. */
void revocations_drop_old(struct revocations *set, uint64_t now_ms);
