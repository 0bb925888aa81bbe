/* estimate_request.c - checks the token, the JSON, the filter in it, and the scope; in this order.
 *
 * Unknown members are refused by name, except in the filter, where they are ignored as on a
 * WebSocket. */
#include "gateway/front/estimate_request.h"

#include <errno.h>
#include <string.h>

#include "gateway/front/json_request.h"
#include "src/model/id.h"
#include "src/model/moment.h"

static int check_members(const json_t *json, struct http_refusal *refusal)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)json, name, value)
    {
        if (strcmp(name, "filter") != 0 && strcmp(name, "since") != 0)
            return http_refuse(refusal, 400, "unknown_member", name,
                               "the only members are filter and since");
    }
    return 0;
}

static int read_since(const json_t *since, uint64_t now_ms, uint64_t *ret_from,
                      struct http_refusal *refusal)
{
    struct sl_moment moment;
    struct failure failure;

    *ret_from = 0;
    if (!since || json_is_null(since))
        return 0;
    if (!json_is_string(since))
        return http_refuse(refusal, 400, "bad_type", "since", "a text, as in \"-10m\"");
    if (sl_moment_parse(sl_slice(json_string_value(since), json_string_length(since)), now_ms,
                        &moment, &failure) < 0)
        return http_refuse(refusal, 400, "bad_since", "since", "%s", failure.text);
    if (sl_moment_ms(&moment) + ESTIMATE_SINCE_MS < now_ms)
        return http_refuse(refusal, 400, "bad_since", "since",
                           "an estimate looks back at most an hour");
    if (sl_moment_ms(&moment) > now_ms)
        return http_refuse(refusal, 400, "bad_since", "since", "in the future");
    *ret_from = sl_moment_cursor(&moment);
    return 0;
}

static int read_filter(struct estimate_request *request, struct http_refusal *refusal)
{
    const json_t *json = json_object_get(request->json, "filter");
    struct sl_filter_error error;
    struct filter_json members;
    int r;

    if (!json_is_object(json))
        return http_refuse(refusal, 400, "no_filter", "filter",
                           "a filter is required, as in {\"filter\":{\"track\":\"tea\"}}");
    r = filter_json_members(json, &members, &error);
    if (r == 0) {
        request->text = members.text;
        request->limits = request->token.limits;
        request->limits.allows_wide = true;
        r = sl_filter_new_warned(&request->text, &request->limits, &request->filter, &error,
                                 &request->warnings);
    }
    return r == -EINVAL ? filter_json_refuse(&error, refusal) : r;
}

int estimate_request_read(const struct front_settings *settings, const struct http_request *http,
                          uint64_t now_ms, struct estimate_request *ret_request,
                          struct http_refusal *refusal, enum token_fault *ret_fault)
{
    struct estimate_request request = {.json = NULL};
    int r;

    *ret_fault = TOKEN_OK;
    r = json_request_token(settings, http, now_ms, &request.token, refusal, ret_fault);
    if (r == 0)
        r = json_request_body(http, &request.json, refusal);
    if (r == 0)
        r = check_members(request.json, refusal);
    if (r == 0)
        r = read_since(json_object_get(request.json, "since"), now_ms, &request.from, refusal);
    if (r == 0)
        r = read_filter(&request, refusal);
    if (r == 0)
        r = stream_filter_permitted(&request.token, request.filter, refusal);
    if (r < 0)
        estimate_request_done(&request);
    else
        *ret_request = request;
    return r;
}

void estimate_request_done(struct estimate_request *request)
{
    sl_filter_unref(request->filter);
    request->filter = NULL;
    json_decref(request->json);
    request->json = NULL;
}
