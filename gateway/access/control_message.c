/* control_message.c - prints and reads the JSON of messages.
 *
 * jansson parses; then each member is copied into a fixed-size field. If a member is missing, has
 * another type, is too long or is unknown, the whole message is refused. Numbers are below 2^63. A
 * message is limited to CONTROL_MESSAGE_MAX bytes, its rows to CONTROL_ROWS_MAX. */
#include "gateway/access/control_message.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define VERSION 1

static const char *const operations[CONTROL_OPERATION_COUNT] = {"list", "end", "renew", "rules"};
static const char *const results[CONTROL_RESULT_COUNT] = {
    "done",           "no_such_connection", "another_subject",
    "narrower_scope", "narrower_limits",    "token_revoked"};

static const struct {
    const char *name;
    enum use use;
} uses[] = {
#define USE(symbol, name) {name, USE_##symbol},
#include "src/model/token.def"
};

/* --- printing ------------------------------------------------------------------------------ */

static void print_text(struct buffer *json, const char *name, const char *text)
{
    buffer_append_format(json, ",\"%s\":", name);
    buffer_append_json_string(json, sl_slice_str(text));
}

static void print_number(struct buffer *json, const char *name, uint64_t number)
{
    buffer_append_format(json, ",\"%s\":%" PRIu64, name, number);
}

static void print_head(struct buffer *json, const char *kind, uint64_t number, const char *from)
{
    buffer_append_format(json, "{\"v\":%d,\"kind\":\"%s\",\"number\":\"%016" PRIx64 "\"", VERSION,
                         kind, number);
    print_text(json, "from", from);
}

static void print_token(const struct token *token, struct buffer *json)
{
    const struct sl_filter_limits *limits = &token->limits;

    buffer_append_format(json, ",\"token\":{\"scopes\":%u", token->scopes);
    print_text(json, "subject", token->subject);
    print_text(json, "holder", token->holder);
    print_text(json, "jti", token->jti);
    print_text(json, "kid", token->kid);
    if (token->key_number > 0)
        print_number(json, "key", token->key_number);
    print_text(json, "issuer", token->issuer);
    print_number(json, "issued_ms", token->issued_ms);
    print_number(json, "expires_ms", token->expires_ms);
    print_number(json, "track", limits->track);
    print_number(json, "follow", limits->follow);
    print_number(json, "boxes", limits->boxes);
    print_number(json, "rules", limits->rules);
    print_number(json, "sample_ppm", limits->sample_ppm);
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
        print_number(json, uses[i].name, token->uses[uses[i].use]);
    buffer_append_char(json, '}');
}

void control_question_print(const struct control_question *question, struct buffer *ret_json)
{
    print_head(ret_json, "question", question->number, question->from);
    print_text(ret_json, "op", operations[question->operation]);
    print_text(ret_json, "holder", question->holder);
    print_text(ret_json, "id", question->id);
    print_text(ret_json, "after", question->after);
    if (question->operation == CONTROL_RENEW)
        print_token(&question->token, ret_json);
    if (question->operation == CONTROL_RULES)
        print_number(ret_json, "version", question->version);
    buffer_append_char(ret_json, '}');
}

static void print_row(const struct control_row *row, struct buffer *json)
{
    buffer_append_format(json, "{\"stream\":%u,\"format\":%u", (unsigned)row->stream,
                         (unsigned)row->format);
    print_text(json, "id", row->id);
    print_text(json, "subject", row->subject);
    print_text(json, "address", row->address);
    if (row->path[0]) /* programs without dialects refuse this member */
        print_text(json, "path", row->path);
    print_number(json, "since_ms", row->since_ms);
    print_number(json, "expires_ms", row->expires_ms);
    print_number(json, "streams", row->streams);
    print_number(json, "filters", row->filters);
    print_number(json, "filter_bytes", row->filter_bytes);
    print_number(json, "lag_ms", row->lag_ms);
    print_number(json, "events", row->events);
    print_number(json, "bytes", row->bytes);
    buffer_append_char(json, '}');
}

void control_answer_print(const struct control_answer *answer, struct buffer *ret_json)
{
    print_head(ret_json, "answer", answer->number, answer->from);
    print_number(ret_json, "workers", answer->workers);
    print_text(ret_json, "result", results[answer->result]);
    print_number(ret_json, "matched", answer->matched);
    buffer_append_str(ret_json, ",\"rows\":[");
    for (size_t i = 0; i < answer->row_count; i++) {
        if (i > 0)
            buffer_append_char(ret_json, ',');
        print_row(&answer->rows[i], ret_json);
    }
    buffer_append_str(ret_json, "]}");
}

/* --- reading ------------------------------------------------------------------------------- */

/* Members are taken one by one; `taken` is compared with their number at the end. */
struct members {
    const json_t *object;
    size_t taken;
    bool failed;
};

static const json_t *take(struct members *members, const char *name)
{
    const json_t *value = json_object_get(members->object, name);

    members->taken++;
    members->failed = members->failed || !value;
    return value;
}

static void take_text(struct members *members, const char *name, char *ret_text, size_t room)
{
    const json_t *value = take(members, name);

    if (json_is_string(value) && json_string_length(value) < room)
        memcpy(ret_text, json_string_value(value), json_string_length(value) + 1);
    else
        members->failed = true;
}

static void take_number_to(struct members *members, const char *name, uint64_t most,
                           uint64_t *ret_number)
{
    const json_t *value = take(members, name);
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;

    if (number < 0 || (uint64_t)number > most)
        members->failed = true;
    else
        *ret_number = (uint64_t)number;
}

static void take_number(struct members *members, const char *name, uint64_t *ret_number)
{
    take_number_to(members, name, INT64_MAX, ret_number);
}

static unsigned take_small(struct members *members, const char *name, unsigned most)
{
    uint64_t number = 0;

    take_number_to(members, name, most, &number);
    return (unsigned)number;
}

static unsigned take_word(struct members *members, const char *name, const char *const *words,
                          unsigned count)
{
    const json_t *value = take(members, name);

    for (unsigned i = 0; json_is_string(value) && i < count; i++) {
        if (strcmp(json_string_value(value), words[i]) == 0)
            return i;
    }
    members->failed = true;
    return 0;
}

/* Sets an empty id if the member is empty and may be. */
static void take_id(struct members *members, const char *name, bool may_be_empty,
                    char ret_id[static CONNECTION_ID_SIZE])
{
    take_text(members, name, ret_id, CONNECTION_ID_SIZE);
    if (!members->failed && !(may_be_empty && !ret_id[0]) &&
        !connection_id_is_valid(sl_slice_str(ret_id)))
        members->failed = true;
}

static int end(const struct members *members)
{
    bool is_whole = !members->failed && members->taken == json_object_size(members->object);

    return is_whole ? 0 : -EBADMSG;
}

static void take_head(struct members *members, bool *ret_is_answer, uint64_t *ret_number,
                      char ret_from[static WORKER_NAME_SIZE])
{
    static const char *const kinds[] = {"question", "answer"};
    char digits[17];

    if (take_small(members, "v", VERSION) != VERSION)
        members->failed = true;
    *ret_is_answer = take_word(members, "kind", kinds, 2) == 1;
    take_text(members, "number", digits, sizeof(digits));
    take_text(members, "from", ret_from, WORKER_NAME_SIZE);
    if (members->failed || strlen(digits) != 16 || strspn(digits, "0123456789abcdef") != 16 ||
        !worker_name_is_valid(sl_slice_str(ret_from)))
        members->failed = true;
    else
        *ret_number = strtoull(digits, NULL, 16);
}

static int read_token(const json_t *object, struct token *ret_token)
{
    struct members members = {.object = object};
    struct token token = {.bad_claim = NULL};

    token.scopes = take_small(&members, "scopes", UINT16_MAX);
    take_text(&members, "subject", token.subject, sizeof(token.subject));
    take_text(&members, "holder", token.holder, sizeof(token.holder));
    take_text(&members, "jti", token.jti, sizeof(token.jti));
    take_text(&members, "kid", token.kid, sizeof(token.kid));
    if (json_object_get(object, "key"))
        take_number(&members, "key", &token.key_number);
    take_text(&members, "issuer", token.issuer, sizeof(token.issuer));
    take_number(&members, "issued_ms", &token.issued_ms);
    take_number(&members, "expires_ms", &token.expires_ms);
    token.limits.track = take_small(&members, "track", UINT32_MAX);
    token.limits.follow = take_small(&members, "follow", UINT32_MAX);
    token.limits.boxes = take_small(&members, "boxes", UINT32_MAX);
    token.limits.rules = take_small(&members, "rules", UINT32_MAX);
    token.limits.sample_ppm = take_small(&members, "sample_ppm", 1000000);
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
        take_number(&members, uses[i].name, &token.uses[uses[i].use]);
    *ret_token = token;
    return end(&members);
}

static int read_question(struct members *members, struct control_question *question)
{
    question->operation =
        (enum control_operation)take_word(members, "op", operations, CONTROL_OPERATION_COUNT);
    take_text(members, "holder", question->holder, sizeof(question->holder));
    take_id(members, "id", question->operation != CONTROL_RENEW, question->id);
    take_id(members, "after", true, question->after);
    if (!members->failed && question->operation == CONTROL_RENEW &&
        read_token(take(members, "token"), &question->token) < 0)
        members->failed = true;
    if (!members->failed && question->operation == CONTROL_RULES)
        take_number(members, "version", &question->version);
    /* One message must not end all connections. */
    if (question->operation == CONTROL_END && !question->id[0] && !question->holder[0])
        members->failed = true;
    return end(members);
}

static int read_row(const json_t *object, struct control_row *row)
{
    struct members members = {.object = object};

    row->stream = (enum stream_kind)take_small(&members, "stream", STREAM_MANY);
    row->format = (enum stream_format)take_small(&members, "format", FORMAT_COUNT - 1);
    take_id(&members, "id", false, row->id);
    take_text(&members, "subject", row->subject, sizeof(row->subject));
    take_text(&members, "address", row->address, sizeof(row->address));
    if (json_object_get(object, "path"))
        take_text(&members, "path", row->path, sizeof(row->path));
    take_number(&members, "since_ms", &row->since_ms);
    take_number(&members, "expires_ms", &row->expires_ms);
    take_number(&members, "streams", &row->streams);
    take_number(&members, "filters", &row->filters);
    take_number(&members, "filter_bytes", &row->filter_bytes);
    take_number(&members, "lag_ms", &row->lag_ms);
    take_number(&members, "events", &row->events);
    take_number(&members, "bytes", &row->bytes);
    return end(&members);
}

static int read_rows(const json_t *list, struct control_answer *answer)
{
    size_t count = json_array_size(list);

    if (!json_is_array(list) || count > CONTROL_ROWS_MAX)
        return -EBADMSG;
    if (count > 0 && control_answer_make_room(answer) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++) {
        struct control_row *row = &answer->rows[i];

        *row = (struct control_row){.since_ms = 0};
        if (read_row(json_array_get(list, i), row) < 0 ||
            (i > 0 && strcmp(row->id, row[-1].id) <= 0))
            return -EBADMSG;
        answer->row_count++;
    }
    return 0;
}

static int read_answer(struct members *members, struct control_answer *answer)
{
    int r;

    take_number(members, "workers", &answer->workers);
    answer->result =
        (enum control_result)take_word(members, "result", results, CONTROL_RESULT_COUNT);
    take_number(members, "matched", &answer->matched);
    r = read_rows(take(members, "rows"), answer);
    return r < 0 ? r : end(members);
}

static int read_object(const json_t *object, struct control_message *message)
{
    struct members members = {.object = object};
    char from[WORKER_NAME_SIZE] = "";
    uint64_t number = 0;

    take_head(&members, &message->is_answer, &number, from);
    if (members.failed)
        return -EBADMSG;
    message->question.number = message->answer.number = number;
    memcpy(message->question.from, from, sizeof(from));
    memcpy(message->answer.from, from, sizeof(from));
    return message->is_answer ? read_answer(&members, &message->answer)
                              : read_question(&members, &message->question);
}

int control_message_read(struct sl_slice text, struct control_message *ret_message)
{
    struct control_message message = {.is_answer = false};
    json_t *object;
    int r;

    if (text.size > CONTROL_MESSAGE_MAX || memchr(text.data, '\0', text.size))
        return -EBADMSG;
    object = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
    if (!object)
        return -EBADMSG;
    r = json_is_object(object) ? read_object(object, &message) : -EBADMSG;
    json_decref(object);
    if (r < 0)
        control_message_done(&message);
    else
        *ret_message = message;
    return r;
}

void control_message_done(struct control_message *message)
{
    control_answer_done(&message->answer);
}

/* --- rows ---------------------------------------------------------------------------------- */

int control_answer_make_room(struct control_answer *answer)
{
    if (!answer->rows)
        answer->rows = mem_alloc(CONTROL_ROWS_MAX * sizeof(*answer->rows));
    return answer->rows ? 0 : -ENOMEM;
}

void control_answer_done(struct control_answer *answer)
{
    mem_free(answer->rows);
    answer->rows = NULL;
    answer->row_count = 0;
}

/* The number of rows with lower ids. */
static size_t place_of(const struct control_answer *answer, const char *id)
{
    size_t low = 0, high = answer->row_count;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (strcmp(answer->rows[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void control_answer_add(struct control_answer *answer, const struct control_row *row)
{
    size_t place = place_of(answer, row->id);

    if (place == CONTROL_ROWS_MAX)
        return;
    if (place < answer->row_count && strcmp(answer->rows[place].id, row->id) == 0)
        return;
    if (answer->row_count < CONTROL_ROWS_MAX)
        answer->row_count++;
    memmove(&answer->rows[place + 1], &answer->rows[place],
            (answer->row_count - 1 - place) * sizeof(*row));
    answer->rows[place] = *row;
}
