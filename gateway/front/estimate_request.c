/* estimate_request.c - the token, the JSON, the filter in it, the scope; in this order.
 *
 * Members that are not known are refused by name, but in the filter, where they are ignored as on a
 * WebSocket. A body has at most BODY_MAX_BYTES. */
#include "gateway/front/estimate_request.h"

#include <errno.h>
#include <string.h>

#include "gateway/front/bearer.h"
#include "gateway/http/form.h"
#include "src/model/id.h"
#include "src/model/moment.h"

enum { BODY_MAX_BYTES = 256 << 10 };

static int check_token(const struct front_settings *settings, const struct http_request *http,
                       uint64_t now_ms, struct token *ret_token, struct http_refusal *refusal,
                       enum token_fault *ret_fault)
{
    static const char *const names[] = {"access_token"};
    struct sl_slice values[] = {SL_SLICE_NONE};
    struct form form = {names, 1, values, NULL};
    struct http_refusal form_refusal;
    int form_r = form_read(&form, &http->query, 1, &form_refusal), r = form_r;

    if (form_r != -ENOMEM)
        r = bearer_check(settings->policy, http, values[0], now_ms, ret_token, refusal, ret_fault);
    if (r == 0 && form_r < 0) {
        *refusal = form_refusal;
        r = form_r;
    }
    form_done(&form);
    return r;
}

static int check_members(const json_t *json, struct http_refusal *refusal)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)json, name, value)
    {
        if (strcmp(name, "filter") != 0 && strcmp(name, "since") != 0)
            return http_refuse(refusal, 400, "unknown_member", name,
                               "there are no members but filter and since");
    }
    return 0;
}

static int read_body(const struct http_request *http, json_t **ret_json,
                     struct http_refusal *refusal)
{
    struct sl_slice type = http->content_type;
    struct sl_filter_error error;
    int r;

    if (type.size == 0 || !http_token_is(http_next_element(&type, ';'), "application/json"))
        return http_refuse(refusal, 415, "bad_content_type", NULL,
                           "the body needs Content-Type: application/json");
    if (http->body.size > BODY_MAX_BYTES)
        return http_refuse(refusal, 413, "body_too_large", NULL, "the body may have %d bytes",
                           BODY_MAX_BYTES);
    r = filter_json_load(http->body, ret_json, &error);
    if (r == 0 && json_is_object(*ret_json))
        return check_members(*ret_json, refusal);
    return r == -ENOMEM ? r : http_refuse(refusal, 400, "bad_json", NULL, "not a JSON object");
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
                           "an estimate looks back at an hour at most");
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
                           "a filter is needed, as in {\"filter\":{\"track\":\"tea\"}}");
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
    r = check_token(settings, http, now_ms, &request.token, refusal, ret_fault);
    if (r == 0)
        r = read_body(http, &request.json, refusal);
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
