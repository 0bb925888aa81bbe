/* token_memory.c - sets of a few places each.
 *
 * The hash selects the set, which is searched linearly. All memory is allocated at creation, and no
 * chains grow. Places are small; the tokens themselves are stored separately, in the order in which
 * places were first used, so that few tokens use little memory. */
#include "gateway/front/token_memory.h"

#include <openssl/sha.h>

#include "base/alloc.h"

enum { PLACES = 4 };

struct place {
    struct token_hash hash;
    uint64_t used;       /* greater is more recent; 0: empty */
    struct token *token; /* NULL: never used */
};

struct token_memory {
    uint64_t turn;
    unsigned set_count;
    struct token *tokens, *next; /* as many as there are places; `next` is the first unused one */
    struct place places[];       /* PLACES for each set */
};

struct token_memory *token_memory_new(unsigned max_tokens)
{
    unsigned set_count = (max_tokens + PLACES - 1) / PLACES;
    size_t count = (size_t)set_count * PLACES;
    struct token_memory *memory =
        mem_zalloc(sizeof(*memory) + mem_array_size(count, sizeof(memory->places[0])));

    if (!memory)
        return NULL;
    memory->set_count = set_count;
    memory->tokens = memory->next = mem_alloc(mem_array_size(count, sizeof(struct token)) + 1);
    if (!memory->tokens) {
        mem_free(memory);
        return NULL;
    }
    return memory;
}

void token_memory_free(struct token_memory *memory)
{
    if (!memory)
        return;
    mem_free(memory->tokens);
    mem_free(memory);
}

struct token_hash token_memory_hash(struct sl_slice jwt)
{
    struct token_hash hash;

    SHA256((const unsigned char *)jwt.data, jwt.size, hash.bytes);
    return hash;
}

static struct place *set_of(struct token_memory *memory, const struct token_hash *hash)
{
    uint64_t number;

    memcpy(&number, hash->bytes, sizeof(number));
    return &memory->places[number % memory->set_count * PLACES];
}

bool token_memory_find(struct token_memory *memory, const struct token_hash *hash, uint64_t now_ms,
                       struct token *ret_token)
{
    struct place *set;

    if (memory->set_count == 0)
        return false;
    set = set_of(memory, hash);
    for (int i = 0; i < PLACES; i++) {
        if (set[i].used == 0 || memcmp(&set[i].hash, hash, sizeof(*hash)) != 0)
            continue;
        if (now_ms < set[i].token->begins_ms || now_ms >= set[i].token->expires_ms)
            return false;
        set[i].used = ++memory->turn;
        *ret_token = *set[i].token;
        return true;
    }
    return false;
}

/* The place of the same token, else of an expired one, else of the one least recently used. */
static struct place *choose_place(struct place *set, const struct token_hash *hash, uint64_t now_ms)
{
    struct place *place = &set[0];

    for (int i = 0; i < PLACES; i++) {
        if (set[i].used > 0 && memcmp(&set[i].hash, hash, sizeof(*hash)) == 0)
            return &set[i];
        if (set[i].used > 0 && now_ms >= set[i].token->expires_ms)
            set[i].used = 0;
        if (set[i].used < place->used)
            place = &set[i];
    }
    return place;
}

void token_memory_put(struct token_memory *memory, const struct token_hash *hash, uint64_t now_ms,
                      const struct token *token)
{
    struct place *place;

    if (memory->set_count == 0)
        return;
    place = choose_place(set_of(memory, hash), hash, now_ms);
    place->hash = *hash;
    place->used = ++memory->turn;
    if (!place->token)
        place->token = memory->next++;
    *place->token = *token;
}

void token_memory_forget(struct token_memory *memory)
{
    for (size_t i = 0; i < (size_t)memory->set_count * PLACES; i++)
        memory->places[i].used = 0;
}
