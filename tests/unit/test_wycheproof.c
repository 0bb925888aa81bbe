/* test_wycheproof.c - Project Wycheproof's vectors for JSON Web Signatures and Keys, applied to the
 * code that checks tokens.
 *
 *     git clone https://github.com/C2SP/wycheproof
 *     SLUICE_WYCHEPROOF=wycheproof/testvectors_v1 build/dev/tests/unit/test_wycheproof
 *
 * Without that variable they are looked for next to the other data that checkouts share; if there
 * are none, the tests are skipped: the vectors are not ours to copy. No invalid vector may be
 * accepted, and no valid one refused, except for those in stricter_than(), where the specifications
 * leave a choice, and those that contradict another vector. The signed payloads are not claims, so
 * only form, header, key and signature are checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/base64url.h"
#include "gateway/front/token.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/folder.h"

static char folder[] = "/tmp/sluice-test-wycheproof-XXXXXX";

struct tally {
    unsigned agree, stricter, contradictory, secret_sets;
};

/* --- the vectors --- */

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text ? text : "";
}

/* Returns the JWS of a test: an object in the JSON serialization, or its text. */
static char *jws_of(const json_t *test)
{
    const json_t *jws = json_object_get(test, "jws");

    return json_is_string(jws) ? strdup(json_string_value(jws)) : json_dumps(jws, JSON_COMPACT);
}

static bool is_valid(const json_t *test)
{
    return strcmp(text_of(test, "result"), "valid") == 0;
}

static const json_t *key_of(const json_t *group)
{
    const json_t *key = json_object_get(group, "public");

    return key ? key : json_object_get(group, "private");
}

/* Another vector of the group has the same text and the opposite result. */
static bool is_contradicted(const json_t *group, const json_t *test)
{
    const json_t *other, *tests = json_object_get(group, "tests");
    size_t i;

    json_array_foreach(tests, i, other)
    {
        if (is_valid(other) != is_valid(test) &&
            json_equal(json_object_get(other, "jws"), json_object_get(test, "jws")))
            return true;
    }
    return false;
}

/* Why a valid vector may be refused; NULL: it may not. */
static const char *stricter_than(const json_t *group, const json_t *test)
{
    const char *alg = text_of(key_of(group), "alg"), *comment = text_of(test, "comment");

    if (strcmp(alg, "ES521") == 0)
        return "the key's alg is none that there is";
    if (strncmp(text_of(group, "comment"), "rfc7520", 7) == 0 && strcmp(alg, "PS256") == 0)
        return "the key is for PS256, the token says PS384";
    if (strncmp(comment, "InvalidCharacterInserted", 24) == 0)
        return "a character that is not of base64url";
    return NULL;
}

/* --- their keys --- */

static void write_file(const char *path, const char *bytes, size_t size)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void write_secret(const json_t *jwk, char *path, size_t room)
{
    const char *k = text_of(jwk, "k");
    struct buffer secret = BUFFER_INIT;

    assert_int_equal(base64url_decode(sl_slice_str(k), &secret), 0);
    snprintf(path, room, "%s/%s.secret", folder, text_of(jwk, "kid"));
    write_file(path, secret.data, secret.size);
    buffer_done(&secret);
}

static void write_set(const json_t *key, char *path, size_t room)
{
    json_t *set = json_object_get(key, "keys") ? json_deep_copy(key)
                                               : json_pack("{s:[O]}", "keys", (json_t *)key);
    char *text = json_dumps(set, 0);

    snprintf(path, room, "%s/set.json", folder);
    write_file(path, text, strlen(text));
    free(text);
    json_decref(set);
}

/* NULL: there is no key that can be used. */
static struct token_policy *policy_of(const json_t *key)
{
    char path[300];
    const char *paths[] = {path};
    struct token_policy_settings settings = {.secret_file = NULL};
    struct token_policy *policy = NULL;
    struct failure failure;

    if (strcmp(text_of(key, "kty"), "oct") == 0) {
        write_secret(key, path, sizeof(path));
        settings.secret_file = path;
    } else {
        write_set(key, path, sizeof(path));
        settings.jwks_files = paths;
        settings.jwks_file_count = 1;
    }
    if (token_policy_new(&settings, &policy, &failure) < 0)
        policy = NULL;
    remove(path);
    return policy;
}

/* A set of secrets, which are not supported: its vectors do not apply. */
static bool is_secret_set(const json_t *key)
{
    const json_t *keys = json_object_get(key, "keys"), *first = json_array_get(keys, 0);

    return first && strcmp(text_of(first, "kty"), "oct") == 0;
}

/* --- the results --- */

static void try_vector(const json_t *group, const json_t *test, const struct token_policy *policy,
                       struct tally *tally)
{
    char *jws = jws_of(test);
    enum token_fault fault =
        policy ? token_check_signature(policy, sl_slice_str(jws)) : TOKEN_UNKNOWN_KEY;
    const char *why = stricter_than(group, test);
    int number = (int)json_integer_value(json_object_get(test, "tcId"));

    free(jws);
    if ((fault == TOKEN_OK) == is_valid(test)) {
        tally->agree++;
    } else if (is_contradicted(group, test)) {
        tally->contradictory++;
        print_message("%d: %s, and another vector with the same text is not\n", number,
                      text_of(test, "result"));
    } else if (fault != TOKEN_OK && why) {
        tally->stricter++;
        print_message("%d: refused (%s): %s\n", number, token_fault_name(fault), why);
    } else {
        fail_msg("%d (%s, %s): %s, and is %s", number, text_of(group, "comment"),
                 text_of(test, "comment"), fault == TOKEN_OK ? "accepted" : token_fault_name(fault),
                 text_of(test, "result"));
    }
}

static void try_group(const json_t *group, struct tally *tally)
{
    const json_t *key = key_of(group), *test, *tests = json_object_get(group, "tests");
    struct token_policy *policy;
    size_t i;

    assert_non_null(key);
    if (is_secret_set(key)) {
        tally->secret_sets += (unsigned)json_array_size(tests);
        return;
    }
    policy = policy_of(key);
    json_array_foreach(tests, i, test) try_vector(group, test, policy, tally);
    token_policy_free(policy);
}

static json_t *load(const char *name)
{
    const char *vectors = getenv("SLUICE_WYCHEPROOF"), *shared = getenv("SLUICE_SHARED");
    json_error_t error;
    char path[4096];
    json_t *file;

    if (vectors)
        snprintf(path, sizeof(path), "%s/%s", vectors, name);
    else
        snprintf(path, sizeof(path), "%s/data/wycheproof/%s",
                 shared ? shared : SOURCE_DIR "/../shared", name);
    if (!vectors && access(path, R_OK) < 0) {
        print_message("SLUICE_WYCHEPROOF names no folder of vectors\n");
        skip();
    }
    file = json_load_file(path, 0, &error);
    if (!file)
        fail_msg("%s: %s", path, error.text);
    return file;
}

static void try_file(const char *name)
{
    json_t *file = load(name);
    struct tally tally = {0};
    const json_t *group;
    size_t i;

    json_array_foreach(json_object_get(file, "testGroups"), i, group) try_group(group, &tally);
    print_message(
        "%s: %d vectors: %u agree, %u stricter, %u contradictory, %u of sets of secrets\n", name,
        (int)json_integer_value(json_object_get(file, "numberOfTests")), tally.agree,
        tally.stricter, tally.contradictory, tally.secret_sets);
    assert_int_equal(tally.agree + tally.stricter + tally.contradictory + tally.secret_sets,
                     json_integer_value(json_object_get(file, "numberOfTests")));
    assert_true(tally.agree > 0);
    json_decref(file);
}

static void test_signatures(void **state)
{
    (void)state;
    try_file("json_web_signature_test.json");
}

static void test_keys(void **state)
{
    (void)state;
    try_file("json_web_key_test.json");
}

static int begin(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    folder_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signatures),
        cmocka_unit_test(test_keys),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
