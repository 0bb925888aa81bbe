#include "gateway/intake/heard_twice.h"

void heard_twice_init(struct heard_twice *twice)
{
    twice->key = hash_key_random();
}

bool heard_twice_take(struct heard_twice *twice, const struct live_message *message,
                      bool is_sharded)
{
    uint64_t hash = hash_slice(twice->key, message->body) + message->shard;

    for (unsigned i = 0; i < HEARD_TWICE_COUNT; i++) {
        struct heard_once *once = &twice->once[i];

        if (once->hash == hash && once->until_us > message->received_us &&
            once->is_sharded != is_sharded) {
            once->until_us = 0;
            return true;
        }
    }
    twice->once[twice->next] = (struct heard_once){
        .hash = hash,
        .until_us = message->received_us + HEARD_TWICE_MS * UINT64_C(1000),
        .is_sharded = is_sharded,
    };
    twice->next = (twice->next + 1) % HEARD_TWICE_COUNT;
    return false;
}
