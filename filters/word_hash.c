#include "filters/word_hash.h"

#include "base/hash.h"

struct sl_word_key sl_word_key_new(uint64_t seed)
{
    const uint64_t prime = ((uint64_t)1 << 61) - 1;
    struct hash_key source = {seed, 0x736c756963652077u}; /* an arbitrary constant, to separate this
                                                             from other uses of the seed */
    uint64_t words[7];

    for (uint64_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        words[i] = hash_bytes(source, &i, sizeof(i));
    return (struct sl_word_key){
        .point = words[0] % prime,
        .scale = (unsigned __int128)words[1] << 64 | words[2],
        .shift = (unsigned __int128)words[3] << 64 | words[4],
        .second = (unsigned __int128)words[5] << 64 | words[6],
    };
}
