/* event_fields.c - converts names of members to bits, and back.
 *
 * No name may be repeated, nor may a member of an object be given in addition to the object, so a
 * list has fewer names than the table. */
#include "gateway/front/event_fields.h"

#include <errno.h>
#include <stdbool.h>

#include "base/utf8.h"
#include "gateway/http/http.h"

static const char *const names[FIELD_COUNT] = {
    [FIELD_ID] = "id",
    [FIELD_TYPE] = "type",
    [FIELD_AT] = "at",
    [FIELD_POST_ID] = "post.id",
    [FIELD_TEXT] = "text",
    [FIELD_LANG] = "lang",
    [FIELD_CREATED_AT] = "created_at",
    [FIELD_URLS] = "urls",
    [FIELD_MEDIA] = "media",
    [FIELD_SOURCE] = "source",
    [FIELD_AUDIENCE] = "audience",
    [FIELD_USER] = "user",
    [FIELD_USER_ID] = "user.id",
    [FIELD_USER_LOGIN] = "user.login",
    [FIELD_USER_NAME] = "user.name",
    [FIELD_TARGET] = "target",
    [FIELD_TARGET_ID] = "target.id",
    [FIELD_TARGET_LOGIN] = "target.login",
    [FIELD_TARGET_NAME] = "target.name",
    [FIELD_GEO] = "geo",
    [FIELD_GEO_LON] = "geo.lon",
    [FIELD_GEO_LAT] = "geo.lat",
    [FIELD_PLACE] = "place",
    [FIELD_PLACE_NAME] = "place.name",
    [FIELD_PLACE_COUNTRY] = "place.country",
    [FIELD_PLACE_BBOX] = "place.bbox",
    [FIELD_REPLY_TO] = "reply_to",
    [FIELD_REPLY_TO_POST] = "reply_to.post",
    [FIELD_REPLY_TO_USER] = "reply_to.user",
    [FIELD_REPLY_TO_LOGIN] = "reply_to.login",
    [FIELD_REPOST_OF] = "repost_of",
    [FIELD_REPOST_OF_POST] = "repost_of.post",
    [FIELD_REPOST_OF_USER] = "repost_of.user",
    [FIELD_REPOST_OF_LOGIN] = "repost_of.login",
    [FIELD_QUOTE_OF] = "quote_of",
    [FIELD_QUOTE_OF_POST] = "quote_of.post",
    [FIELD_QUOTE_OF_USER] = "quote_of.user",
    [FIELD_QUOTE_OF_LOGIN] = "quote_of.login",
};

#define BIT(field) (UINT64_C(1) << FIELD_##field)

static const struct {
    const char *name;
    uint64_t fields;
} sets[] = {
    {"full", EVENT_FIELDS_FULL},
    {"short", EVENT_FIELDS_SHORT},
    {"ids", BIT(ID) | BIT(TYPE) | BIT(USER_ID) | BIT(TARGET_ID) | BIT(REPLY_TO_POST) |
                BIT(REPLY_TO_USER) | BIT(REPOST_OF_POST) | BIT(REPOST_OF_USER) |
                BIT(QUOTE_OF_POST) | BIT(QUOTE_OF_USER)},
};

enum { SET_COUNT = sizeof(sets) / sizeof(sets[0]), SHOWN_BYTES = 64 };

static int find_set(struct sl_slice name)
{
    for (int i = 0; i < SET_COUNT; i++) {
        if (sl_slice_is(name, sets[i].name))
            return i;
    }
    return -1;
}

static int find_field(struct sl_slice name)
{
    for (int field = 0; field < FIELD_COUNT; field++) {
        if (sl_slice_is(name, names[field]))
            return field;
    }
    return -1;
}

/* Whether `part` is a member of the object `whole`. */
static bool is_part(const char *part, const char *whole)
{
    size_t size = strlen(whole);

    return strncmp(part, whole, size) == 0 && part[size] == '.';
}

static int refuse_unknown(struct sl_slice name, struct failure *reterr)
{
    struct sl_slice post = SL_SLICE("post."), rest = name, shown = utf8_cut(name, SHOWN_BYTES);

    if (name.size == 0)
        return failure_set(reterr, -EINVAL, "a name is empty");
    if (find_set(name) >= 0)
        return failure_set(reterr, -EINVAL, "'%.*s' stands alone", SL_SLICE_ARG(name));
    if (sl_slice_starts_with(name, post))
        rest = sl_slice_from(name, post.size);
    if (rest.size < name.size && find_field(rest) >= 0)
        return failure_set(reterr, -EINVAL, "there is no field '%.*s'; it is called %.*s",
                           SL_SLICE_ARG(shown), SL_SLICE_ARG(rest));
    return failure_set(reterr, -EINVAL, "there is no field '%.*s'", SL_SLICE_ARG(shown));
}

/* Checks that the earlier names do not include `field`, or a part of it. */
static int check_new(uint64_t fields, int field, struct failure *reterr)
{
    if (fields & event_field_bit((enum event_field)field))
        return failure_set(reterr, -EINVAL, "'%s' is given twice", names[field]);
    for (int other = 0; other < FIELD_COUNT; other++) {
        if (!(fields & event_field_bit((enum event_field)other)))
            continue;
        if (is_part(names[field], names[other]))
            return failure_set(reterr, -EINVAL, "'%s' is part of %s, which is also given",
                               names[field], names[other]);
        if (is_part(names[other], names[field]))
            return failure_set(reterr, -EINVAL, "'%s' is part of %s, which is also given",
                               names[other], names[field]);
    }
    return 0;
}

int event_fields_parse(struct sl_slice text, uint64_t *ret_fields, struct failure *reterr)
{
    struct sl_slice rest = text;
    uint64_t fields = 0;
    bool is_last = false;
    int set = find_set(http_trim(text)), field, r;

    if (set >= 0) {
        *ret_fields = sets[set].fields;
        return 0;
    }
    while (!is_last) {
        struct sl_slice name;

        is_last = !memchr(rest.data, ',', rest.size);
        name = http_next_element(&rest, ',');
        field = find_field(name);
        if (field < 0)
            return refuse_unknown(name, reterr);
        r = check_new(fields, field, reterr);
        if (r < 0)
            return r;
        fields |= event_field_bit((enum event_field)field);
    }
    *ret_fields = fields | BIT(ID) | BIT(TYPE);
    return 0;
}

void event_fields_print(uint64_t fields, struct buffer *ret_text)
{
    const char *separator = "";

    for (int i = 0; i < SET_COUNT; i++) {
        if (fields == sets[i].fields) {
            buffer_append_str(ret_text, sets[i].name);
            return;
        }
    }
    for (int field = 0; field < FIELD_COUNT; field++) {
        if (!(fields & event_field_bit((enum event_field)field)))
            continue;
        buffer_append_str(ret_text, separator);
        buffer_append_str(ret_text, names[field]);
        separator = ",";
    }
}
