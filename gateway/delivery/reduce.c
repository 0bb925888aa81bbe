/* reduce.c - finds the members of an object, then copies those that are wanted.
 *
 * The decoder has checked the text, so it is only cut here: strings and brackets are skipped, and
 * nothing is converted. If a member is repeated, the last one counts, as everywhere, also if its
 * key is written with escapes. A byte is read once for each object around it that the table knows,
 * which are three at most. */
#include "gateway/delivery/reduce.h"

#include <errno.h>
#include <string.h>

#include "gateway/front/event_fields.h"

enum object {
    OBJECT_NONE, /* not an object, or one that is copied or removed as a whole */
    OBJECT_EVENT,
    OBJECT_POST,
    OBJECT_USER,
    OBJECT_TARGET,
    OBJECT_GEO,
    OBJECT_PLACE,
    OBJECT_REPLY_TO,
    OBJECT_REPOST_OF,
    OBJECT_QUOTE_OF,
    OBJECT_COUNT
};

/* Values of `enum event_field`, and: */
enum {
    FIELD_ALWAYS = FIELD_COUNT,
    FIELD_NEVER /* not by itself, but some of its members may be wanted */
};

enum { MAX_MEMBERS = 16, NAME_SIZE = 16, NO_ROW = MAX_MEMBERS };
enum { EVENT_ROW_ID, EVENT_ROW_AT }; /* in OBJECT_EVENT */

struct row {
    const char *name;
    uint8_t field, opens;
};

#define REFERENCE(field)                                                                           \
    {                                                                                              \
        {"post", FIELD_##field##_POST, OBJECT_NONE}, {"user", FIELD_##field##_USER, OBJECT_NONE},  \
        {                                                                                          \
            "login", FIELD_##field##_LOGIN, OBJECT_NONE                                            \
        }                                                                                          \
    }
#define PERSON(field)                                                                              \
    {                                                                                              \
        {"id", FIELD_##field##_ID, OBJECT_NONE}, {"login", FIELD_##field##_LOGIN, OBJECT_NONE},    \
        {                                                                                          \
            "name", FIELD_##field##_NAME, OBJECT_NONE                                              \
        }                                                                                          \
    }

static const struct row rows[OBJECT_COUNT][MAX_MEMBERS] = {
    [OBJECT_EVENT] = {[EVENT_ROW_ID] = {"id", FIELD_ALWAYS, OBJECT_NONE},
                      [EVENT_ROW_AT] = {"at", FIELD_AT, OBJECT_NONE},
                      {"type", FIELD_ALWAYS, OBJECT_NONE},
                      {"post", FIELD_NEVER, OBJECT_POST},
                      {"user", FIELD_USER, OBJECT_USER},
                      {"target", FIELD_TARGET, OBJECT_TARGET},
                      {"change", FIELD_ALWAYS, OBJECT_NONE},
                      {"late", FIELD_ALWAYS, OBJECT_NONE},
                      {"cursor", FIELD_ALWAYS, OBJECT_NONE}},
    [OBJECT_POST] = {{"id", FIELD_POST_ID, OBJECT_NONE},
                     {"user", FIELD_USER, OBJECT_USER},
                     {"text", FIELD_TEXT, OBJECT_NONE},
                     {"lang", FIELD_LANG, OBJECT_NONE},
                     {"created_at", FIELD_CREATED_AT, OBJECT_NONE},
                     {"geo", FIELD_GEO, OBJECT_GEO},
                     {"place", FIELD_PLACE, OBJECT_PLACE},
                     {"reply_to", FIELD_REPLY_TO, OBJECT_REPLY_TO},
                     {"repost_of", FIELD_REPOST_OF, OBJECT_REPOST_OF},
                     {"quote_of", FIELD_QUOTE_OF, OBJECT_QUOTE_OF},
                     {"urls", FIELD_URLS, OBJECT_NONE},
                     {"media", FIELD_MEDIA, OBJECT_NONE},
                     {"source", FIELD_SOURCE, OBJECT_NONE},
                     {"audience", FIELD_AUDIENCE, OBJECT_NONE}},
    [OBJECT_USER] = PERSON(USER),
    [OBJECT_TARGET] = PERSON(TARGET),
    [OBJECT_GEO] = {{"lon", FIELD_GEO_LON, OBJECT_NONE}, {"lat", FIELD_GEO_LAT, OBJECT_NONE}},
    [OBJECT_PLACE] = {{"name", FIELD_PLACE_NAME, OBJECT_NONE},
                      {"country", FIELD_PLACE_COUNTRY, OBJECT_NONE},
                      {"bbox", FIELD_PLACE_BBOX, OBJECT_NONE}},
    [OBJECT_REPLY_TO] = REFERENCE(REPLY_TO),
    [OBJECT_REPOST_OF] = REFERENCE(REPOST_OF),
    [OBJECT_QUOTE_OF] = REFERENCE(QUOTE_OF),
};

struct member {
    struct sl_slice key, value; /* of the key, the text between the quotes */
    uint8_t row;                /* NO_ROW: not in the table */
    bool is_repeated;           /* another one with this name follows */
};

struct reduction {
    uint64_t fields;
    struct buffer *members; /* of the open objects, the innermost last */
    struct buffer *json;
    struct sl_slice id, at; /* of the event */
};

/* --- parsing --- */

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n'))
        at++;
    return at;
}

/* `at` is the opening quote. Returns the position after the closing quote; NULL: there is none. */
static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end; at++) {
        if (*at == '"')
            return at + 1;
        if (*at == '\\')
            at++;
    }
    return NULL;
}

static const char *skip_nested(const char *at, const char *end)
{
    size_t depth = 0;

    while (at && at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
            continue;
        }
        if (*at == '{' || *at == '[')
            depth++;
        else if ((*at == '}' || *at == ']') && --depth == 0)
            return at + 1;
        at++;
    }
    return NULL;
}

static bool ends_scalar(char c)
{
    return c == ',' || c == '}' || c == ']' || c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* NULL: there is none. */
static const char *skip_value(const char *at, const char *end)
{
    const char *begin = at;

    if (at == end)
        return NULL;
    if (*at == '"')
        return skip_string(at, end);
    if (*at == '{' || *at == '[')
        return skip_nested(at, end);
    while (at < end && !ends_scalar(*at))
        at++;
    return at > begin ? at : NULL;
}

/* The member at `at`. Returns the position after it and the following white space; NULL: there is
 * none. */
static const char *read_member(const char *at, const char *end, struct member *ret_member)
{
    const char *behind = at < end && *at == '"' ? skip_string(at, end) : NULL;

    if (!behind)
        return NULL;
    ret_member->key = sl_slice(at + 1, (size_t)(behind - at) - 2);
    at = skip_space(behind, end);
    if (at == end || *at != ':')
        return NULL;
    at = skip_space(at + 1, end);
    behind = skip_value(at, end);
    if (!behind)
        return NULL;
    ret_member->value = sl_slice(at, (size_t)(behind - at));
    return skip_space(behind, end);
}

/* ---- names ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The ASCII character of `\uXXXX` at the beginning of `text`; 0: there is none. */
static char read_escape(struct sl_slice text)
{
    int code = 0;

    if (text.size < 6 || text.data[1] != 'u')
        return '\0';
    for (int i = 2; i < 6; i++) {
        if (hex_digit(text.data[i]) < 0)
            return '\0';
        code = code * 16 + hex_digit(text.data[i]);
    }
    return code < 0x80 ? (char)code : '\0';
}

/* Unescapes a key, if it may be in the table: names in it need no other escapes. */
static struct sl_slice unescape(struct sl_slice key, char room[static NAME_SIZE])
{
    size_t size = 0;

    while (key.size > 0 && size < NAME_SIZE) {
        bool is_escape = key.data[0] == '\\';

        room[size] = is_escape ? read_escape(key) : key.data[0];
        if (!room[size++])
            return SL_SLICE_NONE;
        key = sl_slice_from(key, is_escape ? 6 : 1);
    }
    return key.size > 0 ? SL_SLICE_NONE : sl_slice(room, size);
}

static uint8_t find_row(enum object object, struct sl_slice key)
{
    char room[NAME_SIZE];

    if (memchr(key.data, '\\', key.size))
        key = unescape(key, room);
    for (uint8_t i = 0; i < MAX_MEMBERS && rows[object][i].name; i++) {
        if (sl_slice_is(key, rows[object][i].name))
            return i;
    }
    return NO_ROW;
}

/* --- selection --- */

static struct member *member_at(const struct reduction *reduction, size_t index)
{
    return (struct member *)(void *)reduction->members->data + index;
}

/* The value of the event's member with this index; -1: none. */
static struct sl_slice value_at(const struct reduction *reduction, int index)
{
    return index < 0 ? SL_SLICE_NONE : member_at(reduction, (size_t)index)->value;
}

/* Appends the members of the object to those of the objects around it; ret_last[row]: the last one
 * with this name, counted from the object's first; -1: none. 0; -EBADMSG; -ENOMEM. */
static int read_members(struct reduction *reduction, enum object object, struct sl_slice text,
                        int ret_last[static MAX_MEMBERS])
{
    size_t first = reduction->members->size / sizeof(struct member);
    const char *end = text.data + text.size, *at = skip_space(text.data + 1, end);

    for (int i = 0; i < MAX_MEMBERS; i++)
        ret_last[i] = -1;
    for (int count = 0; at < end && *at != '}'; count++) {
        struct member member = {0};

        at = read_member(at, end, &member);
        if (!at || at == end || (*at != ',' && *at != '}'))
            return -EBADMSG;
        member.row = find_row(object, member.key);
        buffer_append(reduction->members, &member, sizeof(member));
        if (reduction->members->failed)
            return -ENOMEM;
        if (member.row != NO_ROW) {
            if (ret_last[member.row] >= 0)
                member_at(reduction, first + (size_t)ret_last[member.row])->is_repeated = true;
            ret_last[member.row] = count;
        }
        if (*at == ',')
            at = skip_space(at + 1, end);
    }
    return at < end ? 0 : -EBADMSG;
}

/* Whether the post repeats here what the event contains, or what is the default. */
static bool is_said_twice(const struct reduction *reduction, uint8_t field, struct sl_slice value)
{
    switch (field) {
    case FIELD_POST_ID:
        return reduction->id.data && sl_slice_equal(value, reduction->id);
    case FIELD_CREATED_AT:
        return reduction->at.data && sl_slice_equal(value, reduction->at);
    case FIELD_AUDIENCE:
        return sl_slice_is(value, "\"public\"");
    default:
        return false;
    }
}

enum choice { LEAVE, TAKE, LOOK_INSIDE };

static enum choice choose(const struct reduction *reduction, enum object object,
                          const struct member *member)
{
    bool is_short = reduction->fields == EVENT_FIELDS_SHORT;
    const struct row *row = &rows[object][member->row];

    if (member->row == NO_ROW)
        return is_short ? TAKE : LEAVE;
    if (member->is_repeated)
        return LEAVE;
    if (is_short && row->opens == OBJECT_POST && member->value.data[0] == '{')
        return LOOK_INSIDE;
    if (is_short)
        return object == OBJECT_POST && is_said_twice(reduction, row->field, member->value) ? LEAVE
                                                                                            : TAKE;
    if (row->field == FIELD_ALWAYS)
        return TAKE;
    if (row->field < FIELD_COUNT && reduction->fields & event_field_bit(row->field))
        return TAKE;
    return row->opens != OBJECT_NONE && member->value.data[0] == '{' ? LOOK_INSIDE : LEAVE;
}

/* 1: something is left; 0: nothing is, and nothing was appended; -EBADMSG; -ENOMEM. */
static int reduce_object(struct reduction *reduction, enum object object, struct sl_slice text)
{
    struct buffer *members = reduction->members, *json = reduction->json;
    size_t first = members->size / sizeof(struct member), begin = json->size, count;
    int last[MAX_MEMBERS], r = read_members(reduction, object, text, last);

    if (r < 0)
        return r;
    count = members->size / sizeof(struct member) - first;
    if (object == OBJECT_EVENT) {
        reduction->id = value_at(reduction, last[EVENT_ROW_ID]);
        reduction->at = value_at(reduction, last[EVENT_ROW_AT]);
    }
    for (size_t i = 0; i < count; i++) {
        struct member member = *member_at(reduction, first + i);
        enum choice choice = choose(reduction, object, &member);
        size_t before = json->size;

        if (choice == LEAVE)
            continue;
        buffer_append_str(json, before == begin ? "{\"" : ",\"");
        buffer_append_slice(json, member.key);
        buffer_append_str(json, "\":");
        if (choice == TAKE) {
            buffer_append_slice(json, member.value);
            continue;
        }
        r = reduce_object(reduction, rows[object][member.row].opens, member.value);
        if (r < 0)
            return r;
        if (r == 0)
            json->size = before;
    }
    members->size = first * sizeof(struct member);
    if (json->size > begin)
        buffer_append_char(json, '}');
    return json->failed ? -ENOMEM : json->size > begin;
}

int reduce_json(struct sl_slice json, bool is_deletion, uint64_t fields, struct buffer *scratch,
                struct buffer *ret_json)
{
    struct reduction reduction = {.fields = fields, .members = scratch, .json = ret_json};
    int r;

    if (is_deletion && fields != EVENT_FIELDS_SHORT)
        reduction.fields |= event_field_bit(FIELD_POST_ID);
    if (json.size < 2 || json.data[0] != '{')
        return -EBADMSG;
    buffer_clear(scratch);
    r = reduce_object(&reduction, OBJECT_EVENT, json);
    return r < 0 ? r : 0;
}
