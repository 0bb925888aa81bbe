#include "gateway/http/http_answer.h"

void http_answer_print(const struct http_answer_form *form, const struct http_answer *answer,
                       struct buffer *out)
{
    buffer_append_format(out, "HTTP/1.%c %d %s\r\n", form->is_http_1_0 ? '0' : '1', answer->status,
                         http_reason(answer->status));
    if (answer->content_type)
        buffer_append_format(out, "Content-Type: %s\r\n", answer->content_type);
    if (answer->status != 204 && answer->status != 304)
        buffer_append_format(out, "Content-Length: %zu\r\n", answer->body.size);
    buffer_append_format(out, "Cache-Control: %s\r\nX-Content-Type-Options: nosniff\r\n",
                         answer->cache_control ? answer->cache_control : "no-store");
    buffer_append_slice(out, form->headers);
    buffer_append_slice(out, answer->headers);
    if (form->closes)
        buffer_append_str(out, "Connection: close\r\n");
    buffer_append_str(out, "\r\n");
    if (!form->is_head)
        buffer_append_slice(out, answer->body);
}

void http_refusal_append_headers(const struct http_refusal *refusal, struct buffer *headers)
{
    if (refusal->www_authenticate)
        buffer_append_format(headers, "WWW-Authenticate: %s\r\n", refusal->www_authenticate);
    if (refusal->allow)
        buffer_append_format(headers, "Allow: %s\r\n", refusal->allow);
    if (refusal->retry_after_s)
        buffer_append_format(headers, "Retry-After: %u\r\n", refusal->retry_after_s);
    if (refusal->status == 426)
        buffer_append_str(headers, "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                                   "Sec-WebSocket-Version: 13\r\n");
}
