#include "src/model/id.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

uint64_t sl_id_first_at(uint64_t unix_ms)
{
    uint64_t ms = unix_ms > SL_ID_EPOCH_MS ? unix_ms - SL_ID_EPOCH_MS : 0;

    return ms > SL_ID_MAX / SL_ID_PER_MS ? SL_ID_MAX : ms * SL_ID_PER_MS;
}

int sl_id_parse(struct sl_slice text, uint64_t *ret_id)
{
    uint64_t id = 0;

    if (text.size == 0 || text.size >= SL_ID_TEXT_SIZE || text.data[0] == '0')
        return -EINVAL;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return -EINVAL;
        id = id * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (id > SL_ID_MAX)
        return -EINVAL;
    *ret_id = id;
    return 0;
}

const char *sl_id_print(uint64_t id, char room[static SL_ID_TEXT_SIZE])
{
    char digits[SL_ID_TEXT_SIZE];
    size_t first = sizeof(digits);

    assert(id <= SL_ID_MAX);
    digits[--first] = '\0';
    do {
        digits[--first] = (char)('0' + id % 10);
        id /= 10;
    } while (id > 0);
    memcpy(room, digits + first, sizeof(digits) - first);
    return room;
}
