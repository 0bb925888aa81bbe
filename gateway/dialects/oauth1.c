#include "gateway/dialects/oauth1.h"

#include "gateway/http/http.h"

static struct sl_slice unquote(struct sl_slice value)
{
    if (value.size < 2 || value.data[0] != '"' || value.data[value.size - 1] != '"')
        return SL_SLICE_NONE;
    value = sl_slice(value.data + 1, value.size - 2);
    return memchr(value.data, '%', value.size) ? SL_SLICE_NONE : value;
}

bool oauth1_token(struct sl_slice authorization, struct sl_slice *ret_jwt)
{
    const struct sl_slice name = SL_SLICE("oauth_token=");
    struct sl_slice rest = http_trim(authorization);

    if (rest.size < 6 || rest.data[5] != ' ' || !http_token_is(sl_slice(rest.data, 5), "OAuth"))
        return false;
    *ret_jwt = SL_SLICE_NONE;
    rest = sl_slice_from(rest, 6);
    while (rest.size > 0) {
        struct sl_slice element = http_next_element(&rest, ',');

        if (sl_slice_starts_with(element, name))
            *ret_jwt = unquote(sl_slice_from(element, name.size));
    }
    return true;
}
