#include "gateway/front/json_request.h"

#include <errno.h>

#include "gateway/front/bearer.h"
#include "gateway/front/filter_json.h"
#include "gateway/http/form.h"

enum { BODY_MAX_BYTES = 256 << 10 };

int json_request_token(const struct front_settings *settings, const struct http_request *http,
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

int json_request_body(const struct http_request *http, json_t **ret_json,
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
        return 0;
    return r == -ENOMEM ? r : http_refuse(refusal, 400, "bad_json", NULL, "not a JSON object");
}
