#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>

#include "base/alloc.h"
#include "base/base64url.h"
#include "gateway/front/token.h"
#include "gateway/front/token_key.h"
#include "tests/support/cmocka_all.h"

#define NOW_MS UINT64_C(1800000000000)
#define GOOD   "\"exp\":1800003600"

static const char secret[] = "a secret of more than thirty-two bytes";

static char folder[] = "/tmp/sluice-test-token-XXXXXX";
static EVP_PKEY *rsa, *ec, *other_rsa, *other_ec;

/* --- keys and files ------------------------------------------------------------------------ */

/* The path is valid for the next three calls. */
static const char *path_of(const char *name)
{
    static char rooms[4][256];
    static unsigned turn;
    char *room = rooms[turn++ % 4];

    snprintf(room, sizeof(rooms[0]), "%s/%s", folder, name);
    return room;
}

static const char *write_file(const char *name, const void *data, size_t size, mode_t mode)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
    return path;
}

static const char *write_text(const char *name, const char *text)
{
    return write_file(name, text, strlen(text), 0600);
}

static const char *write_public_key(const char *name, EVP_PKEY *key)
{
    const char *path = path_of(name);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(PEM_write_PUBKEY(file, key), 1);
    assert_int_equal(fclose(file), 0);
    return path;
}

static int make_keys(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    rsa = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
    other_rsa = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
    ec = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    other_ec = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    write_text("secret", secret);
    write_public_key("rsa.pem", rsa);
    write_public_key("ec.pem", ec);
    return rsa && other_rsa && ec && other_ec ? 0 : -1;
}

static int remove_keys(void **state)
{
    char command[300];

    (void)state;
    EVP_PKEY_free(rsa);
    EVP_PKEY_free(other_rsa);
    EVP_PKEY_free(ec);
    EVP_PKEY_free(other_ec);
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    return system(command);
}

static struct token_policy *policy_of(const struct token_policy_settings *settings)
{
    struct token_policy *policy = NULL;
    struct failure failure;

    if (token_policy_new(settings, &policy, &failure) < 0)
        fail_msg("%s", failure.text);
    return policy;
}

/* A policy with the secret and both public keys. */
static struct token_policy *full_policy(void)
{
    const char *const files[] = {path_of("rsa.pem"), path_of("ec.pem")};

    return policy_of(&(struct token_policy_settings){
        .secret_file = path_of("secret"), .public_key_files = files, .public_key_count = 2});
}

static struct token_policy *secret_policy(void)
{
    return policy_of(&(struct token_policy_settings){.secret_file = path_of("secret")});
}

/* --- tokens -------------------------------------------------------------------------------- */

static void append_part(struct buffer *jwt, const char *text)
{
    base64url_encode(sl_slice_str(text), jwt);
}

static void append_hmac(struct buffer *jwt, const EVP_MD *digest, const void *key, size_t key_size)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    unsigned size;

    HMAC(digest, key, (int)key_size, (unsigned char *)jwt->data, jwt->size, mac, &size);
    buffer_append_char(jwt, '.');
    base64url_encode(sl_slice((char *)mac, size), jwt);
}

/* Signed with the secret by SHA-256, whatever `header` says. */
static void hs256_token(struct buffer *jwt, const char *header, const char *claims)
{
    buffer_clear(jwt);
    append_part(jwt, header);
    buffer_append_char(jwt, '.');
    append_part(jwt, claims);
    append_hmac(jwt, EVP_sha256(), secret, strlen(secret));
}

static void append_signature(struct buffer *jwt, EVP_PKEY *key)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    unsigned char signature[1024], raw[64];
    size_t size = sizeof(signature);

    assert_int_equal(EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key), 1);
    assert_int_equal(
        EVP_DigestSign(context, signature, &size, (unsigned char *)jwt->data, jwt->size), 1);
    EVP_MD_CTX_free(context);
    buffer_append_char(jwt, '.');
    if (EVP_PKEY_is_a(key, "EC")) {
        const unsigned char *at = signature;
        ECDSA_SIG *numbers = d2i_ECDSA_SIG(NULL, &at, (long)size);

        BN_bn2binpad(ECDSA_SIG_get0_r(numbers), raw, 32);
        BN_bn2binpad(ECDSA_SIG_get0_s(numbers), raw + 32, 32);
        ECDSA_SIG_free(numbers);
        base64url_encode(sl_slice((char *)raw, sizeof(raw)), jwt);
    } else {
        base64url_encode(sl_slice((char *)signature, size), jwt);
    }
}

static void signed_token(struct buffer *jwt, const char *header, const char *claims, EVP_PKEY *key)
{
    buffer_clear(jwt);
    append_part(jwt, header);
    buffer_append_char(jwt, '.');
    append_part(jwt, claims);
    append_signature(jwt, key);
}

/* Checks a copy without a byte after it, so that reading past the end is noticed. */
static enum token_fault check(const struct token_policy *policy, struct sl_slice jwt,
                              struct token *ret_token)
{
    char *copy = mem_copy(jwt.data, jwt.size);
    enum token_fault fault = token_check(policy, sl_slice(copy, jwt.size), NOW_MS, ret_token);

    mem_free(copy);
    return fault;
}

static void expect(const struct token_policy *policy, const struct buffer *jwt,
                   enum token_fault expected)
{
    struct token token;
    enum token_fault fault = check(policy, buffer_slice(jwt), &token);

    if (fault != expected)
        fail_msg("%.*s is %s, not %s", SL_SLICE_ARG(buffer_slice(jwt)), token_fault_name(fault),
                 token_fault_name(expected));
}

static void expect_claims(const struct token_policy *policy, const char *claims,
                          enum token_fault expected, struct token *ret_token)
{
    struct buffer jwt = BUFFER_INIT;
    enum token_fault fault;

    hs256_token(&jwt, "{\"alg\":\"HS256\"}", claims);
    fault = check(policy, buffer_slice(&jwt), ret_token);
    if (fault != expected)
        fail_msg("%s is %s, not %s", claims, token_fault_name(fault), token_fault_name(expected));
    buffer_done(&jwt);
}

/* --- tests --------------------------------------------------------------------------------- */

static void test_token_says_who_asks_and_what_they_may_do(void **state)
{
    struct token_policy *policy = secret_policy();
    struct token token;

    (void)state;
    expect_claims(policy,
                  "{\"sub\":\"42\",\"scope\":\"stream:filter  other stream:home\","
                  "\"exp\":1800003600,\"nbf\":1799999999.5,\"iat\":1,\"jti\":\"x\"}",
                  TOKEN_OK, &token);
    assert_string_equal(token.subject, "42");
    assert_string_equal(token.holder, "42");
    assert_int_equal(token.scopes, TOKEN_SCOPE_FILTER | TOKEN_SCOPE_HOME);
    assert_true(token.expires_ms == (UINT64_C(1800003600) + TOKEN_LEEWAY_S) * 1000);
    assert_int_equal(token.limits.track, SL_FILTER_LIMITS_DEFAULT.track);
    expect_claims(policy,
                  "{" GOOD ",\"scope\":\" stream:sample stream:firehose read write admin \"}",
                  TOKEN_OK, &token);
    assert_string_equal(token.subject, "");
    assert_int_equal(token.scopes, TOKEN_SCOPE_SAMPLE | TOKEN_SCOPE_FIREHOSE | TOKEN_SCOPE_READ |
                                       TOKEN_SCOPE_WRITE | TOKEN_SCOPE_ADMIN);
    expect_claims(policy, "{" GOOD "}", TOKEN_OK, &token);
    assert_int_equal(token.scopes, 0);
    expect_claims(policy,
                  "{" GOOD ",\"sub\":9007199254740991,\"scope\":[\"read\",\"x write\"],"
                  "\"scp\":[\"stream:home\"]}",
                  TOKEN_OK, &token);
    assert_string_equal(token.subject, "9007199254740991");
    assert_int_equal(token.scopes, TOKEN_SCOPE_READ | TOKEN_SCOPE_WRITE | TOKEN_SCOPE_HOME);
    expect_claims(policy, "{" GOOD ",\"scope\":\"Stream:filter stream:filterx stream\"}", TOKEN_OK,
                  &token);
    assert_int_equal(token.scopes, 0);
    token_policy_free(policy);
}

static void test_token_has_names_that_it_is_revoked_by(void **state)
{
    struct token_policy *policy = policy_of(
        &(struct token_policy_settings){.secret_file = path_of("secret"), .issuer = "https://id"});
    struct token token;
    char claims[400], name[TOKEN_NAME_SIZE], jti[200];

    (void)state;
    expect_claims(policy, "{" GOOD ",\"iss\":\"https://id\",\"iat\":1799990000.25,\"jti\":\"a-1\"}",
                  TOKEN_OK, &token);
    assert_string_equal(token.jti, "a-1");
    assert_string_equal(token.kid, "secret");
    assert_string_equal(token.issuer, "https://id");
    assert_true(token.issued_ms == UINT64_C(1799990000250));
    expect_claims(policy, "{" GOOD ",\"iss\":\"https://id\",\"iat\":-1,\"jti\":17}", TOKEN_OK,
                  &token);
    assert_string_equal(token.jti, "17");
    assert_true(token.issued_ms == 0);
    memset(jti, 'x', sizeof(jti) - 1);
    jti[sizeof(jti) - 1] = '\0';
    snprintf(claims, sizeof(claims), "{" GOOD ",\"iss\":\"https://id\",\"jti\":\"%s\"}", jti);
    expect_claims(policy, claims, TOKEN_OK, &token);
    token_name(sl_slice_str(jti), name);
    assert_string_equal(token.jti, name);
    assert_int_equal(strlen(name), 7 + 44);
    token_name(sl_slice(jti, TOKEN_NAME_SIZE - 1), name);
    assert_int_equal(strlen(name), TOKEN_NAME_SIZE - 1);
    token_policy_free(policy);
}

static void test_each_algorithm_of_the_secret_is_accepted(void **state)
{
    static const struct {
        const char *header;
        const EVP_MD *(*digest)(void);
    } cases[] = {{"{\"alg\":\"HS256\"}", EVP_sha256},
                 {"{\"alg\":\"HS384\",\"typ\":\"JWT\"}", EVP_sha384},
                 {"{\"typ\":\"at+jwt\",\"alg\":\"HS512\",\"kid\":\"secret\"}", EVP_sha512}};
    struct token_policy *policy = full_policy();
    struct buffer jwt = BUFFER_INIT;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j < 3; j++) {
            buffer_clear(&jwt);
            append_part(&jwt, cases[i].header);
            buffer_append_char(&jwt, '.');
            append_part(&jwt, "{" GOOD "}");
            append_hmac(&jwt, cases[j].digest(), secret, strlen(secret));
            expect(policy, &jwt, i == j ? TOKEN_OK : TOKEN_BAD_SIGNATURE);
        }
    }
    buffer_done(&jwt);
    token_policy_free(policy);
}

static void test_signatures_of_key_pairs_are_verified(void **state)
{
    struct token_policy *policy = full_policy();
    struct buffer jwt = BUFFER_INIT;

    (void)state;
    signed_token(&jwt, "{\"alg\":\"RS256\"}", "{" GOOD "}", rsa);
    expect(policy, &jwt, TOKEN_OK);
    for (int i = 0; i < 50; i++) { /* some of their numbers have fewer than 32 bytes */
        signed_token(&jwt, "{\"alg\":\"ES256\"}", "{" GOOD "}", ec);
        expect(policy, &jwt, TOKEN_OK);
    }
    signed_token(&jwt, "{\"alg\":\"RS256\"}", "{" GOOD "}", other_rsa);
    expect(policy, &jwt, TOKEN_BAD_SIGNATURE);
    signed_token(&jwt, "{\"alg\":\"ES256\"}", "{" GOOD "}", other_ec);
    expect(policy, &jwt, TOKEN_BAD_SIGNATURE);
    signed_token(&jwt, "{\"alg\":\"RS256\"}", "{" GOOD "}", ec);
    expect(policy, &jwt, TOKEN_BAD_SIGNATURE);
    signed_token(&jwt, "{\"alg\":\"ES256\"}", "{" GOOD "}", rsa);
    expect(policy, &jwt, TOKEN_BAD_SIGNATURE);
    buffer_done(&jwt);
    token_policy_free(policy);
}

static void test_every_changed_or_missing_byte_is_noticed(void **state)
{
    static const char *const headers[] = {"{\"alg\":\"HS256\"}", "{\"alg\":\"ES256\"}"};
    struct token_policy *policy = full_policy();
    struct buffer jwt = BUFFER_INIT;
    struct token token;

    (void)state;
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            hs256_token(&jwt, headers[i], "{" GOOD "}");
        else
            signed_token(&jwt, headers[i], "{" GOOD "}", ec);
        expect(policy, &jwt, TOKEN_OK);
        for (size_t size = 0; size < jwt.size; size++)
            assert_int_not_equal(check(policy, sl_slice(jwt.data, size), &token), TOKEN_OK);
        for (size_t at = 0; at < jwt.size; at++) {
            jwt.data[at] ^= 1;
            assert_int_not_equal(check(policy, buffer_slice(&jwt), &token), TOKEN_OK);
            jwt.data[at] ^= 1;
        }
        buffer_append_char(&jwt, 'A');
        assert_int_not_equal(check(policy, buffer_slice(&jwt), &token), TOKEN_OK);
    }
    buffer_done(&jwt);
    token_policy_free(policy);
}

static void test_es256_refuses_numbers_out_of_range(void **state)
{
    struct token_policy *policy = full_policy();
    struct buffer jwt = BUFFER_INIT;
    char zeros[64] = "", ones[64];

    (void)state;
    memset(ones, 0xff, sizeof(ones));
    for (int i = 0; i < 2; i++) {
        buffer_clear(&jwt);
        append_part(&jwt, "{\"alg\":\"ES256\"}");
        buffer_append_char(&jwt, '.');
        append_part(&jwt, "{" GOOD "}");
        buffer_append_char(&jwt, '.');
        base64url_encode(sl_slice(i ? ones : zeros, 64), &jwt);
        expect(policy, &jwt, TOKEN_BAD_SIGNATURE);
    }
    buffer_done(&jwt);
    token_policy_free(policy);
}

static void test_header_is_read_to_the_letter(void **state)
{
    static const struct {
        const char *header;
        enum token_fault fault;
    } cases[] = {
        {"{\"alg\":\"HS256\",\"jku\":\"https://x\",\"jwk\":{}}", TOKEN_OK},
        {"{\"alg\":\"none\"}", TOKEN_WRONG_ALGORITHM},
        {"{\"alg\":\"None\"}", TOKEN_WRONG_ALGORITHM},
        {"{\"alg\":\"hs256\"}", TOKEN_WRONG_ALGORITHM},
        {"{\"alg\":\"HS256 \"}", TOKEN_WRONG_ALGORITHM},
        {"{\"alg\":\"\"}", TOKEN_WRONG_ALGORITHM},
        {"{\"alg\":\"RS256\"}", TOKEN_WRONG_ALGORITHM},
        {"{\"alg\":\"ES256\"}", TOKEN_WRONG_ALGORITHM},
        {"{\"alg\":\"PS256\"}", TOKEN_WRONG_ALGORITHM},
        {"{\"alg\":\"EdDSA\"}", TOKEN_WRONG_ALGORITHM},
        {"{}", TOKEN_MALFORMED},
        {"{\"alg\":256}", TOKEN_MALFORMED},
        {"{\"alg\":null}", TOKEN_MALFORMED},
        {"{\"alg\":[\"HS256\"]}", TOKEN_MALFORMED},
        {"{\"alg\":\"none\",\"alg\":\"HS256\"}", TOKEN_MALFORMED},
        {"{\"alg\":\"HS256\",\"alg\":\"HS256\"}", TOKEN_MALFORMED},
        {"{\"alg\":\"HS256\",\"x\":{\"y\":1,\"y\":2}}", TOKEN_MALFORMED},
        {"{\"alg\":\"HS256\",\"crit\":[\"exp\"]}", TOKEN_CRITICAL_HEADER},
        {"{\"alg\":\"HS256\",\"crit\":null}", TOKEN_CRITICAL_HEADER},
        {"{\"alg\":\"HS256\",\"kid\":\"secret\"}", TOKEN_OK},
        {"{\"alg\":\"HS256\",\"kid\":\"other\"}", TOKEN_UNKNOWN_KEY},
        {"{\"alg\":\"HS256\",\"kid\":\"\"}", TOKEN_UNKNOWN_KEY},
        {"{\"alg\":\"HS256\",\"kid\":7}", TOKEN_MALFORMED},
        {"{\"alg\":\"HS256\"} x", TOKEN_MALFORMED},
        {"{\"alg\":\"HS256\"", TOKEN_MALFORMED},
        {"{\"alg\":\"HS256\\u0000\"}", TOKEN_MALFORMED},
        {"{\"alg\":\"HS256\",\"x\":\"\xff\"}", TOKEN_MALFORMED},
        {"[\"HS256\"]", TOKEN_MALFORMED},
        {"\"HS256\"", TOKEN_MALFORMED},
        {"", TOKEN_MALFORMED},
    };
    struct token_policy *policy = secret_policy();
    struct buffer jwt = BUFFER_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        hs256_token(&jwt, cases[i].header, "{" GOOD "}");
        expect(policy, &jwt, cases[i].fault);
    }
    buffer_done(&jwt);
    token_policy_free(policy);
}

static void test_parts_are_read_to_the_letter(void **state)
{
    static const char *const bad[] = {"",    ".",    "..",       "...",      "x",
                                      "a.b", "....", "e30.e30.", ".e30.e30", "e30..e30"};
    struct token_policy *policy = secret_policy();
    struct buffer jwt = BUFFER_INIT, changed = BUFFER_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        buffer_clear(&jwt);
        buffer_append_str(&jwt, bad[i]);
        expect(policy, &jwt, TOKEN_MALFORMED);
    }
    hs256_token(&jwt, "{\"alg\":\"HS256\"}", "{" GOOD "}");
    for (int i = 0; i < 5; i++) {
        static const char *const around[5][2] = {
            {"", "="}, {"", "\n"}, {" ", ""}, {"", ".e30"}, {"", "."}};

        buffer_clear(&changed);
        buffer_append_str(&changed, around[i][0]);
        buffer_append_slice(&changed, buffer_slice(&jwt));
        buffer_append_str(&changed, around[i][1]);
        expect(policy, &changed, TOKEN_MALFORMED);
    }
    buffer_done(&jwt);
    buffer_done(&changed);
    token_policy_free(policy);
}

static void test_size_of_a_token_is_bounded(void **state)
{
    struct token_policy *policy = secret_policy();
    struct buffer jwt = BUFFER_INIT, claims = BUFFER_INIT;
    bool fits[2] = {false, false};

    (void)state;
    for (size_t padding = 6030; padding < 6080; padding++) {
        struct token token;

        buffer_clear(&claims);
        buffer_append_str(&claims, "{" GOOD ",\"padding\":\"");
        memset(buffer_reserve(&claims, padding), 'x', padding);
        claims.size += padding;
        buffer_append_str(&claims, "\"}");
        hs256_token(&jwt, "{\"alg\":\"HS256\"}", buffer_str(&claims));
        assert_int_equal(check(policy, buffer_slice(&jwt), &token),
                         jwt.size <= TOKEN_MAX_BYTES ? TOKEN_OK : TOKEN_MALFORMED);
        fits[jwt.size <= TOKEN_MAX_BYTES] = true;
    }
    assert_true(fits[false] && fits[true]);
    buffer_done(&jwt);
    buffer_done(&claims);
    token_policy_free(policy);
}

static void test_times_have_a_leeway_of_a_minute(void **state)
{
    static const struct {
        const char *claims;
        enum token_fault fault;
    } cases[] = {
        {"{\"exp\":1799999941}", TOKEN_OK},
        {"{\"exp\":1799999940.001}", TOKEN_OK},
        {"{\"exp\":1799999940}", TOKEN_EXPIRED},
        {"{\"exp\":0}", TOKEN_EXPIRED},
        {"{\"exp\":-1e300}", TOKEN_EXPIRED},
        {"{\"exp\":1e300}", TOKEN_OK},
        {"{\"exp\":9223372036854775807}", TOKEN_OK},
        {"{}", TOKEN_BAD_CLAIMS},
        {"{\"exp\":null}", TOKEN_BAD_CLAIMS},
        {"{\"exp\":\"1800003600\"}", TOKEN_BAD_CLAIMS},
        {"{\"exp\":true}", TOKEN_BAD_CLAIMS},
        {"{\"exp\":1e400}", TOKEN_MALFORMED},
        {"{" GOOD ",\"nbf\":1800000060}", TOKEN_OK},
        {"{" GOOD ",\"nbf\":1800000060.5}", TOKEN_NOT_YET_VALID},
        {"{" GOOD ",\"nbf\":1e300}", TOKEN_NOT_YET_VALID},
        {"{" GOOD ",\"nbf\":-5}", TOKEN_OK},
        {"{" GOOD ",\"nbf\":\"0\"}", TOKEN_BAD_CLAIMS},
        {"{" GOOD ",\"nbf\":null}", TOKEN_BAD_CLAIMS},
    };
    struct token_policy *policy = secret_policy();
    struct token token;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_claims(policy, cases[i].claims, cases[i].fault, &token);
    expect_claims(policy, "{\"exp\":1800000000.25}", TOKEN_OK, &token);
    assert_true(token.expires_ms == UINT64_C(1800000060250));
    expect_claims(policy, "{\"exp\":1e300}", TOKEN_OK, &token);
    assert_true(token.expires_ms > NOW_MS);
    token_policy_free(policy);
}

static void test_claims_of_the_wrong_type_are_refused(void **state)
{
    static const struct {
        const char *claims;
        enum token_fault fault;
    } cases[] = {
        {"{" GOOD ",\"sub\":9007199254740992}",
         TOKEN_BAD_CLAIMS}, /* may have been rounded from ...993 */
        {"{" GOOD ",\"sub\":-9007199254740992}", TOKEN_BAD_CLAIMS},
        {"{" GOOD ",\"sub\":42.0}", TOKEN_BAD_CLAIMS},
        {"{" GOOD ",\"sub\":true}", TOKEN_BAD_CLAIMS},
        {"{" GOOD ",\"sub\":\"\"}", TOKEN_BAD_CLAIMS},
        {"{" GOOD ",\"sub\":null}", TOKEN_BAD_CLAIMS},
        {"{" GOOD ",\"sub\":\"4\\u00002\"}", TOKEN_MALFORMED},
        {"{" GOOD ",\"sub\":\"0123456789012345678901234567890123456789012345678901234567890123\"}",
         TOKEN_OK},
        {"{" GOOD ",\"sub\":\"01234567890123456789012345678901234567890123456789012345678901234\"}",
         TOKEN_BAD_CLAIMS},
        {"{" GOOD ",\"scope\":[\"stream:filter\",7]}", TOKEN_BAD_CLAIMS},
        {"{" GOOD ",\"scope\":null}", TOKEN_BAD_CLAIMS},
        {"{" GOOD ",\"scp\":{\"stream:filter\":true}}", TOKEN_BAD_CLAIMS},
        {"{" GOOD ",\"scp\":null}", TOKEN_BAD_CLAIMS},
        {"{" GOOD ",\"jti\":null}", TOKEN_BAD_CLAIMS},
        {"{" GOOD ",\"jti\":1.5}", TOKEN_BAD_CLAIMS},
        {"{" GOOD ",\"jti\":[\"x\"]}", TOKEN_BAD_CLAIMS},
        {"{" GOOD ",\"iat\":\"1800000000\"}", TOKEN_BAD_CLAIMS},
        {"{" GOOD "," GOOD "}", TOKEN_MALFORMED},
        {"[]", TOKEN_MALFORMED},
        {"null", TOKEN_MALFORMED},
        {"{", TOKEN_MALFORMED},
    };
    struct token_policy *policy = secret_policy();
    struct token token;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_claims(policy, cases[i].claims, cases[i].fault, &token);
    token_policy_free(policy);
}

static void test_limits_override_the_defaults(void **state)
{
    struct token_policy *policy = secret_policy();
    struct token token;

    (void)state;
    expect_claims(policy,
                  "{" GOOD ",\"lim\":{\"track\":4000,\"follow\":0,\"boxes\":4294967295,"
                  "\"rules\":1,\"sample\":0.0003}}",
                  TOKEN_OK, &token);
    assert_int_equal(token.limits.track, 4000);
    assert_int_equal(token.limits.follow, 0);
    assert_int_equal(token.limits.boxes, UINT32_MAX);
    assert_int_equal(token.limits.rules, 1);
    assert_int_equal(token.limits.sample_ppm, 3);
    expect_claims(policy, "{" GOOD ",\"lim\":{\"sample\":100}}", TOKEN_OK, &token);
    assert_int_equal(token.limits.sample_ppm, 1000000);
    assert_int_equal(token.limits.track, SL_FILTER_LIMITS_DEFAULT.track);
    expect_claims(policy, "{" GOOD ",\"lim\":{\"sample\":0}}", TOKEN_OK, &token);
    assert_int_equal(token.limits.sample_ppm, 0);
    token_policy_free(policy);
}

static void test_limits_that_could_not_be_kept_refuse_the_token(void **state)
{
    static const char *const bad[] = {"{\"trak\":4}",
                                      "{\"track\":-1}",
                                      "{\"track\":4294967296}",
                                      "{\"track\":1.5}",
                                      "{\"track\":\"4\"}",
                                      "{\"track\":null}",
                                      "{\"sample\":100.1}",
                                      "{\"sample\":-1}",
                                      "{\"sample\":\"1\"}",
                                      "{\"Track\":4}",
                                      "[]",
                                      "null",
                                      "4"};
    struct token_policy *policy = secret_policy();
    struct token token;
    char claims[200];

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(claims, sizeof(claims), "{" GOOD ",\"lim\":%s}", bad[i]);
        expect_claims(policy, claims, TOKEN_BAD_CLAIMS, &token);
    }
    token_policy_free(policy);
}

static void test_issuer_and_audience_are_checked_when_configured(void **state)
{
    static const struct {
        const char *claims;
        enum token_fault fault;
    } cases[] = {
        {"{" GOOD ",\"iss\":\"https://id\",\"aud\":\"sluice\"}", TOKEN_OK},
        {"{" GOOD ",\"iss\":\"https://id\",\"aud\":[\"other\",\"sluice\"]}", TOKEN_OK},
        {"{" GOOD ",\"iss\":\"https://id/\",\"aud\":\"sluice\"}", TOKEN_WRONG_ISSUER},
        {"{" GOOD ",\"aud\":\"sluice\"}", TOKEN_WRONG_ISSUER},
        {"{" GOOD ",\"iss\":[\"https://id\"],\"aud\":\"sluice\"}", TOKEN_WRONG_ISSUER},
        {"{" GOOD ",\"iss\":\"https://id\"}", TOKEN_WRONG_AUDIENCE},
        {"{" GOOD ",\"iss\":\"https://id\",\"aud\":\"sluic\"}", TOKEN_WRONG_AUDIENCE},
        {"{" GOOD ",\"iss\":\"https://id\",\"aud\":[]}", TOKEN_WRONG_AUDIENCE},
        {"{" GOOD ",\"iss\":\"https://id\",\"aud\":[[\"sluice\"],7]}", TOKEN_WRONG_AUDIENCE},
        {"{" GOOD ",\"iss\":\"https://id\",\"aud\":{\"sluice\":1}}", TOKEN_WRONG_AUDIENCE},
    };
    struct token_policy *strict = policy_of(&(struct token_policy_settings){
        .secret_file = path_of("secret"), .issuer = "https://id", .audience = "sluice"});
    struct token_policy *open = policy_of(&(struct token_policy_settings){
        .secret_file = path_of("secret"), .issuer = "", .audience = ""});
    struct token token;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        expect_claims(strict, cases[i].claims, cases[i].fault, &token);
        expect_claims(open, cases[i].claims, TOKEN_OK, &token);
    }
    token_policy_free(strict);
    token_policy_free(open);
}

static void test_public_key_is_no_secret(void **state)
{
    struct token_policy *policy = full_policy();
    struct buffer jwt = BUFFER_INIT;
    char pem[4096];
    size_t size;
    FILE *file;

    (void)state;
    file = fopen(path_of("rsa.pem"), "r");
    size = fread(pem, 1, sizeof(pem), file);
    fclose(file);
    for (int i = 0; i < 4; i++) {
        static const char *const headers[] = {
            "{\"alg\":\"HS256\"}", "{\"alg\":\"HS256\",\"kid\":\"rsa\"}", "{\"alg\":\"RS256\"}",
            "{\"alg\":\"none\",\"kid\":\"rsa\"}"};
        static const enum token_fault faults[] = {TOKEN_BAD_SIGNATURE, TOKEN_WRONG_ALGORITHM,
                                                  TOKEN_BAD_SIGNATURE, TOKEN_WRONG_ALGORITHM};

        buffer_clear(&jwt);
        append_part(&jwt, headers[i]);
        buffer_append_char(&jwt, '.');
        append_part(&jwt, "{" GOOD "}");
        append_hmac(&jwt, EVP_sha256(), pem, size);
        expect(policy, &jwt, faults[i]);
    }
    buffer_done(&jwt);
    token_policy_free(policy);
}

static void test_kid_chooses_among_keys_by_file_name_or_thumbprint(void **state)
{
    const char *const files[] = {path_of("rsa.pem"), write_public_key("2026.01.pem", other_rsa)};
    struct token_policy *policy = policy_of(
        &(struct token_policy_settings){.public_key_files = files, .public_key_count = 2});
    struct token_key *key;
    struct buffer jwt = BUFFER_INIT;
    char header[200];

    (void)state;
    signed_token(&jwt, "{\"alg\":\"RS256\"}", "{" GOOD "}", rsa);
    expect(policy, &jwt, TOKEN_UNKNOWN_KEY);
    signed_token(&jwt, "{\"alg\":\"RS256\",\"kid\":\"rsa\"}", "{" GOOD "}", rsa);
    expect(policy, &jwt, TOKEN_OK);
    signed_token(&jwt, "{\"alg\":\"RS256\",\"kid\":\"2026.01\"}", "{" GOOD "}", other_rsa);
    expect(policy, &jwt, TOKEN_OK);
    signed_token(&jwt, "{\"alg\":\"RS256\",\"kid\":\"2026.01\"}", "{" GOOD "}", rsa);
    expect(policy, &jwt, TOKEN_BAD_SIGNATURE);
    signed_token(&jwt, "{\"alg\":\"RS256\",\"kid\":\"rsa.pem\"}", "{" GOOD "}", rsa);
    expect(policy, &jwt, TOKEN_UNKNOWN_KEY);
    assert_int_equal(token_key_read_public(files[1], &key, NULL), 0);
    snprintf(header, sizeof(header), "{\"alg\":\"RS256\",\"kid\":\"%s\"}",
             token_key_thumbprint(key));
    signed_token(&jwt, header, "{" GOOD "}", other_rsa);
    expect(policy, &jwt, TOKEN_OK);
    token_key_free(key);
    buffer_done(&jwt);
    token_policy_free(policy);
}

/* The example of RFC 7638, section 3.1. */
static void test_thumbprint_is_that_of_the_rfc(void **state)
{
    static const char modulus[] =
        "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_"
        "BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_"
        "FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-"
        "bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
    OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
    struct buffer bytes = BUFFER_INIT;
    EVP_PKEY *public_key = NULL;
    struct token_key *key;
    OSSL_PARAM *parameters;
    BIGNUM *n, *e;

    (void)state;
    assert_int_equal(base64url_decode(sl_slice_str(modulus), &bytes), 0);
    n = BN_bin2bn((unsigned char *)bytes.data, (int)bytes.size, NULL);
    e = BN_new();
    BN_set_word(e, 65537);
    OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, n);
    OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, e);
    parameters = OSSL_PARAM_BLD_to_param(builder);
    assert_int_equal(EVP_PKEY_fromdata_init(context), 1);
    assert_int_equal(EVP_PKEY_fromdata(context, &public_key, EVP_PKEY_PUBLIC_KEY, parameters), 1);
    assert_int_equal(token_key_read_public(write_public_key("rfc7638.pem", public_key), &key, NULL),
                     0);
    assert_string_equal(token_key_thumbprint(key), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    token_key_free(key);
    EVP_PKEY_free(public_key);
    OSSL_PARAM_free(parameters);
    OSSL_PARAM_BLD_free(builder);
    EVP_PKEY_CTX_free(context);
    BN_free(n);
    BN_free(e);
    buffer_done(&bytes);
}

static void test_without_any_key_every_token_is_refused(void **state)
{
    struct token_policy *policy = policy_of(&(struct token_policy_settings){.secret_file = NULL});
    struct buffer jwt = BUFFER_INIT;

    (void)state;
    assert_non_null(strstr(token_policy_warning(policy, 0), "no key"));
    assert_null(token_policy_warning(policy, 1));
    hs256_token(&jwt, "{\"alg\":\"HS256\"}", "{" GOOD "}");
    expect(policy, &jwt, TOKEN_UNKNOWN_KEY);
    hs256_token(&jwt, "{\"alg\":\"none\"}", "{" GOOD "}");
    expect(policy, &jwt, TOKEN_WRONG_ALGORITHM);
    buffer_done(&jwt);
    token_policy_free(policy);
}

static void test_secret_file_loses_one_newline(void **state)
{
    static const char kept[] = "two newlines, of which one is kept\n";
    struct token_policy *policy;
    struct buffer jwt = BUFFER_INIT;

    (void)state;
    policy = policy_of(&(struct token_policy_settings){
        .secret_file = write_text("newlines", "two newlines, of which one is kept\n\n")});
    for (size_t less = 0; less < 2; less++) {
        buffer_clear(&jwt);
        append_part(&jwt, "{\"alg\":\"HS256\"}");
        buffer_append_char(&jwt, '.');
        append_part(&jwt, "{" GOOD "}");
        append_hmac(&jwt, EVP_sha256(), kept, strlen(kept) - less);
        expect(policy, &jwt, less ? TOKEN_BAD_SIGNATURE : TOKEN_OK);
    }
    buffer_done(&jwt);
    token_policy_free(policy);
}

static void test_bad_key_files_are_named(void **state)
{
    static char large[70000];
    static const char *const names[] = {"missing", "empty", "newline", "large"};
    struct token_policy *policy = NULL;
    struct failure failure;

    (void)state;
    memset(large, 'x', sizeof(large));
    write_text("empty", "");
    write_text("newline", "\n");
    write_file("large", large, sizeof(large), 0600);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct token_policy_settings settings = {.secret_file = path_of(names[i])};

        assert_true(token_policy_new(&settings, &policy, &failure) < 0);
        assert_non_null(strstr(failure.text, settings.secret_file));
        assert_null(policy);
    }
    assert_true(token_policy_new(&(struct token_policy_settings){.secret_file = folder}, &policy,
                                 &failure) < 0);
    assert_non_null(strstr(failure.text, folder));
}

static void test_bad_public_keys_are_named(void **state)
{
    EVP_PKEY *small = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024);
    EVP_PKEY *p224 = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-224");
    EVP_PKEY *edwards = EVP_PKEY_Q_keygen(NULL, NULL, "ED448");
    struct token_policy *policy = NULL;
    struct failure failure;
    FILE *file;

    (void)state;
    write_public_key("small.pem", small);
    write_public_key("p224.pem", p224);
    write_public_key("edwards.pem", edwards);
    write_text("text.pem", "no key at all");
    write_text("broken.pem", "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----\n");
    file = fopen(path_of("private.pem"), "w");
    PEM_write_PrivateKey(file, rsa, NULL, NULL, 0, NULL, NULL);
    fclose(file);
    file = fopen(path_of("two.pem"), "w");
    PEM_write_PUBKEY(file, rsa);
    PEM_write_PUBKEY(file, ec);
    fclose(file);
    static const struct {
        const char *name, *text;
    } cases[] = {{"small.pem", "1024 bits"},      {"p224.pem", "P-256"},
                 {"edwards.pem", "not RSA, EC"},  {"text.pem", "no public key"},
                 {"broken.pem", "no public key"}, {"private.pem", "private"},
                 {"two.pem", "more than one"},    {"missing.pem", "No such file"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *path = path_of(cases[i].name);

        assert_true(token_policy_new(&(struct token_policy_settings){.public_key_files = &path,
                                                                     .public_key_count = 1},
                                     &policy, &failure) < 0);
        if (!strstr(failure.text, path) || !strstr(failure.text, cases[i].text))
            fail_msg("%s: %s", cases[i].name, failure.text);
    }
    EVP_PKEY_free(small);
    EVP_PKEY_free(p224);
    EVP_PKEY_free(edwards);
}

static void test_keys_that_kid_could_not_tell_apart_are_refused(void **state)
{
    const char *rsa_file, *same, *ec_file;
    struct token_policy *policy = NULL;
    struct failure failure;

    (void)state;
    assert_int_equal(mkdir(path_of("more"), 0700), 0);
    rsa_file = path_of("rsa.pem");
    same = write_public_key("more/rsa.pub", other_rsa);
    assert_int_equal(
        token_policy_new(&(struct token_policy_settings){.public_key_files =
                                                             (const char *const[]){rsa_file, same},
                                                         .public_key_count = 2},
                         &policy, &failure),
        -EEXIST);
    assert_string_equal(failure.text, "two keys are called 'rsa'");
    ec_file = write_public_key("more/rsa.pem", ec); /* distinguished by `alg` */
    token_policy_free(policy_of(&(struct token_policy_settings){
        .public_key_files = (const char *const[]){rsa_file, ec_file}, .public_key_count = 2}));
}

static uint64_t only_number(const struct token_policy_settings *settings)
{
    struct token_policy *policy = policy_of(settings);
    struct token token = {.kid = "name"};
    struct token_key_id id;

    assert_true(token_policy_key(policy, 0, &id));
    assert_string_equal(id.kid, "name");
    assert_in_range(id.number, 1, INT64_MAX);
    assert_int_equal(token_check_key(policy, &token), TOKEN_OK); /* not known which */
    token.key_number = id.number;
    assert_int_equal(token_check_key(policy, &token), TOKEN_OK);
    token.key_number = id.number - 1;
    assert_int_equal(token_check_key(policy, &token), TOKEN_UNKNOWN_KEY);
    token = (struct token){.kid = "name", .issuer = "another", .key_number = id.number};
    assert_int_equal(token_check_key(policy, &token), TOKEN_UNKNOWN_KEY);
    token = (struct token){.kid = "another", .key_number = id.number};
    assert_int_equal(token_check_key(policy, &token), TOKEN_UNKNOWN_KEY);
    token_policy_free(policy);
    return id.number;
}

/* Gateways tell each other. */
static void test_number_of_a_key_is_that_of_its_bytes(void **state)
{
    const char *file = write_text("name", secret);
    const struct token_policy_settings secrets = {.secret_file = file};
    const struct token_policy_settings pairs = {.public_key_files = &file, .public_key_count = 1};
    uint64_t number = only_number(&secrets);

    (void)state;
    assert_true(only_number(&secrets) == number);
    write_text("name", "another secret of thirty-two bytes");
    assert_true(only_number(&secrets) != number);
    write_public_key("name", rsa);
    number = only_number(&pairs);
    write_public_key("name", other_rsa);
    assert_true(only_number(&pairs) != number);
    write_public_key("name", rsa);
    assert_true(only_number(&pairs) == number);
}

static void test_weak_secrets_are_warned_of(void **state)
{
    struct token_policy *policy;

    (void)state;
    policy = secret_policy();
    assert_null(token_policy_warning(policy, 0));
    token_policy_free(policy);
    policy = policy_of(&(struct token_policy_settings){.secret_file = write_text("short", "x")});
    assert_non_null(strstr(token_policy_warning(policy, 0), "1 bytes"));
    assert_null(token_policy_warning(policy, 1));
    token_policy_free(policy);
    policy = policy_of(&(struct token_policy_settings){
        .secret_file = write_file("exposed", secret, strlen(secret), 0640)});
    assert_non_null(strstr(token_policy_warning(policy, 0), "chmod 600"));
    token_policy_free(policy);
}

static void test_policy_survives_each_failed_allocation(void **state)
{
    const char *const files[] = {path_of("rsa.pem"), path_of("ec.pem")};
    struct token_policy_settings settings = {.secret_file = path_of("secret"),
                                             .public_key_files = files,
                                             .public_key_count = 2,
                                             .issuer = "issuer",
                                             .audience = "audience",
                                             .subject_claim = "user_id",
                                             .remembered_tokens = 100};
    struct token_policy *policy = NULL;
    struct failure failure;
    uint64_t n;

    (void)state;
    for (n = 0;; n++) {
        int r;

        mem_fail_after(n);
        r = token_policy_new(&settings, &policy, &failure);
        mem_fail_never();
        if (r == 0)
            break;
        assert_int_equal(r, -ENOMEM);
        assert_string_equal(failure.text, "out of memory");
    }
    assert_true(n > 10);
    token_policy_free(policy);
}

static void test_check_survives_each_failed_allocation(void **state)
{
    struct token_policy *policy = secret_policy();
    struct buffer jwt = BUFFER_INIT;
    struct token token;
    uint64_t n;

    (void)state;
    hs256_token(&jwt, "{\"alg\":\"HS256\",\"kid\":\"secret\"}",
                "{" GOOD ",\"sub\":\"42\",\"lim\":{\"track\":1}}");
    json_set_alloc_funcs(mem_alloc, mem_free);
    for (n = 0;; n++) {
        enum token_fault fault;

        mem_fail_after(n);
        fault = token_check(policy, buffer_slice(&jwt), NOW_MS, &token);
        mem_fail_never();
        if (fault == TOKEN_OK)
            break;
        /* jansson reports some of its failed allocations as syntax errors */
        assert_true(fault == TOKEN_NO_MEMORY || (n >= 3 && fault == TOKEN_MALFORMED));
    }
    json_set_alloc_funcs(malloc, free);
    assert_true(n > 20);
    buffer_done(&jwt);
    token_policy_free(policy);
}

static bool is_of_ada(void *context, const struct token *token, uint64_t now_ms)
{
    assert_int_equal(now_ms, NOW_MS);
    ++*(int *)context;
    return strcmp(token->subject, "ada") == 0;
}

static void test_a_good_token_may_have_been_taken_back(void **state)
{
    struct token_policy *policy = secret_policy();
    struct token token;
    int asked = 0;

    (void)state;
    token_policy_set_revoked(policy, is_of_ada, &asked);
    expect_claims(policy, "{" GOOD ",\"sub\":\"ada\"}", TOKEN_REVOKED, &token);
    expect_claims(policy, "{" GOOD ",\"sub\":\"bob\"}", TOKEN_OK, &token);
    assert_int_equal(asked, 2);
    expect_claims(policy, "{\"exp\":1,\"sub\":\"ada\"}", TOKEN_EXPIRED, &token);
    assert_int_equal(asked, 2);
    token_policy_free(policy);
}

static void test_every_fault_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < TOKEN_FAULT_COUNT; i++)
        assert_non_null(token_fault_name((enum token_fault)i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_says_who_asks_and_what_they_may_do),
        cmocka_unit_test(test_token_has_names_that_it_is_revoked_by),
        cmocka_unit_test(test_each_algorithm_of_the_secret_is_accepted),
        cmocka_unit_test(test_signatures_of_key_pairs_are_verified),
        cmocka_unit_test(test_every_changed_or_missing_byte_is_noticed),
        cmocka_unit_test(test_es256_refuses_numbers_out_of_range),
        cmocka_unit_test(test_header_is_read_to_the_letter),
        cmocka_unit_test(test_parts_are_read_to_the_letter),
        cmocka_unit_test(test_size_of_a_token_is_bounded),
        cmocka_unit_test(test_times_have_a_leeway_of_a_minute),
        cmocka_unit_test(test_claims_of_the_wrong_type_are_refused),
        cmocka_unit_test(test_limits_override_the_defaults),
        cmocka_unit_test(test_limits_that_could_not_be_kept_refuse_the_token),
        cmocka_unit_test(test_issuer_and_audience_are_checked_when_configured),
        cmocka_unit_test(test_public_key_is_no_secret),
        cmocka_unit_test(test_kid_chooses_among_keys_by_file_name_or_thumbprint),
        cmocka_unit_test(test_thumbprint_is_that_of_the_rfc),
        cmocka_unit_test(test_without_any_key_every_token_is_refused),
        cmocka_unit_test(test_secret_file_loses_one_newline),
        cmocka_unit_test(test_bad_key_files_are_named),
        cmocka_unit_test(test_bad_public_keys_are_named),
        cmocka_unit_test(test_keys_that_kid_could_not_tell_apart_are_refused),
        cmocka_unit_test(test_number_of_a_key_is_that_of_its_bytes),
        cmocka_unit_test(test_weak_secrets_are_warned_of),
        cmocka_unit_test(test_policy_survives_each_failed_allocation),
        cmocka_unit_test(test_check_survives_each_failed_allocation),
        cmocka_unit_test(test_a_good_token_may_have_been_taken_back),
        cmocka_unit_test(test_every_fault_has_a_name),
    };

    return cmocka_run_group_tests(tests, make_keys, remove_keys);
}
