/* http.c - elements of header fields, and refusals as JSON.
 *
 * Elements are split at their separator only, because none of the fields read here has quoted
 * strings that contain one. A refusal has fixed space for message and parameter: a message that is
 * too long is truncated between two characters, and a parameter that cannot be shown unchanged is
 * omitted. */
#include "gateway/http/http.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

#include "base/utf8.h"

struct sl_slice http_trim(struct sl_slice text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = sl_slice_from(text, 1);
    while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

struct sl_slice http_next_element(struct sl_slice *rest, char separator)
{
    const char *end = memchr(rest->data, separator, rest->size);
    struct sl_slice element = sl_slice(rest->data, end ? (size_t)(end - rest->data) : rest->size);

    *rest = sl_slice_from(*rest, element.size + (end ? 1 : 0));
    return http_trim(element);
}

bool http_token_is(struct sl_slice text, const char *token)
{
    return text.size == strlen(token) && strncasecmp(text.data, token, text.size) == 0;
}

static bool is_fit_to_show(const char *param)
{
    size_t size =
        strspn(param, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");

    return param[size] == '\0' && size < HTTP_PARAM_SIZE;
}

int http_refuse(struct http_refusal *refusal, int status, const char *code, const char *param,
                const char *format, ...)
{
    va_list args;
    size_t size;

    *refusal = (struct http_refusal){.status = status, .code = code};
    va_start(args, format);
    vsnprintf(refusal->message, sizeof(refusal->message), format, args);
    va_end(args);
    size = strlen(refusal->message);
    while (!utf8_is_valid(sl_slice(refusal->message, size)))
        refusal->message[--size] = '\0'; /* the message was cut within a character */
    if (param && is_fit_to_show(param))
        strcpy(refusal->param, param);
    return -EPROTO;
}

void http_refusal_print(const struct http_refusal *refusal, struct buffer *ret_json)
{
    buffer_append_str(ret_json, "{\"error\":{\"code\":");
    buffer_append_json_string(ret_json, sl_slice_str(refusal->code));
    buffer_append_str(ret_json, ",\"message\":");
    buffer_append_json_string(ret_json, sl_slice_str(refusal->message));
    if (refusal->param[0]) {
        buffer_append_str(ret_json, ",\"param\":");
        buffer_append_json_string(ret_json, sl_slice_str(refusal->param));
    }
    if (refusal->place > 0) {
        buffer_append_str(ret_json, ",\"at\":");
        buffer_append_decimal(ret_json, refusal->place - 1);
    }
    buffer_append_str(ret_json, "}}\n");
}

const char *http_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } reasons[] = {
        {200, "OK"},
        {201, "Created"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {406, "Not Acceptable"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {411, "Length Required"},
        {413, "Content Too Large"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {422, "Unprocessable Content"},
        {426, "Upgrade Required"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };

    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        if (reasons[i].status == status)
            return reasons[i].reason;
    }
    return "Error";
}
