#include "src/model/dictionary_id.h"

#include <errno.h>

#include "src/model/id.h"

int sl_dictionary_id_parse(struct sl_slice text, uint32_t *ret_id, struct failure *reterr)
{
    uint64_t id;

    if (sl_id_parse(text, &id) < 0 || id < SL_DICTIONARY_ID_MIN || id > SL_DICTIONARY_ID_MAX)
        return failure_set(reterr, -EINVAL, "ids of dictionaries are numbers from %d to %d",
                           SL_DICTIONARY_ID_MIN, SL_DICTIONARY_ID_MAX);
    *ret_id = (uint32_t)id;
    return 0;
}
