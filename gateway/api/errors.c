/* errors.c - refusals: errors of src, and errors in requests.
 *
 * One table maps the errors of src to statuses and codes, for all operations. */
#include "gateway/api/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "gateway/api/route.h"

static const struct {
    int error; /* a negative errno of src */
    int status;
    const char *code;
    unsigned retry_after_s;
} errors[] = {
    {-EINVAL, 400, "bad_request", 0},
    {-EPERM, 403, "not_yours", 0},
    {-ENOENT, 404, "not_found", 0},
    {-EEXIST, 409, "login_taken", 0},
    {-EDQUOT, 409, "too_many_followed", 0},
    {-EALREADY, 422, "idempotency_key_reused", 0},
    {-EOPNOTSUPP, 422, "not_public", 0},
    {-ENOMEM, 503, "no_memory", HTTP_RETRY_AFTER_S},
    {-EPIPE, 503, "redis_away", HTTP_RETRY_AFTER_S},
    {-EAGAIN, 503, "redis_away", HTTP_RETRY_AFTER_S},
    {-ENODATA, 503, "redis_away", HTTP_RETRY_AFTER_S},
    {-ESTALE, 503, "redis_away", HTTP_RETRY_AFTER_S},
    {-EACCES, 503, "redis_away", HTTP_RETRY_AFTER_S},
    {-EROFS, 503, "redis_away", HTTP_RETRY_AFTER_S},
    {-ENOSPC, 503, "redis_full", HTTP_RETRY_AFTER_S},
    {-EHOSTUNREACH, 503, "archive_away", HTTP_RETRY_AFTER_S},
    {-EBADMSG, 500, "internal", 0},
};

/* The details of internal errors are only logged; clients get a message about what they can do. */
static const char *message_of(const char *code, const char *why)
{
    static const char *const texts[][2] = {
        {"internal", "the database has invalid data"},
        {"no_memory", "out of memory"},
        {"redis_away", "Redis does not answer now; it is unknown whether it was done"},
        {"redis_full", "Redis has no room"},
        {"archive_away", "the archive does not answer now"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(texts[i][0], code) == 0)
            return texts[i][1];
    }
    return why;
}

/* -EIO and all other errors use the last row. */
static size_t find_error(int r)
{
    size_t i = 0;

    while (i + 1 < sizeof(errors) / sizeof(errors[0]) && errors[i].error != r)
        i++;
    return i;
}

void api_error_json(struct buffer *json, int r, const struct failure *failure)
{
    const char *code = errors[find_error(r)].code;

    buffer_append_str(json, "{\"code\":");
    buffer_append_json_string(json, sl_slice_str(code));
    buffer_append_str(json, ",\"message\":");
    buffer_append_json_string(json, sl_slice_str(message_of(code, failure->text)));
    buffer_append_char(json, '}');
}

int api_fail(struct api_request *request, int r, const struct failure *failure)
{
    struct api *api = request->api;
    size_t row = find_error(r);
    char room[LOG_QUOTE_SIZE];
    uint64_t held_back;

    http_refuse(&request->refusal, errors[row].status, errors[row].code, NULL, "%s",
                message_of(errors[row].code, failure->text));
    request->refusal.retry_after_s = errors[row].retry_after_s;
    if (errors[row].status >= 500 &&
        log_rate_allows(&api->failed_rate, uv_now(api->settings.loop), &held_back))
        log_warn("api_failed", "route=\"%s\" why=%s held_back=%" PRIu64, request->route->path,
                 log_quote(sl_slice_str(failure->text), room), held_back);
    return -EPROTO;
}

int api_fail_member(struct api_request *request, int r, const struct failure *failure,
                    const char *member)
{
    r = api_fail(request, r, failure);
    snprintf(request->refusal.param, sizeof(request->refusal.param), "%s", member);
    return r;
}

int api_fail_for_memory(struct api_request *request)
{
    return api_fail(request, -ENOMEM, &(struct failure){"out of memory"});
}

int api_refuse(struct api_request *request, int status, const char *code, const char *param,
               const char *format, ...)
{
    char message[HTTP_MESSAGE_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return http_refuse(&request->refusal, status, code, param, "%s", message);
}

int api_refuse_for_now(struct http_refusal *refusal, const char *code, const char *message)
{
    http_refuse(refusal, 503, code, NULL, "%s", message);
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}
