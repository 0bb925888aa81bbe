/* jetstream_selection.c - reads the parameters one by one, because some are repeated, and messages.
 *
 * Values for which we have no events are accepted, because clients ask for likes or foreign DIDs
 * together with others. Limits: JETSTREAM_WANTED_COLLECTIONS_MAX and JETSTREAM_WANTED_DIDS_MAX, and
 * those of a request and a message. */
#include "gateway/dialects/jetstream_selection.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "gateway/dialects/event_json.h"
#include "gateway/dialects/jetstream_form.h"
#include "gateway/dialects/jetstream_ids.h"
#include "gateway/http/form.h"

enum { NSID_MAX_BYTES = 317, NSID_PART_MAX_BYTES = 63, USER_MAX_BYTES = 64, SHOWN_MAX = 80 };

void jetstream_selection_done(struct jetstream_selection *selection)
{
    buffer_done(&selection->users);
}

/* The number of bytes of a client's text that are shown in a message. */
static int shown(struct sl_slice text)
{
    return text.size < SHOWN_MAX ? (int)text.size : SHOWN_MAX;
}

/* --- collections ----------------------------------------------------------------------------- */

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A part of the domain has letters, digits, and hyphens inside; the name, which is the last part,
 * has no hyphens. */
static bool is_nsid_part(struct sl_slice part, bool is_first, bool is_last)
{
    if (part.size == 0 || part.size > NSID_PART_MAX_BYTES)
        return false;
    if ((is_first || is_last) && !is_letter(part.data[0]))
        return false;
    for (size_t i = 0; i < part.size; i++) {
        bool is_inside = i > 0 && i + 1 < part.size;

        if (!is_letter(part.data[i]) && !is_digit(part.data[i]) &&
            !(part.data[i] == '-' && is_inside && !is_last))
            return false;
    }
    return true;
}

/* https://atproto.com/specs/nsid: at least three parts. */
static bool is_nsid(struct sl_slice text)
{
    size_t count = 0, from = 0;

    if (text.size > NSID_MAX_BYTES)
        return false;
    for (size_t i = 0; i <= text.size; i++) {
        bool is_end = i == text.size;

        if (!is_end && text.data[i] != '.')
            continue;
        if (!is_nsid_part(sl_slice(text.data + from, i - from), count == 0, is_end))
            return false;
        count++;
        from = i + 1;
    }
    return count >= 3;
}

/* As in Jetstream, the text before `.*` is not checked. */
static int want_collection(struct jetstream_selection *selection, struct sl_slice text,
                           struct http_refusal *refusal)
{
    bool is_prefix = text.size >= 2 && memcmp(text.data + text.size - 2, ".*", 2) == 0;
    struct sl_slice prefix = sl_slice(text.data, is_prefix ? text.size - 1 : text.size);

    if (!is_prefix && !is_nsid(text))
        return http_refuse(refusal, 400, "bad_collection", "wantedCollections",
                           "invalid collection: %.*s", shown(text), text.data);
    if (++selection->collection_count > JETSTREAM_WANTED_COLLECTIONS_MAX)
        return http_refuse(refusal, 400, "too_many_collections", "wantedCollections",
                           "too many wanted collections: > %d", JETSTREAM_WANTED_COLLECTIONS_MAX);
    selection->has_collections = true;
    for (unsigned i = 0; i < JETSTREAM_COLLECTIONS; i++) {
        struct sl_slice name = sl_slice_str(jetstream_collection_name(i));

        if (is_prefix ? sl_slice_starts_with(name, prefix) : sl_slice_equal(name, text))
            selection->collections |= 1u << i;
    }
    return 0;
}

/* --- users ----------------------------------------------------------------------------------- */

/* Longer ids do not exist; ids with a comma (ASCII or fullwidth) or white space cannot be written
 * in the parameter. */
static bool can_be_asked_for(struct sl_slice user)
{
    static const struct sl_slice wide[] = {SL_SLICE("\xef\xbc\x8c"), SL_SLICE("\xe3\x80\x80")};
    bool can_be = user.size > 0 && user.size <= USER_MAX_BYTES && utf8_is_valid(user);

    for (size_t i = 0; can_be && i < user.size; i++)
        can_be = (unsigned char)user.data[i] > ' ' && user.data[i] != ',' &&
                 !sl_slice_starts_with(sl_slice_from(user, i), wide[0]) &&
                 !sl_slice_starts_with(sl_slice_from(user, i), wide[1]);
    return can_be;
}

static void append_user(struct sl_slice user, struct buffer *users)
{
    bool can_be = can_be_asked_for(user);

    if (users->size > 0)
        buffer_append_char(users, ',');
    if (can_be)
        buffer_append_slice(users, user);
    for (size_t i = 0; !can_be && i <= USER_MAX_BYTES; i++)
        buffer_append_char(users, '-');
}

static int want_did(struct jetstream_selection *selection, struct sl_slice did,
                    struct http_refusal *refusal)
{
    struct buffer user = BUFFER_INIT;
    bool is_did = jetstream_append_user(did, &user);

    if (is_did)
        append_user(buffer_slice(&user), &selection->users);
    selection->users.failed |= user.failed;
    buffer_done(&user);
    if (!is_did)
        return http_refuse(refusal, 400, "bad_did", "wantedDids", "invalid DID: %.*s", shown(did),
                           did.data);
    if (++selection->did_count > JETSTREAM_WANTED_DIDS_MAX)
        return http_refuse(refusal, 400, "too_many_dids", "wantedDids",
                           "too many wanted DIDs: > %d", JETSTREAM_WANTED_DIDS_MAX);
    selection->has_dids = true;
    return selection->users.failed ? -ENOMEM : 0;
}

/* --- the query ------------------------------------------------------------------------------- */

enum parameter {
    PARAMETER_COMPRESS,
    PARAMETER_CURSOR,
    PARAMETER_MAX_BYTES,
    PARAMETER_REQUIRE_HELLO,
    PARAMETER_WANTED_COLLECTIONS,
    PARAMETER_WANTED_DIDS,
    PARAMETERS
};

static const char *const names[PARAMETERS] = {
    [PARAMETER_COMPRESS] = "compress",
    [PARAMETER_CURSOR] = "cursor",
    [PARAMETER_MAX_BYTES] = "maxMessageSizeBytes",
    [PARAMETER_REQUIRE_HELLO] = "requireHello",
    [PARAMETER_WANTED_COLLECTIONS] = "wantedCollections",
    [PARAMETER_WANTED_DIDS] = "wantedDids",
};

/* Reads digits only. false: something else, or too large. */
static bool read_number(struct sl_slice text, uint64_t max, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (size_t i = 0; i < text.size; i++) {
        uint64_t digit = (uint64_t)(text.data[i] - '0');

        if (!is_digit(text.data[i]) || number > (max - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *ret_number = number;
    return text.size > 0;
}

static int read_cursor(struct jetstream_selection *selection, struct sl_slice text,
                       struct http_refusal *refusal)
{
    if (text.size == 0)
        return 0;
    selection->has_cursor = true;
    if (read_number(text, INT64_MAX, &selection->cursor_us))
        return 0;
    return http_refuse(refusal, 400, "bad_cursor", "cursor", "invalid cursor: %.*s", shown(text),
                       text.data);
}

/* As in Jetstream, an invalid number means no limit. */
static void read_max_bytes(struct jetstream_selection *selection, struct sl_slice text)
{
    uint64_t number;

    selection->max_bytes = read_number(text, UINT32_MAX, &number) ? (uint32_t)number : 0;
}

int jetstream_selection_refuse_compression(struct http_refusal *refusal)
{
    return http_refuse(refusal, 400, "bad_compress", "compress",
                       "compress: this server has no dictionary of Jetstream's; leave it out");
}

static int read_value(struct jetstream_selection *selection, enum parameter parameter,
                      struct sl_slice value, struct http_refusal *refusal)
{
    switch (parameter) {
    case PARAMETER_COMPRESS:
        return sl_slice_is(value, "true") ? jetstream_selection_refuse_compression(refusal) : 0;
    case PARAMETER_CURSOR:
        return read_cursor(selection, value, refusal);
    case PARAMETER_MAX_BYTES:
        read_max_bytes(selection, value);
        return 0;
    case PARAMETER_REQUIRE_HELLO:
        selection->waits = sl_slice_is(value, "true");
        return 0;
    case PARAMETER_WANTED_COLLECTIONS:
        return want_collection(selection, value, refusal);
    default:
        return want_did(selection, value, refusal);
    }
}

static int read_pair(struct jetstream_selection *selection, struct sl_slice pair,
                     struct http_refusal *refusal)
{
    struct sl_slice values[PARAMETERS];
    struct form form = {names, PARAMETERS, values, NULL};
    int r = form_read(&form, &pair, 1, refusal);

    if (r == -EPROTO && strcmp(refusal->code, "unknown_parameter") == 0)
        r = 0;
    for (unsigned i = 0; r == 0 && i < PARAMETERS; i++) {
        if (values[i].data)
            r = read_value(selection, i, values[i], refusal);
    }
    form_done(&form);
    return r;
}

int jetstream_selection_read_query(struct sl_slice query, struct jetstream_selection *selection,
                                   struct http_refusal *refusal)
{
    int r = 0;

    *selection = (struct jetstream_selection){.users = BUFFER_INIT};
    while (r == 0 && query.size > 0) {
        const char *end = memchr(query.data, '&', query.size);
        struct sl_slice pair = sl_slice(query.data, end ? (size_t)(end - query.data) : query.size);

        r = read_pair(selection, pair, refusal);
        query = sl_slice_from(query, pair.size + (end ? 1 : 0));
    }
    return r;
}

/* --- messages -------------------------------------------------------------------------------- */

static int refuse_payload(struct http_refusal *refusal)
{
    return http_refuse(refusal, 400, "bad_payload", NULL, "bad options_update payload");
}

static bool is_absent(const json_t *value)
{
    return !value || json_is_null(value);
}

static int read_list(struct jetstream_selection *selection, const json_t *list,
                     int (*want)(struct jetstream_selection *selection, struct sl_slice text,
                                 struct http_refusal *refusal),
                     struct http_refusal *refusal)
{
    int r = 0;

    if (is_absent(list))
        return 0;
    if (!json_is_array(list))
        return refuse_payload(refusal);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        const json_t *item = json_array_get(list, i);

        r = json_is_string(item)
                ? want(selection, sl_slice(json_string_value(item), json_string_length(item)),
                       refusal)
                : refuse_payload(refusal);
    }
    return r;
}

static int read_payload(struct jetstream_selection *selection, const json_t *payload,
                        struct http_refusal *refusal)
{
    const json_t *max = json_object_get(payload, "maxMessageSizeBytes");
    int r;

    if (!json_is_object(payload) || (!is_absent(max) && !json_is_integer(max)))
        return refuse_payload(refusal);
    if (json_integer_value(max) > 0 && json_integer_value(max) <= UINT32_MAX)
        selection->max_bytes = (uint32_t)json_integer_value(max);
    r = read_list(selection, json_object_get(payload, "wantedCollections"), want_collection,
                  refusal);
    return r < 0 ? r
                 : read_list(selection, json_object_get(payload, "wantedDids"), want_did, refusal);
}

int jetstream_selection_read_message(struct sl_slice text, struct jetstream_selection *selection,
                                     bool *ret_is_known, struct http_refusal *refusal)
{
    json_error_t error;
    json_t *message = json_loadb(text.data, text.size, 0, &error);
    int r = 0;

    *selection = (struct jetstream_selection){.users = BUFFER_INIT};
    if (!message && json_error_code(&error) == json_error_out_of_memory)
        return -ENOMEM;
    if (!json_is_object(message))
        r = http_refuse(refusal, 400, "bad_json", NULL, "bad SubscriberSourcedMessage envelope");
    *ret_is_known = sl_slice_is(event_json_text(message, "type"), "options_update");
    if (r == 0 && *ret_is_known)
        r = read_payload(selection, json_object_get(message, "payload"), refusal);
    json_decref(message);
    return r;
}
