#include "src/model/user_name.h"

#include <errno.h>
#include <stdbool.h>

#include "src/model/id.h"

static bool is_digits(struct sl_slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    }
    return true;
}

int sl_user_name_parse(struct sl_slice text, uint64_t *ret_id, struct sl_slice *ret_login)
{
    *ret_id = 0;
    *ret_login = SL_SLICE_NONE;
    if (is_digits(text))
        return sl_id_parse(text, ret_id);
    *ret_login = text.data[0] == '@' ? sl_slice_from(text, 1) : text;
    return ret_login->size > 0 ? 0 : -EINVAL;
}
