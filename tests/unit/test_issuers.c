#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "gateway/front/issuer_keys.h"
#include "gateway/front/token.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/jwt.h"

#define NOW_MS UINT64_C(1800000000000)
#define ONE    "\"issuer\":\"https://a\",\"audience\":\"sluice\",\"jwks_file\":\"/a.json\""
#define CLAIMS(more)                                                                               \
    "{\"iss\":\"https://a\",\"aud\":\"sluice\",\"exp\":1800003600,\"sub\":\"42\"" more "}"

static char folder[] = "/tmp/sluice-test-issuers-XXXXXX";
static EVP_PKEY *key_a, *key_b;

static int begin(void **state)
{
    (void)state;
    key_a = jwt_key_new("ED25519");
    key_b = jwt_key_new("ED25519");
    return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
    char command[300];

    (void)state;
    EVP_PKEY_free(key_a);
    EVP_PKEY_free(key_b);
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return system(command);
}

/* --- the file --- */

static struct issuer_list *list_of(const char *json)
{
    struct issuer_list *list = NULL;
    struct failure failure = {""};

    if (issuers_parse(sl_slice_str(json), &list, &failure) < 0)
        fail_msg("%s: %s", json, failure.text);
    return list;
}

static void test_every_member_is_read(void **state)
{
    struct issuer_list *list =
        list_of("[{" ONE "},{\"issuer\":\"https://b\",\"audience\":[\"x\",\"y\"],"
                "\"public_key\":[\"/k1.pem\",\"/k2.pem\"],\"jwks_url\":\"https://b/keys\","
                "\"algorithms\":[\"ES256\",\"EdDSA\"],\"subject_claim\":[\"ext\",\"id\"],"
                "\"subject_prefix\":\"b:\",\"roles_claim\":[\"realm_access\",\"roles\"],"
                "\"roles\":{\"r\":\"read write\"},\"allow_scopes\":\"read\",\"leeway\":5},"
                "{\"issuer\":\"https://c/x\",\"audience\":\"z\",\"discovery\":true}]");
    const struct issuer_settings *b = &list->items[1];

    (void)state;
    assert_int_equal(list->count, 3);
    assert_string_equal(list->items[0].name, "https://a");
    assert_string_equal(list->items[0].jwks_files.items[0], "/a.json");
    assert_int_equal(list->items[0].claims.leeway_s, TOKEN_LEEWAY_S);
    assert_int_equal(list->items[0].claims.allowed_scopes & TOKEN_SCOPE_ADMIN, 0);
    assert_false(issuer_is_fetched(&list->items[0]));
    assert_int_equal(b->audiences.count, 2);
    assert_string_equal(b->public_keys.items[1], "/k2.pem");
    assert_string_equal(b->jwks_url, "https://b/keys");
    assert_int_equal(b->algorithms, 1U << TOKEN_ES256 | 1U << TOKEN_EDDSA);
    assert_string_equal(b->claims.subject.names[1], "id");
    assert_string_equal(b->claims.subject_prefix, "b:");
    assert_int_equal(b->claims.roles.count, 2);
    assert_int_equal(b->claims.allowed_scopes, TOKEN_SCOPE_READ);
    assert_int_equal(b->claims.leeway_s, 5);
    assert_true(list->items[2].discovers && issuer_is_fetched(&list->items[2]));
    issuers_free(list);
    list = list_of("[]");
    assert_int_equal(list->count, 0);
    issuers_free(list);
}

static void test_refusals_name_the_place(void **state)
{
    static const struct {
        const char *json, *why;
    } cases[] = {
        {"", "line 1, column"},
        {"{}", "not a list"},
        {"[7]", "[0]: this is an object"},
        {"[{}]", "[0]: issuer is missing"},
        {"[{" ONE "},{" ONE "}]", "[1].issuer: another issuer has this name"},
        {"[{\"issuer\":\"a\",\"jwks_file\":\"/a\"}]", "[0]: audience is missing"},
        {"[{\"issuer\":\"a\",\"audience\":\"x\"}]", "[0]: it has no keys"},
        {"[{" ONE ",\"issuer\":\"b\"}]", "duplicate"},
        {"[{" ONE ",\"audiance\":\"x\"}]", "[0].audiance: there is no such member; is 'audience'"},
        {"[{\"issuer\":\"\"}]", "[0].issuer: this must be a string"},
        {"[{\"issuer\":7}]", "[0].issuer: this must be a string"},
        {"[{\"audience\":[]}]", "[0].audience: the list is empty"},
        {"[{\"audience\":[7]}]", "[0].audience: this must be a string"},
        {"[{\"public_key\":\"a.pem\"}]", "[0].public_key: this must be the path"},
        {"[{\"jwks_file\":[\"/a\",\"b\"]}]", "[0].jwks_file: this must be the path"},
        {"[{\"jwks_url\":\"http://example.org/\"}]", "[0].jwks_url: "},
        {"[{\"jwks_url\":\"https://u@example.org/\"}]", "[0].jwks_url: "},
        {"[{" ONE ",\"discovery\":true}]", ""},
        {"[{\"issuer\":\"a\",\"audience\":\"x\",\"discovery\":true}]", "discovery needs an issuer"},
        {"[{" ONE ",\"discovery\":true,\"jwks_url\":\"https://a\"}]", "cannot be combined"},
        {"[{\"discovery\":\"yes\"}]", "[0].discovery: this must be true or false"},
        {"[{\"algorithms\":\"HS256\"}]", "[0].algorithms: there are RS"},
        {"[{\"algorithms\":[\"RS256\",\"none\"]}]", "[0].algorithms: there are RS"},
        {"[{\"roles\":[]}]", "[0].roles: this must be an object"},
        {"[{\"roles\":{\"x\":7}}]", "[0].roles.x: this must be a string of scopes"},
        {"[{\"roles\":{\"x\":\"read\",\"y\":\"raed\"}}]", "[0].roles.y: it has an unknown scope"},
        {"[{" ONE ",\"roles_claim\":\"x\"}]", "[0]: roles_claim needs roles"},
        {"[{\"allow_scopes\":\"all\"}]", "[0].allow_scopes: it has an unknown scope"},
        {"[{\"leeway\":601}]", "[0].leeway: this must be a whole number"},
        {"[{\"leeway\":\"60s\"}]", "[0].leeway: this must be a whole number"},
        {"[{\"subject_prefix\":\"123456789012345678901234567890123\"}]",
         "[0].subject_prefix: this must have at most"},
        {"[{\"subject_claim\":{\"a\":1}}]", "[0].subject_claim: this must be a string"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct issuer_list *list = NULL;
        struct failure failure = {""};
        int r = issuers_parse(sl_slice_str(cases[i].json), &list, &failure);

        if (cases[i].why[0] == '\0') {
            assert_int_equal(r, 0);
            issuers_free(list);
            continue;
        }
        assert_true(r < 0);
        assert_null(list);
        if (!strstr(failure.text, cases[i].why))
            fail_msg("%s: '%s', not '%s'", cases[i].json, failure.text, cases[i].why);
    }
}

/* --- tokens --- */

static const char *write_file(const char *name, const char *text)
{
    static char paths[4][200];
    static unsigned turn;
    char *path = paths[turn++ % 4];
    FILE *file;

    snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_true(file && fputs(text, file) >= 0 && fclose(file) == 0);
    return path;
}

static const char *write_set(const char *name, EVP_PKEY *key)
{
    struct buffer json = BUFFER_INIT;
    const char *path;

    buffer_append_str(&json, "{\"keys\":[");
    jwt_append_jwk(&json, key, ",\"kid\":\"k\"");
    buffer_append_str(&json, "]}");
    path = write_file(name, buffer_str(&json));
    buffer_done(&json);
    return path;
}

/* Issuer a has key_a with `more` members; b has key_b: both are called k. */
static struct token_policy *policy_with(const char *more)
{
    struct token_policy *policy = NULL;
    struct failure failure = {""};
    char json[2000];

    snprintf(json, sizeof(json),
             "[{\"issuer\":\"https://a\",\"audience\":\"sluice\",\"jwks_file\":\"%s\"%s},"
             "{\"issuer\":\"https://b\",\"audience\":\"sluice\",\"jwks_file\":\"%s\"}]",
             write_set("a.json", key_a), more, write_set("b.json", key_b));
    if (token_policy_new(
            &(struct token_policy_settings){.issuers_file = write_file("issuers.json", json),
                                            .remembered_tokens = 64},
            &policy, &failure) < 0)
        fail_msg("%s", failure.text);
    return policy;
}

static enum token_fault check(const struct token_policy *policy, const char *claims, EVP_PKEY *key,
                              struct token *token)
{
    struct buffer jwt = BUFFER_INIT;
    enum token_fault fault;

    jwt_sign(&jwt, "{\"alg\":\"EdDSA\",\"kid\":\"k\"}", claims, key, "EdDSA");
    fault = token_check(policy, buffer_slice(&jwt), NOW_MS, token);
    buffer_done(&jwt);
    return fault;
}

static void test_a_key_of_one_issuer_never_serves_another(void **state)
{
    struct token_policy *policy = policy_with("");
    struct token token;

    (void)state;
    assert_int_equal(check(policy, CLAIMS(), key_a, &token), TOKEN_OK);
    assert_string_equal(token.issuer, "https://a");
    assert_string_equal(token.kid, "k");
    assert_int_equal(check(policy, CLAIMS(), key_b, &token), TOKEN_BAD_SIGNATURE);
    assert_int_equal(check(policy, "{\"iss\":\"https://b\",\"aud\":\"sluice\",\"exp\":1800003600}",
                           key_b, &token),
                     TOKEN_OK);
    assert_string_equal(token.issuer, "https://b");
    /* no issuer: two keys are called k, and neither is tried */
    assert_int_equal(check(policy, "{\"aud\":\"sluice\",\"exp\":1800003600}", key_a, &token),
                     TOKEN_UNKNOWN_KEY);
    assert_int_equal(check(policy,
                           "{\"iss\":[\"https://a\"],\"aud\":\"sluice\",\"exp\":1800003600}", key_a,
                           &token),
                     TOKEN_UNKNOWN_KEY);
    assert_int_equal(check(policy, "{\"iss\":\"https://a\",\"aud\":\"other\",\"exp\":1800003600}",
                           key_a, &token),
                     TOKEN_WRONG_AUDIENCE);
    token_policy_free(policy);
}

static void test_two_keys_by_one_name_are_not_tried_in_turn(void **state)
{
    struct token_policy *policy = NULL;
    struct failure failure = {""};
    struct token token;
    char json[2000];

    (void)state;
    snprintf(json, sizeof(json),
             "[{\"issuer\":\"https://a\",\"audience\":\"sluice\",\"jwks_file\":[\"%s\",\"%s\"]}]",
             write_set("a.json", key_a), write_set("b.json", key_b));
    if (token_policy_new(
            &(struct token_policy_settings){.issuers_file = write_file("issuers.json", json)},
            &policy, &failure) < 0)
        fail_msg("%s", failure.text);
    assert_int_equal(check(policy, CLAIMS(), key_a, &token), TOKEN_UNKNOWN_KEY);
    assert_int_equal(check(policy, CLAIMS(), key_b, &token), TOKEN_UNKNOWN_KEY);
    token_policy_free(policy);
}

static void test_whose_issuer_is_wrong_is_told_behind_the_signature(void **state)
{
    struct token_policy *policy = NULL;
    struct failure failure = {""};
    struct token token;
    char json[500];

    (void)state;
    snprintf(json, sizeof(json),
             "[{\"issuer\":\"https://a\",\"audience\":\"sluice\",\"jwks_file\":\"%s\"}]",
             write_set("a.json", key_a));
    assert_int_equal(token_policy_new(&(struct token_policy_settings){.issuers_file = write_file(
                                                                          "one.json", json)},
                                      &policy, &failure),
                     0);
    assert_int_equal(check(policy, "{\"iss\":\"https://x\",\"aud\":\"sluice\",\"exp\":1800003600}",
                           key_a, &token),
                     TOKEN_WRONG_ISSUER);
    assert_int_equal(check(policy, "{\"iss\":\"https://x\",\"aud\":\"sluice\",\"exp\":1800003600}",
                           key_b, &token),
                     TOKEN_BAD_SIGNATURE);
    token_policy_free(policy);
}

static void test_issuer_of_the_options_stands_beside_them(void **state)
{
    const char *own = write_set("own.json", key_b);
    struct token_policy *policy = NULL;
    struct failure failure = {""};
    struct token token;
    char json[500];
    const char *file;

    (void)state;
    snprintf(json, sizeof(json),
             "[{\"issuer\":\"https://a\",\"audience\":\"sluice\",\"jwks_file\":\"%s\"}]",
             write_set("a.json", key_a));
    file = write_file("one.json", json);
    assert_int_equal(token_policy_new(&(struct token_policy_settings){.jwks_files = &own,
                                                                      .jwks_file_count = 1,
                                                                      .issuers_file = file},
                                      &policy, &failure),
                     0);
    /* a token without an issuer, or with an unknown one, is checked with the keys of the options */
    assert_int_equal(check(policy, "{\"exp\":1800003600}", key_b, &token), TOKEN_OK);
    assert_string_equal(token.issuer, "");
    assert_int_equal(check(policy, "{\"iss\":\"https://x\",\"exp\":1800003600}", key_b, &token),
                     TOKEN_OK);
    assert_int_equal(check(policy, "{\"exp\":1800003600}", key_a, &token), TOKEN_BAD_SIGNATURE);
    assert_int_equal(check(policy, CLAIMS(), key_a, &token), TOKEN_OK);
    assert_int_equal(check(policy, CLAIMS(), key_b, &token), TOKEN_BAD_SIGNATURE);
    token_policy_free(policy);
    assert_int_equal(token_policy_new(&(struct token_policy_settings){.issuer = "https://a",
                                                                      .issuers_file = file},
                                      &policy, &failure),
                     -EEXIST);
    assert_non_null(strstr(failure.text, "[0].issuer: jwt-issuer has this name"));
}

static void test_claims_are_mapped(void **state)
{
    static const struct {
        const char *more, *claims;
        enum token_fault fault;
        unsigned scopes;
        const char *subject;
    } cases[] = {
        {"", CLAIMS(",\"scope\":\"read stream:filter\""), TOKEN_OK,
         TOKEN_SCOPE_READ | TOKEN_SCOPE_FILTER, "42"},
        {"", CLAIMS(",\"scope\":[\"read\",\"x write\"]"), TOKEN_OK,
         TOKEN_SCOPE_READ | TOKEN_SCOPE_WRITE, "42"},
        {"", CLAIMS(",\"scp\":\"read\""), TOKEN_OK, TOKEN_SCOPE_READ, "42"},
        {"", CLAIMS(",\"scp\":[\"read\"],\"scope\":\"write\""), TOKEN_OK,
         TOKEN_SCOPE_READ | TOKEN_SCOPE_WRITE, "42"},
        {"", CLAIMS(",\"scp\":{\"read\":1}"), TOKEN_BAD_CLAIMS, 0, ""},
        {"", CLAIMS(",\"scp\":[7]"), TOKEN_BAD_CLAIMS, 0, ""},
        {"", CLAIMS(",\"scope\":\"admin read\""), TOKEN_OK, TOKEN_SCOPE_READ, "42"},
        {",\"allow_scopes\":\"admin\"", CLAIMS(",\"scope\":\"admin read\""), TOKEN_OK,
         TOKEN_SCOPE_ADMIN, "42"},
        {"", CLAIMS(",\"roles\":\"ops\""), TOKEN_OK, 0, "42"},
        {",\"roles\":{\"ops\":\"read write\",\"of two\":\"stream:home\"}",
         CLAIMS(",\"roles\":[\"ops\",\"of two\",\"x\"]"), TOKEN_OK,
         TOKEN_SCOPE_READ | TOKEN_SCOPE_WRITE | TOKEN_SCOPE_HOME, "42"},
        {",\"roles\":{\"ops\":\"read\"}", CLAIMS(",\"roles\":\"x ops\""), TOKEN_OK,
         TOKEN_SCOPE_READ, "42"},
        {",\"roles\":{\"ops\":\"admin\"}", CLAIMS(",\"roles\":\"ops\""), TOKEN_OK, 0, "42"},
        {",\"roles\":{\"ops\":\"read\"}", CLAIMS(",\"roles\":7"), TOKEN_BAD_CLAIMS, 0, ""},
        {",\"roles\":{\"ops\":\"read\"},\"roles_claim\":[\"https://x/access\",\"roles\"]",
         CLAIMS(",\"https://x/access\":{\"roles\":[\"ops\"]}"), TOKEN_OK, TOKEN_SCOPE_READ, "42"},
        {",\"roles\":{\"ops\":\"read\"},\"roles_claim\":[\"a\",\"roles\"]",
         CLAIMS(",\"a\":\"ops\""), TOKEN_OK, 0, "42"},
        {",\"subject_claim\":\"id\"", CLAIMS(",\"id\":\"7\""), TOKEN_OK, 0, "7"},
        {",\"subject_claim\":\"id\"", CLAIMS(",\"id\":7"), TOKEN_OK, 0, "7"},
        {",\"subject_claim\":\"id\"", CLAIMS(",\"id\":9007199254740991"), TOKEN_OK, 0,
         "9007199254740991"},
        {",\"subject_claim\":\"id\"", CLAIMS(",\"id\":9007199254740992"), TOKEN_BAD_CLAIMS, 0, ""},
        {",\"subject_claim\":\"id\"", CLAIMS(",\"id\":7.0"), TOKEN_BAD_CLAIMS, 0, ""},
        {",\"subject_claim\":\"id\"", CLAIMS(",\"id\":true"), TOKEN_BAD_CLAIMS, 0, ""},
        {",\"subject_claim\":\"id\"", CLAIMS(",\"id\":\"\""), TOKEN_BAD_CLAIMS, 0, ""},
        {",\"subject_claim\":\"id\"", CLAIMS(), TOKEN_OK, 0, ""},
        {",\"subject_claim\":[\"ext\",\"id\"]", CLAIMS(",\"ext\":{\"id\":\"7\"}"), TOKEN_OK, 0,
         "7"},
        {",\"subject_prefix\":\"a:\"", CLAIMS(), TOKEN_OK, 0, "a:42"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct token_policy *policy = policy_with(cases[i].more);
        struct token token = {.subject = ""};
        enum token_fault fault = check(policy, cases[i].claims, key_a, &token);

        if (fault != cases[i].fault || token.scopes != cases[i].scopes ||
            strcmp(token.subject, cases[i].subject) != 0)
            fail_msg("%zu: %s, scopes %x, sub '%s'", i, token_fault_name(fault), token.scopes,
                     token.subject);
        token_policy_free(policy);
    }
}

static void test_each_issuer_has_its_leeway(void **state)
{
    struct token_policy *policy = policy_with(",\"leeway\":0");
    struct token token;

    (void)state;
    assert_int_equal(check(policy, "{\"iss\":\"https://a\",\"aud\":\"sluice\",\"exp\":1800000000}",
                           key_a, &token),
                     TOKEN_EXPIRED);
    assert_int_equal(check(policy, "{\"iss\":\"https://b\",\"aud\":\"sluice\",\"exp\":1800000000}",
                           key_b, &token),
                     TOKEN_OK);
    assert_true(token.expires_ms == NOW_MS + 60000);
    token_policy_free(policy);
}

static void test_algorithms_of_an_issuer_are_all_it_may_use(void **state)
{
    struct token_policy *policy = policy_with(",\"algorithms\":\"ES256\"");
    struct token token;

    (void)state;
    assert_int_equal(check(policy, CLAIMS(), key_a, &token), TOKEN_WRONG_ALGORITHM);
    token_policy_free(policy);
}

static void test_changed_set_is_taken_and_a_bad_one_is_not(void **state)
{
    struct token_policy *policy = policy_with("");
    struct key_set_file *file = token_policy_file(policy, 0);
    struct failure failure;
    struct token token;

    (void)state;
    assert_non_null(token_policy_file(policy, 1));
    assert_null(token_policy_file(policy, 2));
    assert_int_equal(key_set_file_reread(file, &failure), 0);
    assert_int_equal(check(policy, CLAIMS(), key_a, &token), TOKEN_OK);
    write_file("a.json", "{\"keys\":[]}");
    assert_int_equal(key_set_file_reread(file, &failure), -EINVAL);
    assert_non_null(strstr(failure.text, "a.json': the set is empty"));
    assert_int_equal(key_set_file_reread(file, &failure), 0); /* reported already */
    token_policy_forget(policy);
    assert_int_equal(check(policy, CLAIMS(), key_a, &token), TOKEN_OK);
    write_set("a.json", key_b);
    assert_int_equal(key_set_file_reread(file, &failure), 1);
    token_policy_forget(policy);
    assert_int_equal(check(policy, CLAIMS(), key_a, &token), TOKEN_BAD_SIGNATURE);
    assert_int_equal(check(policy, CLAIMS(), key_b, &token), TOKEN_OK);
    unlink(file->path);
    assert_int_equal(key_set_file_reread(file, &failure), -ENOENT);
    assert_int_equal(key_set_file_reread(file, &failure), 0);
    token_policy_forget(policy);
    assert_int_equal(check(policy, CLAIMS(), key_b, &token), TOKEN_OK);
    token_policy_free(policy);
}

static void test_sets_without_an_audience_are_warned_of(void **state)
{
    const char *set = write_set("good.json", key_a);
    struct token_policy_settings settings = {.jwks_files = &set, .jwks_file_count = 1};
    struct token_policy *policy = NULL;
    struct failure failure = {""};

    (void)state;
    assert_int_equal(token_policy_new(&settings, &policy, &failure), 0);
    assert_non_null(strstr(token_policy_warning(policy, 0), "without jwt-audience"));
    assert_null(token_policy_warning(policy, 1));
    token_policy_free(policy);
    settings.audience = "sluice";
    assert_int_equal(token_policy_new(&settings, &policy, &failure), 0);
    assert_null(token_policy_warning(policy, 0));
    token_policy_free(policy);
}

/* A worker that is restarted while a set is invalid starts without it. */
static void test_bad_set_may_be_allowed(void **state)
{
    const char *sets[] = {write_file("bad.json", "{"), write_set("good.json", key_a)};
    struct token_policy_settings settings = {.jwks_files = sets, .jwks_file_count = 2};
    struct token_policy *policy = NULL;
    struct failure failure = {""};
    struct token token;

    (void)state;
    assert_int_equal(token_policy_new(&settings, &policy, &failure), -EINVAL);
    settings.allows_bad_sets = true;
    assert_int_equal(token_policy_new(&settings, &policy, &failure), 0);
    assert_int_equal(check(policy, CLAIMS(), key_a, &token), TOKEN_OK);
    assert_int_equal(key_set_file_reread(token_policy_file(policy, 0), &failure), -EINVAL);
    assert_int_equal(key_set_file_reread(token_policy_file(policy, 0), &failure), 0);
    token_policy_free(policy);
}

static void note_issuer(void *context, const char *issuer)
{
    *(const char **)context = issuer;
}

/* A set that another process fetches need not exist yet. */
static void test_fetched_set_may_come_later(void **state)
{
    struct key_sources sources = {0};
    struct token_policy *policy = NULL;
    struct failure failure = {""};
    struct key_set_file *file;
    const char *unknown_of = NULL;
    struct token token;
    const char *listed = write_file(
        "fetched.json", "[{\"issuer\":\"https://a\",\"audience\":\"sluice\",\"discovery\":"
                        "true},{\"issuer\":\"https://b\",\"audience\":\"sluice\","
                        "\"jwks_url\":\"https://b/keys\"}]");

    (void)state;
    assert_int_equal(key_sources_add(&sources, folder, "https://a", NULL, &failure), 0);
    assert_int_equal(key_sources_add(&sources, folder, "https://b", "https://b/keys", &failure), 0);
    assert_int_equal(token_policy_new(&(struct token_policy_settings){.issuers_file = listed,
                                                                      .sources = &sources},
                                      &policy, &failure),
                     0);
    token_policy_set_unknown_key(policy, note_issuer, &unknown_of);
    file = token_policy_file(policy, 0);
    assert_null(file->set);
    assert_int_equal(check(policy, CLAIMS(), key_a, &token), TOKEN_NO_KEYS_YET);
    assert_string_equal(unknown_of, "https://a");
    unknown_of = NULL;
    token = (struct token){.issuer = "https://a", .kid = "k"}; /* checked by another gateway */
    assert_int_equal(token_check_key(policy, &token), TOKEN_NO_KEYS_YET);
    assert_string_equal(unknown_of, "https://a");
    write_set(strrchr(file->path, '/') + 1, key_a);
    assert_int_equal(key_set_file_reread(file, &failure), 1);
    assert_int_equal(check(policy, CLAIMS(), key_a, &token), TOKEN_OK);
    unknown_of = NULL;
    assert_int_equal(token_check_key(policy, &token), TOKEN_OK);
    assert_null(unknown_of);
    token.key_number--;
    assert_int_equal(token_check_key(policy, &token), TOKEN_UNKNOWN_KEY);
    assert_string_equal(unknown_of, "https://a");
    assert_null(token_policy_file(policy, 1)->set);
    token_policy_free(policy);
    key_sources_done(&sources);
}

static bool is_taken_back(void *context, const struct token *token, uint64_t now_ms)
{
    (void)token;
    (void)now_ms;
    return *(bool *)context;
}

static void test_times_and_revocations_of_a_remembered_token_are_checked(void **state)
{
    struct token_policy *policy = policy_with("");
    struct buffer jwt = BUFFER_INIT;
    struct token token, again;
    bool taken_back = false;
    char was;

    (void)state;
    token_policy_set_revoked(policy, is_taken_back, &taken_back);
    jwt_sign(&jwt, "{\"alg\":\"EdDSA\"}", CLAIMS(",\"nbf\":1800000000,\"jti\":\"j\""), key_a,
             "EdDSA");
    assert_int_equal(token_check(policy, buffer_slice(&jwt), NOW_MS, &token), TOKEN_OK);
    unlink(token_policy_file(policy, 0)->path);
    memset(&again, 0, sizeof(again));
    assert_int_equal(token_check(policy, buffer_slice(&jwt), NOW_MS + 1, &again), TOKEN_OK);
    assert_memory_equal(&token, &again, sizeof(token));
    assert_int_equal(token_check(policy, buffer_slice(&jwt), token.expires_ms, &again),
                     TOKEN_EXPIRED);
    assert_int_equal(token_check(policy, buffer_slice(&jwt), NOW_MS - 61000, &again),
                     TOKEN_NOT_YET_VALID);
    was = jwt.data[jwt.size - 10];
    jwt.data[jwt.size - 10] = was == 'A' ? 'B' : 'A';
    assert_int_equal(token_check(policy, buffer_slice(&jwt), NOW_MS, &again), TOKEN_BAD_SIGNATURE);
    jwt.data[jwt.size - 10] = was;
    taken_back = true;
    assert_int_equal(token_check(policy, buffer_slice(&jwt), NOW_MS, &again), TOKEN_REVOKED);
    buffer_done(&jwt);
    token_policy_free(policy);
}

static void test_parsing_survives_each_failed_allocation(void **state)
{
    struct issuer_list *list = NULL;
    struct failure failure;
    uint64_t n;
    int r = -ENOMEM;

    (void)state;
    for (n = 0; r != 0; n++) {
        mem_fail_after(n);
        r = issuers_parse(sl_slice_str("[{" ONE "}]"), &list, &failure);
        mem_fail_never();
        assert_true(r == 0 || r == -ENOMEM);
    }
    issuers_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_member_is_read),
        cmocka_unit_test(test_refusals_name_the_place),
        cmocka_unit_test(test_a_key_of_one_issuer_never_serves_another),
        cmocka_unit_test(test_two_keys_by_one_name_are_not_tried_in_turn),
        cmocka_unit_test(test_whose_issuer_is_wrong_is_told_behind_the_signature),
        cmocka_unit_test(test_issuer_of_the_options_stands_beside_them),
        cmocka_unit_test(test_claims_are_mapped),
        cmocka_unit_test(test_each_issuer_has_its_leeway),
        cmocka_unit_test(test_algorithms_of_an_issuer_are_all_it_may_use),
        cmocka_unit_test(test_changed_set_is_taken_and_a_bad_one_is_not),
        cmocka_unit_test(test_sets_without_an_audience_are_warned_of),
        cmocka_unit_test(test_bad_set_may_be_allowed),
        cmocka_unit_test(test_fetched_set_may_come_later),
        cmocka_unit_test(test_times_and_revocations_of_a_remembered_token_are_checked),
        cmocka_unit_test(test_parsing_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
