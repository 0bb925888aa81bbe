#include "gateway/front/origin.h"

#include <strings.h>

static bool equal_ignoring_case(struct sl_slice a, struct sl_slice b)
{
    return a.size == b.size && strncasecmp(a.data, b.data, a.size) == 0;
}

static struct sl_slice without_scheme(struct sl_slice origin)
{
    static const struct sl_slice schemes[] = {{"http://", 7}, {"https://", 8}};

    for (size_t i = 0; i < 2; i++) {
        if (sl_slice_starts_with(origin, schemes[i]))
            return sl_slice_from(origin, schemes[i].size);
    }
    return SL_SLICE_NONE;
}

bool origin_is_allowed(const struct origin_policy *policy, struct sl_slice origin,
                       struct sl_slice host)
{
    struct sl_slice page_host;

    if (!origin.data || policy->any)
        return true;
    for (unsigned i = 0; i < policy->allowed_count; i++) {
        if (equal_ignoring_case(origin, sl_slice_str(policy->allowed[i])))
            return true;
    }
    page_host = without_scheme(origin);
    return page_host.data && host.data && equal_ignoring_case(page_host, host);
}
