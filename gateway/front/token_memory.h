/* gateway/front/token_memory.h - remembers valid tokens, so that further requests need no signature
 * check.
 *
 * A token is identified by the SHA-256 of all its bytes; its content is kept until it expires, and
 * is valid only between its beginning and end. The memory is allocated once; if it is full, the
 * least recently used token is replaced. Everything is forgotten when keys, settings or revocations
 * change. */
#pragma once

#include "base/slice.h"
#include "gateway/front/token.h"

enum { TOKEN_HASH_BYTES = 32 };

struct token_hash {
    unsigned char bytes[TOKEN_HASH_BYTES];
};

struct token_memory;

/* For about `max_tokens`; 0: remembers nothing. NULL: out of memory. */
struct token_memory *token_memory_new(unsigned max_tokens);
void token_memory_free(struct token_memory *memory);

struct token_hash token_memory_hash(struct sl_slice jwt);

/* true: *ret_token is filled. */
bool token_memory_find(struct token_memory *memory, const struct token_hash *hash, uint64_t now_ms,
                       struct token *ret_token);
/* Remembers a token that is valid at `now_ms`. */
void token_memory_put(struct token_memory *memory, const struct token_hash *hash, uint64_t now_ms,
                      const struct token *token);
void token_memory_forget(struct token_memory *memory);
