/* session_cookie.c - which requests may use the cookie, and its name.
 *
 * Browsers send no Origin with a GET to the page's own server; Sec-Fetch-Site then says that it is
 * the same. A browser that sends neither gets no cookie, and needs a new ticket. */
#include "gateway/front/session_cookie.h"

#include <inttypes.h>
#include <string.h>

#include "gateway/http/accept.h"

#define NAME_BEGIN "sluice_"

enum { NAME_PRINT_SIZE = 16 };

bool session_cookie_permitted(const struct origin_policy *policy, const struct http_request *http)
{
    const struct origin_policy named = {.allowed = policy->allowed,
                                        .allowed_count = policy->allowed_count};

    if (http->method != HTTP_GET || http->is_upgrade || accept_choose(&http->accept) != ACCEPT_SSE)
        return false;
    if (http->origin.data)
        return origin_is_allowed(&named, http->origin, http->host);
    return http_token_is(http_trim(http->fetch_site), "same-origin");
}

/* The next of our cookies. false: there are no more. */
static bool next_cookie(struct sl_slice *rest, struct sl_slice *ret_name,
                        struct sl_slice *ret_value)
{
    while (rest->size > 0) {
        struct sl_slice pair = http_next_element(rest, ';');
        const char *equals = memchr(pair.data, '=', pair.size);

        if (!equals || !sl_slice_starts_with(pair, SL_SLICE(NAME_BEGIN)))
            continue;
        *ret_name = sl_slice(pair.data, (size_t)(equals - pair.data));
        *ret_value = sl_slice_from(pair, ret_name->size + 1);
        return true;
    }
    return false;
}

static bool is_of(struct sl_slice name, const struct stream_print *print)
{
    return name.size == sizeof(NAME_BEGIN) - 1 + NAME_PRINT_SIZE &&
           memcmp(name.data + sizeof(NAME_BEGIN) - 1, print->text, NAME_PRINT_SIZE) == 0;
}

struct sl_slice session_cookie_find(const struct http_request *http,
                                    const struct stream_print *print)
{
    struct sl_slice rest = http->cookie, name, value;

    while (next_cookie(&rest, &name, &value)) {
        if (is_of(name, print))
            return value;
    }
    return SL_SLICE_NONE;
}

bool session_cookie_has_room(const struct http_request *http, const struct stream_print *print)
{
    struct sl_slice rest = http->cookie, name, value;
    unsigned others = 0;

    while (next_cookie(&rest, &name, &value))
        others += !is_of(name, print);
    return others < SESSION_COOKIES_MAX;
}

void session_cookie_append(const struct stream_print *print, const char *secret, uint64_t ms,
                           struct buffer *headers)
{
    buffer_append_format(headers,
                         "Set-Cookie: " NAME_BEGIN "%.*s=%s; Max-Age=%" PRIu64
                         "; Path=/v1/stream; Secure; HttpOnly; SameSite=Strict\r\n",
                         NAME_PRINT_SIZE, print->text, secret, ms / 1000);
}
