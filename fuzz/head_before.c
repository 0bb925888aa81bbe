/* head_before.c - request_head_rewrite() and http_head_read() side by side.
 *
 * What the first accepts comes out as a head; its lines are compared with the fields that the
 * second found. Each way in which they may differ has a row here and is counted; any other ends the
 * program. HEAD_COUNTS=1 in the environment prints the counts at the end. */
#include "fuzz/head_before.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/buffer.h"
#include "fuzz/fuzz.h"
#include "gateway/http/http_path.h"
#include "gateway/http/request_head.h"

enum outcome {
    BOTH_ACCEPT,
    BOTH_REFUSE_ALIKE,
    BARE_LF_AT_ONCE,    /* before: waited for more */
    PATH_NAMES,         /* 404; before: accepted, or refused for something else */
    HOST_MALFORMED,     /* before: accepted */
    LISTS_ARE_LISTS,    /* Upgrade and Expect; before: one word, the last line */
    ONCE_MORE,          /* Sec-WebSocket-Key and -Version; before: left to libwebsockets */
    LIST_TOO_LONG,      /* more than four lines; before: left to libwebsockets */
    BODY_MISPLACED,     /* GET, upgrade, POST without length; before: by exchange.c, later */
    PROTOCOLS_LATER,    /* foreign subprotocols; now: by the front */
    FAULT_BESIDE,       /* several faults in a target: another one is named */
    PARAMETERS_COUNTED, /* before: without empty ones at the end */
    OUTCOME_COUNT
};

static const char *const names[OUTCOME_COUNT] = {
    [BOTH_ACCEPT] = "both accept, all fields alike",
    [BOTH_REFUSE_ALIKE] = "both refuse, in the same words",
    [BARE_LF_AT_ONCE] = "bare LF, refused at once",
    [PATH_NAMES] = "path with another name",
    [HOST_MALFORMED] = "Host malformed",
    [LISTS_ARE_LISTS] = "Upgrade or Expect is a list",
    [ONCE_MORE] = "Sec-WebSocket-Key or -Version twice",
    [LIST_TOO_LONG] = "list on five lines",
    [BODY_MISPLACED] = "body that may not be, or length that must",
    [PROTOCOLS_LATER] = "foreign subprotocols, refused later",
    [FAULT_BESIDE] = "another fault of a bad target named",
    [PARAMETERS_COUNTED] = "empty parameters counted",
};

static unsigned long counts[OUTCOME_COUNT];

static void print_counts(void)
{
    for (size_t i = 0; i < OUTCOME_COUNT; i++)
        fprintf(stderr, "%10lu %s\n", counts[i], names[i]);
}

static void count(enum outcome outcome)
{
    static bool is_asked;

    if (!is_asked && getenv("HEAD_COUNTS"))
        atexit(print_counts);
    is_asked = true;
    counts[outcome]++;
}

static bool has_message(const struct http_refusal *refusal, const char *part)
{
    return strstr(refusal->message, part);
}

static enum outcome why_refused_only_now(const struct http_refusal *now)
{
    if (now->status == 404)
        return PATH_NAMES;
    if (has_message(now, "Host is malformed"))
        return HOST_MALFORMED;
    if (has_message(now, "Sec-WebSocket-Key is given twice") ||
        has_message(now, "Sec-WebSocket-Version is given twice"))
        return ONCE_MORE;
    if (has_message(now, "more than 4 times"))
        return LIST_TOO_LONG;
    if (has_message(now, "a GET request has no body") ||
        has_message(now, "a WebSocket handshake has no body") || now->status == 411)
        return BODY_MISPLACED;
    must(has_message(now, "too many parameters"));
    return PARAMETERS_COUNTED;
}

/* What the first of them to refuse says: the first fault in the order of the bytes, so the other
 * can only have stopped before. */
static enum outcome how_both_refuse(const struct http_refusal *before,
                                    const struct http_refusal *now)
{
    if (before->status == now->status && strcmp(before->message, now->message) == 0 &&
        strcmp(before->code, now->code) == 0 && strcmp(before->param, now->param) == 0)
        return BOTH_REFUSE_ALIKE;
    if (before->status == 400 && has_message(before, "the query has too many") &&
        now->status == 400 && has_message(now, "the request target holds"))
        return FAULT_BESIDE;
    if (strcmp(before->code, "bad_protocol") == 0)
        return BODY_MISPLACED;
    return why_refused_only_now(now);
}

/* --- both accept --- */

struct line {
    struct sl_slice name, value;
};

/* Of the rewritten head: "Name: value\r\n", nothing odd in it. */
static bool next_line(struct sl_slice *rest, struct line *ret_line)
{
    char *end = memmem(rest->data, rest->size, "\r\n", 2), *colon;

    if (end == rest->data)
        return false;
    colon = memchr(rest->data, ':', (size_t)(end - rest->data));
    must(colon && colon[1] == ' ');
    ret_line->name = sl_slice(rest->data, (size_t)(colon - rest->data));
    ret_line->value = sl_slice(colon + 2, (size_t)(end - colon) - 2);
    *rest = sl_slice_from(*rest, (size_t)(end - rest->data) + 2);
    return true;
}

/* What it would make of our query. */
static void append_query(struct sl_slice query, struct buffer *out)
{
    while (query.size > 0 && query.data[query.size - 1] == '&')
        query.size--;
    if (query.size > 0)
        buffer_append_char(out, '?');
    for (size_t i = 0; i < query.size; i++) {
        if (query.data[i] == ';')
            buffer_append_str(out, "%3B");
        else
            buffer_append_char(out, query.data[i]);
    }
}

static void compare_request_line(struct sl_slice line, const struct http_request *request)
{
    static const char *const methods[] = {
        [HTTP_GET] = "GET",     [HTTP_HEAD] = "HEAD",     [HTTP_POST] = "POST",
        [HTTP_PUT] = "PUT",     [HTTP_DELETE] = "DELETE", [HTTP_OPTIONS] = "OPTIONS",
        [HTTP_PATCH] = "PATCH",
    };
    struct buffer expected = BUFFER_INIT;

    buffer_append_format(&expected, "%s %.*s", methods[request->method],
                         SL_SLICE_ARG(request->path));
    append_query(request->query, &expected);
    buffer_append_str(&expected, request->is_http_1_0 ? " HTTP/1.0" : " HTTP/1.1");
    must(sl_slice_equal(line, buffer_slice(&expected)));
    buffer_done(&expected);
}

/* Which field of the new reader should have this line's value; NULL: none. */
static const struct sl_slice *field_of(const struct http_head *read, struct sl_slice name,
                                       unsigned nth)
{
    const struct {
        const char *name;
        const struct sl_slice *field;
        bool is_list, is_first;
    } fields[] = {
        {"Accept", &read->request.accept.lines[nth % HTTP_LIST_LINES], true, false},
        {"Accept-Encoding", &read->request.accept_encoding, false, true},
        {"Authorization", &read->request.authorization, false, false},
        {"Content-Type", &read->request.content_type, false, false},
        {"Host", &read->request.host, false, false},
        {"Idempotency-Key", &read->request.idempotency_key, false, false},
        {"If-None-Match", &read->request.if_none_match, false, true},
        {"Last-Event-ID", &read->request.last_event_id, false, false},
        {"Origin", &read->request.origin, false, false},
        {"Sec-WebSocket-Extensions", &read->websocket_extensions.lines[nth % HTTP_LIST_LINES], true,
         false},
        {"Sec-WebSocket-Key", &read->websocket_key, false, false},
        {"Sec-WebSocket-Version", &read->websocket_version, false, false},
    };

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (!http_token_is(name, fields[i].name))
            continue;
        must(nth == 0 || fields[i].is_list || fields[i].is_first);
        return fields[i].is_first && nth > 0 ? NULL : fields[i].field;
    }
    return NULL;
}

/* How many lines of this name with a value stand before `line`. */
static unsigned lines_before(struct sl_slice lines, const struct line *line)
{
    struct line other;
    unsigned nth = 0;

    while (next_line(&lines, &other) && other.name.data != line->name.data)
        nth += other.value.size > 0 && other.name.size == line->name.size &&
               strncasecmp(other.name.data, line->name.data, line->name.size) == 0;
    return nth;
}

/* Ours and all tokens but the first, which has a header of its own. */
static void compare_protocols(struct sl_slice list, struct sl_slice kept, struct sl_slice token)
{
    struct buffer expected = BUFFER_INIT;
    struct sl_slice first = SL_SLICE_NONE;

    while (list.size > 0) {
        struct sl_slice protocol = http_next_element(&list, ',');
        bool is_token = sl_slice_starts_with(protocol, SL_SLICE("bearer."));

        if (is_token && !first.data) {
            first = sl_slice_from(protocol, strlen("bearer."));
        } else if (is_token || sl_slice_is(protocol, "sluice.v1")) {
            buffer_append_str(&expected, expected.size ? ", " : "");
            buffer_append_slice(&expected, protocol);
        }
    }
    must(sl_slice_equal(kept, buffer_slice(&expected)));
    must(!!first.data == !!token.data && sl_slice_equal(first, token));
    buffer_done(&expected);
}

static enum outcome compare_fields(struct sl_slice rewritten, const struct request_head *facts,
                                   const struct http_head *read)
{
    char *end = memmem(rewritten.data, rewritten.size, "\r\n", 2);
    struct sl_slice lines = sl_slice_from(rewritten, (size_t)(end - rewritten.data) + 2);
    struct sl_slice protocols = SL_SLICE_NONE, token = SL_SLICE_NONE, rest = lines;
    bool is_upgrade = false;
    struct line line;

    compare_request_line(sl_slice(rewritten.data, (size_t)(end - rewritten.data)), &read->request);
    must(facts->is_http_1_0 == read->request.is_http_1_0);
    must(facts->body_size == read->body_size);
    while (next_line(&rest, &line)) {
        const struct sl_slice *field =
            line.value.size ? field_of(read, line.name, lines_before(lines, &line)) : NULL;

        must(!field || sl_slice_equal(*field, line.value));
        is_upgrade = is_upgrade || http_token_is(line.name, "upgrade");
        if (http_token_is(line.name, "Sec-WebSocket-Protocol"))
            protocols = line.value;
        else if (http_token_is(line.name, "x-sluice-protocol-token"))
            token = line.value;
    }
    compare_protocols(read->request.protocols, protocols, token);
    must(!is_upgrade || read->request.is_upgrade);
    if (is_upgrade == read->request.is_upgrade && facts->expects_continue == read->expects_continue)
        return BOTH_ACCEPT;
    return LISTS_ARE_LISTS;
}

void head_before_compare(struct sl_slice input, struct sl_slice head, const struct http_head *read,
                         const struct http_refusal *refusal, size_t max_body_bytes)
{
    size_t size = request_head_end(input);
    struct buffer rewritten = BUFFER_INIT;
    struct http_refusal refusal_before;
    struct request_head facts;

    must(size == 0 || size >= head.size);
    if (size == 0) {
        must(!read);
        count(BARE_LF_AT_ONCE);
        return;
    }
    if (request_head_rewrite(sl_slice(input.data, size), max_body_bytes, &rewritten, &facts,
                             &refusal_before) == 0) {
        count(read ? compare_fields(buffer_slice(&rewritten), &facts, read)
                   : why_refused_only_now(refusal));
    } else if (read) {
        must(strcmp(refusal_before.code, "bad_protocol") == 0 ||
             has_message(&refusal_before, "too many parameters"));
        count(strcmp(refusal_before.code, "bad_protocol") == 0 ? PROTOCOLS_LATER
                                                               : PARAMETERS_COUNTED);
    } else {
        count(how_both_refuse(&refusal_before, refusal));
    }
    buffer_done(&rewritten);
}
