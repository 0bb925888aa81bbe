#include "gateway/intake/heard_twice.h"

void heard_twice_init(struct heard_twice *twice)
{
    twice->key = hash_key_random();
}

/* After this many nodes a bit is reused; what the first one reported is forgotten by then. */
static uint32_t bit_of(uint32_t way)
{
    return way == 0 ? 1 : 2u << (way - 1) % 31;
}

bool heard_twice_take(struct heard_twice *twice, const struct live_message *message, uint32_t way)
{
    uint64_t hash = hash_slice(twice->key, message->body) + message->shard;
    uint32_t bit = bit_of(way);

    for (unsigned i = 0; i < HEARD_TWICE_COUNT; i++) {
        struct heard_once *once = &twice->once[i];

        if (once->hash == hash && once->until_us > message->received_us && !(once->ways & bit)) {
            once->ways |= bit;
            return true;
        }
    }
    twice->once[twice->next] = (struct heard_once){
        .hash = hash,
        .until_us = message->received_us + HEARD_TWICE_MS * UINT64_C(1000),
        .ways = bit,
    };
    twice->next = (twice->next + 1) % HEARD_TWICE_COUNT;
    return false;
}
