/* issuers.c - a table of members, each with a function that reads it.
 *
 * The current position is passed along, so that every error can name it. Texts stay where the JSON
 * parser put them: the list owns the whole file. It has at most 64 issuers, and each list in it 16
 * texts. */
#include "gateway/front/issuers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/key_file.h"
#include "base/nearest.h"
#include "gateway/front/key_source.h"
#include "gateway/front/token_algorithm.h"

enum { LEEWAY_MAX_S = 600 };

/* A position in the file: "[0].roles.listener". */
struct place {
    size_t issuer;
    const char *member, *below; /* NULL: the whole element */
    struct failure *reterr;
};

static int refuse(const struct place *place, const char *why)
{
    return failure_set(place->reterr, -EINVAL, "[%zu]%s%s%s%s: %s", place->issuer,
                       place->member ? "." : "", place->member ? place->member : "",
                       place->below ? "." : "", place->below ? place->below : "", why);
}

/* --- values --- */

static int read_text(const struct place *place, const json_t *value, const char **ret_text)
{
    if (!json_is_string(value) || json_string_length(value) == 0)
        return refuse(place, "this must be a string, and not empty");
    *ret_text = json_string_value(value);
    return 0;
}

/* Reads a text, or a list of texts. */
static int read_texts(const struct place *place, const json_t *value, unsigned most,
                      const char **ret_items, unsigned *ret_count)
{
    if (!json_is_array(value)) {
        *ret_count = 1;
        return read_text(place, value, &ret_items[0]);
    }
    if (json_array_size(value) == 0)
        return refuse(place, "the list is empty");
    if (json_array_size(value) > most)
        return refuse(place, "the list is too long");
    for (size_t i = 0; i < json_array_size(value); i++) {
        int r = read_text(place, json_array_get(value, i), &ret_items[i]);

        if (r < 0)
            return r;
    }
    *ret_count = (unsigned)json_array_size(value);
    return 0;
}

static int read_list(const struct place *place, const json_t *value, struct issuer_texts *texts)
{
    return read_texts(place, value, ISSUER_TEXTS_MAX, texts->items, &texts->count);
}

static int read_path(const struct place *place, const json_t *value, struct claim_path *path)
{
    return read_texts(place, value, CLAIM_PATH_MAX, path->names, &path->count);
}

static int read_files(const struct place *place, const json_t *value, struct issuer_texts *texts)
{
    int r = read_list(place, value, texts);

    for (unsigned i = 0; r == 0 && i < texts->count; i++) {
        if (texts->items[i][0] != '/')
            r = refuse(place, "this must be the path of a file, beginning with /");
    }
    return r;
}

static int read_scopes(const struct place *place, const json_t *value, unsigned *ret_scopes)
{
    bool is_unknown = false;

    if (!json_is_string(value))
        return refuse(place, "this must be a string of scopes separated by spaces");
    *ret_scopes = claims_scopes(sl_slice_str(json_string_value(value)), &is_unknown);
    return is_unknown ? refuse(place, "it has an unknown scope") : 0;
}

/* --- members --- */

static int read_name(struct issuer_settings *issuer, struct place *place, const json_t *value)
{
    return read_text(place, value, &issuer->name);
}

static int read_audience(struct issuer_settings *issuer, struct place *place, const json_t *value)
{
    return read_list(place, value, &issuer->audiences);
}

static int read_public_keys(struct issuer_settings *issuer, struct place *place,
                            const json_t *value)
{
    return read_files(place, value, &issuer->public_keys);
}

static int read_jwks_files(struct issuer_settings *issuer, struct place *place, const json_t *value)
{
    return read_files(place, value, &issuer->jwks_files);
}

static int read_jwks_url(struct issuer_settings *issuer, struct place *place, const json_t *value)
{
    struct failure why;
    int r = read_text(place, value, &issuer->jwks_url);

    if (r == 0 && key_url_check(sl_slice_str(issuer->jwks_url), &why) < 0)
        r = refuse(place, why.text);
    return r;
}

static int read_discovery(struct issuer_settings *issuer, struct place *place, const json_t *value)
{
    issuer->discovers = json_is_true(value);
    return json_is_boolean(value) ? 0 : refuse(place, "this must be true or false");
}

static int read_algorithms(struct issuer_settings *issuer, struct place *place, const json_t *value)
{
    struct issuer_texts names;
    int r = read_list(place, value, &names);

    issuer->algorithms = 0;
    for (unsigned i = 0; r == 0 && i < names.count; i++) {
        enum token_algorithm algorithm;

        if (!token_algorithm_find(sl_slice_str(names.items[i]), &algorithm) ||
            token_algorithm_kind(algorithm) == TOKEN_KEY_SECRET)
            r = refuse(place, "there are RS, PS and ES with 256, 384 and 512, EdDSA and Ed25519");
        else
            issuer->algorithms |= 1U << algorithm;
    }
    return r;
}

static int read_subject_claim(struct issuer_settings *issuer, struct place *place,
                              const json_t *value)
{
    return read_path(place, value, &issuer->claims.subject);
}

static int read_subject_prefix(struct issuer_settings *issuer, struct place *place,
                               const json_t *value)
{
    int r = read_text(place, value, &issuer->claims.subject_prefix);

    if (r == 0 && json_string_length(value) > TOKEN_SUBJECT_SIZE / 2)
        r = refuse(place, "this must have at most 32 bytes");
    return r;
}

static int read_roles_claim(struct issuer_settings *issuer, struct place *place,
                            const json_t *value)
{
    return read_path(place, value, &issuer->claims.roles);
}

static int read_roles(struct issuer_settings *issuer, struct place *place, const json_t *value)
{
    json_t *table = (json_t *)value; /* only read */
    const char *name;
    json_t *scopes;

    if (!json_is_object(value))
        return refuse(place, "this must be an object: names of roles with their scopes");
    json_object_foreach(table, name, scopes)
    {
        unsigned all;
        int r;

        place->below = name;
        r = read_scopes(place, scopes, &all);
        if (r < 0)
            return r;
    }
    place->below = NULL;
    issuer->claims.role_table = value;
    return 0;
}

static int read_allow_scopes(struct issuer_settings *issuer, struct place *place,
                             const json_t *value)
{
    return read_scopes(place, value, &issuer->claims.allowed_scopes);
}

static int read_leeway(struct issuer_settings *issuer, struct place *place, const json_t *value)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        json_integer_value(value) > LEEWAY_MAX_S)
        return refuse(place, "this must be a whole number of seconds, from 0 to 600");
    issuer->claims.leeway_s = (unsigned)json_integer_value(value);
    return 0;
}

static const struct {
    const char *name;
    int (*read)(struct issuer_settings *issuer, struct place *place, const json_t *value);
} members[] = {
    {"issuer", read_name},
    {"audience", read_audience},
    {"public_key", read_public_keys},
    {"jwks_file", read_jwks_files},
    {"jwks_url", read_jwks_url},
    {"discovery", read_discovery},
    {"algorithms", read_algorithms},
    {"subject_claim", read_subject_claim},
    {"subject_prefix", read_subject_prefix},
    {"roles_claim", read_roles_claim},
    {"roles", read_roles},
    {"allow_scopes", read_allow_scopes},
    {"leeway", read_leeway},
};

enum { MEMBER_COUNT = sizeof(members) / sizeof(members[0]) };

static int refuse_unknown(const struct place *place)
{
    struct nearest search = {.text = place->member};
    char why[100];

    for (size_t i = 0; i < MEMBER_COUNT; i++)
        nearest_see(&search, members[i].name);
    snprintf(why, sizeof(why), "there is no such member%s%s%s", search.best ? "; is '" : "",
             search.best ? search.best : "", search.best ? "' meant?" : "");
    return refuse(place, why);
}

static int read_member(struct issuer_settings *issuer, struct place *place, const char *name,
                       const json_t *value)
{
    place->member = name;
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if (strcmp(name, members[i].name) == 0)
            return members[i].read(issuer, place, value);
    }
    return refuse_unknown(place);
}

/* --- an issuer as a whole --- */

static int check_issuer(const struct issuer_settings *issuer, struct place *place)
{
    place->member = NULL;
    if (!issuer->name)
        return refuse(place, "issuer is missing: the value of iss");
    if (issuer->audiences.count == 0)
        return refuse(place, "audience is missing: tokens that this issuer makes for others "
                             "would be accepted");
    if (issuer->public_keys.count == 0 && issuer->jwks_files.count == 0 &&
        !issuer_is_fetched(issuer))
        return refuse(place, "it has no keys: give public_key, jwks_file, jwks_url or discovery");
    if (issuer->jwks_url && issuer->discovers)
        return refuse(place, "jwks_url and discovery cannot be combined");
    if (issuer->discovers && !key_issuer_has_discovery(sl_slice_str(issuer->name)))
        return refuse(place, "discovery needs an issuer that is an https URL without a query");
    if (issuer->claims.roles.count > 0 && !issuer->claims.role_table)
        return refuse(place, "roles_claim needs roles, the table of their scopes");
    return 0;
}

static int read_issuer(struct issuer_settings *issuer, struct place *place, const json_t *value)
{
    static const struct claim_path usual_roles = {{"roles"}, 1};
    json_t *object = (json_t *)value; /* only read */
    const char *name;
    json_t *member;
    int r;

    if (!json_is_object(value))
        return refuse(place, "this is an object");
    issuer->algorithms = ~token_algorithms_of(TOKEN_KEY_SECRET);
    issuer->claims = (struct claim_rules){.allowed_scopes = ~(unsigned)TOKEN_SCOPE_ADMIN,
                                          .leeway_s = TOKEN_LEEWAY_S};
    json_object_foreach(object, name, member)
    {
        r = read_member(issuer, place, name, member);
        if (r < 0)
            return r;
    }
    if (issuer->claims.role_table && issuer->claims.roles.count == 0)
        issuer->claims.roles = usual_roles;
    return check_issuer(issuer, place);
}

static bool has_name(const struct issuer_list *list, const char *name)
{
    for (unsigned i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, name) == 0)
            return true;
    }
    return false;
}

static int read_all(struct issuer_list *list, struct failure *reterr)
{
    if (!json_is_array(list->json))
        return failure_set(reterr, -EINVAL, "it is not a list of issuers");
    if (json_array_size(list->json) > ISSUERS_MAX)
        return failure_set(reterr, -E2BIG, "there are more than %d issuers", ISSUERS_MAX);
    for (size_t i = 0; i < json_array_size(list->json); i++) {
        struct issuer_settings *issuer = &list->items[i];
        struct place place = {i, NULL, NULL, reterr};
        int r = read_issuer(issuer, &place, json_array_get(list->json, i));

        if (r < 0)
            return r;
        if (has_name(list, issuer->name))
            return refuse(&(struct place){i, "issuer", NULL, reterr}, "another issuer has this "
                                                                      "name");
        list->count++;
    }
    return 0;
}

int issuers_parse(struct sl_slice json, struct issuer_list **ret_list, struct failure *reterr)
{
    struct issuer_list *list;
    json_error_t error;
    int r;

    if (json.size > ISSUERS_MAX_BYTES)
        return failure_set(reterr, -E2BIG, "it has more than %d bytes", ISSUERS_MAX_BYTES);
    list = mem_zalloc(sizeof(*list));
    if (!list)
        return failure_set(reterr, -ENOMEM, "out of memory");
    list->json = json_loadb(json.data ? json.data : "", json.size, JSON_REJECT_DUPLICATES, &error);
    r = list->json ? read_all(list, reterr)
                   : failure_set(reterr, -EINVAL, "line %d, column %d: %s", error.line,
                                 error.column, error.text);
    if (r == 0)
        *ret_list = list;
    else
        issuers_free(list);
    return r;
}

int issuers_read(const char *path, struct issuer_list **ret_list, struct failure *reterr)
{
    struct buffer content = BUFFER_INIT;
    struct failure why;
    bool is_exposed;
    int r;

    r = key_file_read(path, &content, &is_exposed, reterr);
    if (r == 0) {
        r = issuers_parse(buffer_slice(&content), ret_list, &why);
        if (r < 0)
            failure_set(reterr, r, "'%s': %.350s", path, why.text);
    }
    buffer_done(&content);
    return r;
}

void issuers_free(struct issuer_list *list)
{
    if (!list)
        return;
    json_decref(list->json);
    mem_free(list);
}
