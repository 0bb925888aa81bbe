/* gateway/front/token_memory.h - tokens that were found good lately, so that who comes back costs
 * no signature.
 *
 * A token is known by the SHA-256 of all its bytes, never by less; what was read of it is kept
 * until its end, and is good only between its beginning and its end. The room is taken once; where
 * it is full, who was not asked for the longest goes. It is forgotten as a whole when keys,
 * settings or revocations change: what was true of a token then need not be so now. */
#pragma once

#include "base/slice.h"
#include "gateway/front/token.h"

enum { TOKEN_HASH_BYTES = 32 };

struct token_hash {
    unsigned char bytes[TOKEN_HASH_BYTES];
};

struct token_memory;

/* For some `max_tokens`; 0: it remembers nothing. NULL: out of memory. */
struct token_memory *token_memory_new(unsigned max_tokens);
void token_memory_free(struct token_memory *memory);

struct token_hash token_memory_hash(struct sl_slice jwt);

/* true: fills *ret_token. */
bool token_memory_find(struct token_memory *memory, const struct token_hash *hash, uint64_t now_ms,
                       struct token *ret_token);
/* Of a token that is good at `now_ms`. */
void token_memory_put(struct token_memory *memory, const struct token_hash *hash, uint64_t now_ms,
                      const struct token *token);
void token_memory_forget(struct token_memory *memory);
