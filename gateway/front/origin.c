#include "gateway/front/origin.h"

#include <string.h>
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

bool origin_is_listed(const struct origin_policy *policy, struct sl_slice origin)
{
    for (unsigned i = 0; origin.data && i < policy->allowed_count; i++) {
        if (equal_ignoring_case(origin, sl_slice_str(policy->allowed[i])))
            return true;
    }
    return false;
}

/* Letters, digits, other characters of a token (RFC 9110, 5.6.2), and separators. */
static bool may_be_in_list(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~, ", c));
}

struct sl_slice origin_allowed_headers(struct sl_slice wanted)
{
    const struct sl_slice usual =
        SL_SLICE("Authorization, Content-Type, Idempotency-Key, Last-Event-ID");

    if (wanted.size == 0 || wanted.size > ORIGIN_HEADERS_MAX)
        return usual;
    for (size_t i = 0; i < wanted.size; i++) {
        if (!may_be_in_list(wanted.data[i]))
            return usual;
    }
    return wanted;
}

bool origin_is_allowed(const struct origin_policy *policy, struct sl_slice origin,
                       struct sl_slice host)
{
    struct sl_slice page_host;

    if (!origin.data || policy->any)
        return true;
    if (origin_is_listed(policy, origin))
        return true;
    page_host = without_scheme(origin);
    return page_host.data && host.data && equal_ignoring_case(page_host, host);
}
