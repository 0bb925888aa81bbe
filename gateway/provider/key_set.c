#include "gateway/provider/key_set.h"

#include <errno.h>

#include "gateway/front/jwk_set.h"

enum fetch_result key_set_check(struct sl_slice json, unsigned *ret_count, struct failure *reterr)
{
    struct jwk_set *set = NULL;
    int r = jwk_set_parse(json, &set, reterr);

    if (r == 0)
        *ret_count = jwk_set_count(set);
    jwk_set_free(set);
    if (r == 0)
        return FETCH_GOOD;
    return r == -ENOMEM ? FETCH_NOT_WRITTEN : FETCH_NO_KEYS;
}
