#include "gateway/dialects/tweet_id.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/stable_hash.h"
#include "src/model/id.h"

static bool is_number(struct sl_slice id)
{
    if (id.size == 0 || id.size > 18 || (id.data[0] == '0' && id.size > 1))
        return false;
    for (size_t i = 0; i < id.size; i++) {
        if (id.data[i] < '0' || id.data[i] > '9')
            return false;
    }
    return true;
}

int64_t tweet_id_number(struct sl_slice id)
{
    uint64_t hash = 0;

    if (is_number(id))
        return strtoll(id.data, NULL, 10);
    for (size_t i = 0; i < id.size; i++)
        hash = stable_hash(hash ^ (unsigned char)id.data[i]);
    return (int64_t)(hash & SL_ID_MAX);
}
