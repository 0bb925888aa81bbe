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

static bool has(const struct jwk_set *set, const char *name)
{
    for (unsigned i = 0; i < jwk_set_count(set); i++) {
        if (strcmp(token_key_name(jwk_set_key(set, i)), name) == 0)
            return true;
    }
    return false;
}

bool key_set_lost_one(struct sl_slice before, struct sl_slice now)
{
    struct jwk_set *old = NULL, *new = NULL;
    bool is_lost = false;

    if (jwk_set_parse(before, &old, NULL) == 0 && jwk_set_parse(now, &new, NULL) == 0) {
        for (unsigned i = 0; i < jwk_set_count(old) && !is_lost; i++)
            is_lost = !has(new, token_key_name(jwk_set_key(old, i)));
    }
    jwk_set_free(old);
    jwk_set_free(new);
    return is_lost;
}
