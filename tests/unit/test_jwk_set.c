#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/bn.h>

#include "base/alloc.h"
#include "base/base64url.h"
#include "gateway/front/jwk_set.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/jwt.h"

static const struct signer {
    const char *alg, *kind;
} signers[] = {
    {"RS256", "RSA"},   {"RS384", "RSA"},     {"RS512", "RSA"},   {"PS256", "RSA"},
    {"PS384", "RSA"},   {"PS512", "RSA"},     {"ES256", "P-256"}, {"ES384", "P-384"},
    {"ES512", "P-521"}, {"EdDSA", "ED25519"},
};

enum { SIGNER_COUNT = sizeof(signers) / sizeof(signers[0]) };

static EVP_PKEY *keys[SIGNER_COUNT]; /* of each kind one key */

static int make_keys(void **state)
{
    (void)state;
    for (int i = 0; i < SIGNER_COUNT; i++) {
        bool is_known = i > 0 && strcmp(signers[i].kind, signers[i - 1].kind) == 0;

        keys[i] = is_known ? keys[i - 1] : jwt_key_new(signers[i].kind);
        if (is_known)
            EVP_PKEY_up_ref(keys[i]);
    }
    return 0;
}

static int free_keys(void **state)
{
    (void)state;
    for (int i = 0; i < SIGNER_COUNT; i++)
        EVP_PKEY_free(keys[i]);
    return 0;
}

/* Parses a copy without a byte after it, so that reading past the end is noticed. */
static int parse(const char *text, struct jwk_set **ret_set, struct failure *reterr)
{
    char *copy = mem_copy(text, strlen(text));
    int r = jwk_set_parse(sl_slice(copy, strlen(text)), ret_set, reterr);

    mem_free(copy);
    return r;
}

static struct jwk_set *set_of(struct buffer *json)
{
    struct jwk_set *set = NULL;
    struct failure failure = {""};

    if (parse(buffer_str(json), &set, &failure) < 0)
        fail_msg("%s", failure.text);
    return set;
}

/* A set of this one key. */
static struct jwk_set *set_of_key(const EVP_PKEY *key, const char *more)
{
    struct buffer json = BUFFER_INIT;
    struct jwk_set *set;

    buffer_append_str(&json, "{\"keys\":[");
    jwt_append_jwk(&json, key, more);
    buffer_append_str(&json, "]}");
    set = set_of(&json);
    buffer_done(&json);
    return set;
}

static void expect_refused(const char *json, const char *why)
{
    struct jwk_set *set = NULL;
    struct failure failure = {""};

    assert_true(parse(json, &set, &failure) < 0);
    assert_null(set);
    if (!strstr(failure.text, why))
        fail_msg("%.100s: '%s', not '%s'", json, failure.text, why);
}

static void expect_key_refused(const EVP_PKEY *key, const char *more, const char *why)
{
    struct buffer json = BUFFER_INIT;

    buffer_append_str(&json, "{\"keys\":[");
    jwt_append_jwk(&json, key, more);
    buffer_append_str(&json, "]}");
    expect_refused(buffer_str(&json), why);
    buffer_done(&json);
}

/* Splits at the last dot. */
static int verify(const struct token_key *key, enum token_algorithm algorithm, struct buffer *jwt)
{
    const char *dot = memrchr(jwt->data, '.', jwt->size);
    struct sl_slice text = sl_slice(jwt->data, (size_t)(dot - jwt->data));
    struct buffer signature = BUFFER_INIT;
    int r;

    assert_int_equal(base64url_decode(sl_slice_from(buffer_slice(jwt), text.size + 1), &signature),
                     0);
    r = token_key_verify(key, algorithm, text, buffer_slice(&signature));
    buffer_done(&signature);
    return r;
}

static enum token_algorithm algorithm_of(const char *alg)
{
    enum token_algorithm algorithm;

    assert_true(token_algorithm_find(sl_slice_str(alg), &algorithm));
    return algorithm;
}

static void test_each_algorithm_verifies_what_it_signed_and_nothing_else(void **state)
{
    struct buffer jwt = BUFFER_INIT;

    (void)state;
    for (int i = 0; i < SIGNER_COUNT; i++) {
        struct jwk_set *set = set_of_key(keys[i], "");
        const struct token_key *key = jwk_set_key(set, 0);

        assert_int_equal(jwk_set_count(set), 1);
        for (int j = 0; j < SIGNER_COUNT; j++) {
            enum token_algorithm algorithm = algorithm_of(signers[j].alg);
            bool is_of_kind = strcmp(signers[i].kind, signers[j].kind) == 0;

            assert_int_equal(token_key_takes(key, algorithm), is_of_kind);
            if (!is_of_kind)
                continue;
            jwt_sign(&jwt, "{}", "{}", keys[i], signers[i].alg);
            assert_int_equal(verify(key, algorithm, &jwt), i == j ? 0 : -EBADMSG);
        }
        for (int h = TOKEN_HS256; h <= TOKEN_HS512; h++)
            assert_false(token_key_takes(key, (enum token_algorithm)h));
        jwk_set_free(set);
    }
    buffer_done(&jwt);
}

static void test_every_changed_byte_and_length_of_a_signature_is_noticed(void **state)
{
    struct buffer jwt = BUFFER_INIT, bytes = BUFFER_INIT;

    (void)state;
    for (int i = 0; i < SIGNER_COUNT; i++) {
        struct jwk_set *set = set_of_key(keys[i], "");
        const struct token_key *key = jwk_set_key(set, 0);
        enum token_algorithm algorithm = algorithm_of(signers[i].alg);
        struct sl_slice text;
        const char *dot;

        jwt_sign(&jwt, "{}", "{}", keys[i], signers[i].alg);
        dot = memrchr(jwt.data, '.', jwt.size);
        text = sl_slice(jwt.data, (size_t)(dot - jwt.data));
        buffer_clear(&bytes);
        assert_int_equal(base64url_decode(sl_slice_from(buffer_slice(&jwt), text.size + 1), &bytes),
                         0);
        for (size_t at = 0; at < bytes.size; at += 7) {
            bytes.data[at] ^= 0x10;
            assert_int_equal(token_key_verify(key, algorithm, text, buffer_slice(&bytes)),
                             -EBADMSG);
            bytes.data[at] ^= 0x10;
        }
        for (size_t size = 0; size < bytes.size; size += 11)
            assert_int_equal(token_key_verify(key, algorithm, text, sl_slice(bytes.data, size)),
                             -EBADMSG);
        buffer_append_char(&bytes, 0);
        assert_int_equal(token_key_verify(key, algorithm, text, buffer_slice(&bytes)), -EBADMSG);
        memset(bytes.data, 0, bytes.size);
        bytes.size--;
        assert_int_equal(token_key_verify(key, algorithm, text, buffer_slice(&bytes)), -EBADMSG);
        memset(bytes.data, 0xff, bytes.size);
        assert_int_equal(token_key_verify(key, algorithm, text, buffer_slice(&bytes)), -EBADMSG);
        jwk_set_free(set);
    }
    buffer_done(&jwt);
    buffer_done(&bytes);
}

/* r and s of 0, 1, n - 1 and n, on each curve: the special cases of ECDSA. */
static void test_numbers_at_the_edge_of_the_order_are_no_signature(void **state)
{
    static const char *const orders[] = {
        "FFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551",
        "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFC7634D81F4372DDF581A0DB248B0A77AECEC196ACC"
        "C52973",
        "01FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFA51868783BF2F966B7FCC"
        "01"
        "48F709A5D03BB5C9B8899C47AEBB6FB71E91386409"};
    unsigned char signature[2 * 66];

    (void)state;
    for (int curve = 0; curve < 3; curve++) {
        const struct signer *signer = &signers[6 + curve];
        struct jwk_set *set = set_of_key(keys[6 + curve], "");
        int bytes = (EVP_PKEY_get_bits(keys[6 + curve]) + 7) / 8;
        BIGNUM *numbers[4] = {BN_new(), BN_new(), NULL, NULL};

        BN_zero(numbers[0]);
        BN_one(numbers[1]);
        BN_hex2bn(&numbers[2], orders[curve]);
        numbers[3] = BN_dup(numbers[2]);
        BN_sub_word(numbers[2], 1);
        for (int i = 0; i < 16; i++) {
            BN_bn2binpad(numbers[i / 4], signature, bytes);
            BN_bn2binpad(numbers[i % 4], signature + bytes, bytes);
            assert_int_equal(token_key_verify(jwk_set_key(set, 0), algorithm_of(signer->alg),
                                              SL_SLICE("a.b"),
                                              sl_slice((char *)signature, 2 * (size_t)bytes)),
                             -EBADMSG);
        }
        for (int i = 0; i < 4; i++)
            BN_free(numbers[i]);
        jwk_set_free(set);
    }
}

static void test_alg_of_a_key_pins_it(void **state)
{
    struct jwk_set *set = set_of_key(keys[0], ",\"alg\":\"PS384\",\"use\":\"sig\",\"kid\":\"a\"");

    (void)state;
    for (int i = 0; i < TOKEN_ALGORITHM_COUNT; i++)
        assert_int_equal(token_key_takes(jwk_set_key(set, 0), (enum token_algorithm)i),
                         i == TOKEN_PS384);
    jwk_set_free(set);
}

static void test_key_is_called_by_kid_and_thumbprint(void **state)
{
    struct jwk_set *named = set_of_key(keys[0], ",\"kid\":\"2026-11\"");
    struct jwk_set *nameless = set_of_key(keys[0], "");
    const char *thumbprint = token_key_thumbprint(jwk_set_key(named, 0));

    (void)state;
    assert_string_equal(token_key_name(jwk_set_key(named, 0)), "2026-11");
    assert_string_equal(token_key_name(jwk_set_key(nameless, 0)), thumbprint);
    assert_true(token_key_is_called(jwk_set_key(named, 0), sl_slice_str(thumbprint)));
    assert_true(token_key_is_called(jwk_set_key(named, 0), SL_SLICE("2026-11")));
    assert_false(token_key_is_called(jwk_set_key(named, 0), SL_SLICE("2026-1")));
    jwk_set_free(named);
    jwk_set_free(nameless);
}

/* The key of RFC 8037, appendix A.3. */
static void test_thumbprint_of_ed25519_is_that_of_the_rfc(void **state)
{
    struct buffer json = BUFFER_INIT;
    struct jwk_set *set;

    (void)state;
    buffer_append_str(&json, "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":"
                             "\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}");
    set = set_of(&json);
    assert_string_equal(token_key_name(jwk_set_key(set, 0)),
                        "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    jwk_set_free(set);
    buffer_done(&json);
}

static void test_what_is_for_something_else_is_skipped_and_counted(void **state)
{
    struct buffer json = BUFFER_INIT;
    struct jwk_set *set;

    (void)state;
    buffer_append_str(&json, "{\"x\":1,\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"},"
                             "{\"kty\":\"EC\",\"crv\":\"secp256k1\",\"x\":\"AA\",\"y\":\"AA\"},"
                             "{\"kty\":\"AKP\",\"alg\":\"ML-DSA-44\"},7,");
    jwt_append_jwk(&json, keys[0], ",\"use\":\"enc\"");
    buffer_append_char(&json, ',');
    jwt_append_jwk(&json, keys[6], ",\"key_ops\":[\"verify\"],\"x5c\":[\"\"]");
    buffer_append_str(&json, "]}");
    set = set_of(&json);
    assert_int_equal(jwk_set_count(set), 1);
    assert_int_equal(jwk_set_skipped(set), 5);
    assert_string_equal(jwk_set_skipped_why(set),
                        "keys[0]: it is a secret (oct), which is not accepted from a set");
    jwk_set_free(set);
    buffer_done(&json);
}

static void test_members_that_forbid_verifying_are_honoured(void **state)
{
    static const struct {
        int key;
        const char *more, *why;
    } cases[] = {
        {0, ",\"use\":\"enc\"", "use is not sig"},
        {0, ",\"use\":[\"sig\"]", "use is not sig"},
        {0, ",\"use\":\"\"", "use is not sig"},
        {6, ",\"key_ops\":[\"encrypt\"]", "key_ops"},
        {6, ",\"key_ops\":[]", "key_ops"},
        {6, ",\"key_ops\":\"verify\"", "key_ops"},
        {6, ",\"use\":\"sig\",\"key_ops\":[\"sign\"]", "key_ops"},
        {0, ",\"alg\":\"RSA-OAEP\"", "none of ours"},
        {0, ",\"alg\":\"none\"", "none of ours"},
        {0, ",\"alg\":256", "none of ours"},
        {0, ",\"alg\":\"HS256\"", "another kind"},
        {0, ",\"alg\":\"ES256\"", "another kind"},
        {6, ",\"alg\":\"ES384\"", "another kind"},
        {9, ",\"alg\":\"ES256\"", "another kind"},
        {0, ",\"kid\":7", "its kid"},
        {0, ",\"kid\":\"\"", "its kid"},
        {0, ",\"d\":\"AQAB\"", "private"},
        {6, ",\"d\":\"\"", "private"},
        {9, ",\"d\":null", "private"},
        {9, ",\"k\":\"AAAA\"", "private"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_key_refused(keys[cases[i].key], cases[i].more, cases[i].why);
}

static void test_numbers_that_are_no_key_are_refused(void **state)
{
#define POINT "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE"
    static const struct {
        const char *key, *why;
    } cases[] = {
        {"{}", "kty"},
        {"{\"kty\":7}", "kty"},
        {"{\"kty\":\"rsa\"}", "kty"},
        {"{\"kty\":\"RSA\",\"e\":\"AQAB\"}", "its n is no text"},
        {"{\"kty\":\"RSA\",\"n\":\"A===\",\"e\":\"AQAB\"}", "its n is not base64url"},
        {"{\"kty\":\"RSA\",\"n\":\"\",\"e\":\"AQAB\"}", "its n has 0 bytes"},
        {"{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}", "17 bits"},
        {"{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQABAQABAQAB\"}", "its e has 9 bytes"},
        {"{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQABAQABAQABAQAB\"}", "its e is too long"},
        {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" POINT "\",\"y\":\"" POINT "\"}", "no key"},
        {"{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" POINT "\",\"y\":\"AQ\"}",
         "its y has 1 bytes"},
        {"{\"kty\":\"EC\",\"crv\":\"P-384\",\"x\":\"" POINT "\",\"y\":\"" POINT "\"}",
         "its x has 32 bytes"},
        {"{\"kty\":\"EC\",\"x\":\"" POINT "\",\"y\":\"" POINT "\"}", "its crv"},
        {"{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"" POINT "\"}", "its crv"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AQ\"}", "its x has 1 bytes"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":"
         "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}",
         "small order"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":"
         "\"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}",
         "small order"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"7f_______________________________________"
         "38\"}",
         "small order"},
        {"{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"JuiVj8KyJ7BFw_SJ8u-Y8NXfrAXTxjM5sTgCiG1T_"
         "IU\"}",
         "small order"},
    };
    char json[400];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(json, sizeof(json), "{\"keys\":[%s]}", cases[i].key);
        expect_refused(json, cases[i].why);
    }
}

static void expect_rsa_refused(const BIGNUM *n, unsigned long exponent, const char *why)
{
    struct buffer json = BUFFER_INIT;
    unsigned char bytes[1100],
        e[4] = {(unsigned char)(exponent >> 24), (unsigned char)(exponent >> 16),
                (unsigned char)(exponent >> 8), (unsigned char)exponent};

    BN_bn2bin(n, bytes);
    buffer_append_str(&json, "{\"keys\":[{\"kty\":\"RSA\",\"n\":\"");
    base64url_encode(sl_slice((char *)bytes, (size_t)BN_num_bytes(n)), &json);
    buffer_append_str(&json, "\",\"e\":\"");
    base64url_encode(sl_slice((char *)e, sizeof(e)), &json);
    buffer_append_str(&json, "\"}]}");
    expect_refused(buffer_str(&json), why);
    buffer_done(&json);
}

static void test_rsa_keys_that_do_not_protect_are_refused(void **state)
{
    BN_CTX *context = BN_CTX_new();
    BIGNUM *n = BN_new(), *product = BN_new(), *base = BN_new(), *power = BN_new();

    (void)state;
    BN_rand(n, 2048, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ODD);
    expect_rsa_refused(n, 1, "its exponent");
    expect_rsa_refused(n, 65536, "its exponent");
    BN_rand(n, 2047, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ODD);
    expect_rsa_refused(n, 65537, "2047 bits");
    BN_rand(n, 8193, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ODD);
    expect_rsa_refused(n, 65537, "8193 bits");
    BN_rand(n, 2048, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY);
    BN_clear_bit(n, 0);
    expect_rsa_refused(n, 65537, "even");
    /* what the key generator of CVE-2017-15361 produces: a power of 65537 modulo the small
     * primes */
    BN_one(product);
    for (unsigned prime = 3; prime <= 167; prime += 2) {
        bool is_prime = true;

        for (unsigned i = 3; i * i <= prime; i += 2)
            is_prime &= prime % i != 0;
        if (is_prime)
            BN_mul_word(product, prime);
    }
    BN_set_word(base, 65537);
    BN_set_word(power, 123457);
    BN_mod_exp(power, base, power, product, context);
    BN_rand(n, 2048, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY);
    BN_mod(base, n, product, context);
    BN_sub(n, n, base);
    BN_add(n, n, power);
    if (!BN_is_odd(n))
        BN_add(n, n, product);
    expect_rsa_refused(n, 65537, "CVE-2017-15361");
    BN_free(n);
    BN_free(product);
    BN_free(base);
    BN_free(power);
    BN_CTX_free(context);
}

static void test_bad_sets_are_refused_as_a_whole(void **state)
{
    static const struct {
        const char *json, *why;
    } cases[] = {
        {"", "not JSON"},
        {"{", "not JSON"},
        {"{\"keys\":[]} x", "not JSON"},
        {"{\"keys\":[],\"keys\":[]}", "not JSON"},
        {"[]", "not an object"},
        {"{}", "not an object"},
        {"{\"keys\":{}}", "not an object"},
        {"{\"keys\":null}", "not an object"},
        {"{\"keys\":[]}", "empty"},
        {"{\"keys\":[{\"kty\":\"oct\",\"k\":\"AAAA\"}]}", "keys[0]: it is a secret"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_refused(cases[i].json, cases[i].why);
}

static void test_sets_are_bounded(void **state)
{
    struct buffer json = BUFFER_INIT;

    (void)state;
    buffer_append_str(&json, "{\"keys\":[0");
    for (int i = 0; i < JWK_SET_MAX_KEYS; i++)
        buffer_append_str(&json, ",0");
    buffer_append_str(&json, "]}");
    expect_refused(buffer_str(&json), "more than 128");
    buffer_clear(&json);
    buffer_append_str(&json, "{\"keys\":[]");
    memset(buffer_reserve(&json, JWK_SET_MAX_BYTES), ' ', JWK_SET_MAX_BYTES);
    json.size += JWK_SET_MAX_BYTES;
    expect_refused(buffer_str(&json), "more than 262144 bytes");
    buffer_clear(&json);
    for (int i = 0; i < 100000; i++)
        buffer_append_char(&json, '[');
    expect_refused(buffer_str(&json), "not JSON");
    buffer_done(&json);
}

static void expect_unreadable(const char *path)
{
    struct buffer bytes = BUFFER_INIT;
    struct failure failure = {""};

    assert_true(jwk_set_load(path, &bytes, &failure) < 0);
    assert_non_null(strstr(failure.text, path));
    buffer_done(&bytes);
}

static void test_files_are_read_to_one_byte_more_than_they_may_have(void **state)
{
    char path[] = "/tmp/sluice-test-set-XXXXXX";
    struct buffer bytes = BUFFER_INIT;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0 && ftruncate(fd, JWK_SET_MAX_BYTES * 3) == 0);
    close(fd);
    assert_int_equal(jwk_set_load(path, &bytes, NULL), 0);
    assert_int_equal(bytes.size, JWK_SET_MAX_BYTES + 1);
    buffer_done(&bytes);
    unlink(path);
    expect_unreadable(path);
    expect_unreadable("/tmp");
    expect_unreadable("/dev/zero");
}

static void test_reading_survives_each_failed_allocation(void **state)
{
    struct buffer json = BUFFER_INIT;
    struct jwk_set *set = NULL;
    struct failure failure;
    uint64_t n;
    int r = -ENOMEM;

    (void)state;
    buffer_append_str(&json, "{\"keys\":[");
    for (int i = 0; i < SIGNER_COUNT; i++) {
        jwt_append_jwk(&json, keys[i], "");
        buffer_append_char(&json, i < SIGNER_COUNT - 1 ? ',' : ']');
    }
    buffer_append_char(&json, '}');
    for (n = 0; r != 0; n++) {
        mem_fail_after(n);
        r = jwk_set_parse(buffer_slice(&json), &set, &failure);
        mem_fail_never();
        assert_true(r == 0 || r == -ENOMEM);
    }
    assert_true(n > 20);
    assert_int_equal(jwk_set_count(set), SIGNER_COUNT);
    jwk_set_free(set);
    buffer_done(&json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_algorithm_verifies_what_it_signed_and_nothing_else),
        cmocka_unit_test(test_every_changed_byte_and_length_of_a_signature_is_noticed),
        cmocka_unit_test(test_numbers_at_the_edge_of_the_order_are_no_signature),
        cmocka_unit_test(test_alg_of_a_key_pins_it),
        cmocka_unit_test(test_key_is_called_by_kid_and_thumbprint),
        cmocka_unit_test(test_thumbprint_of_ed25519_is_that_of_the_rfc),
        cmocka_unit_test(test_what_is_for_something_else_is_skipped_and_counted),
        cmocka_unit_test(test_members_that_forbid_verifying_are_honoured),
        cmocka_unit_test(test_numbers_that_are_no_key_are_refused),
        cmocka_unit_test(test_rsa_keys_that_do_not_protect_are_refused),
        cmocka_unit_test(test_bad_sets_are_refused_as_a_whole),
        cmocka_unit_test(test_sets_are_bounded),
        cmocka_unit_test(test_files_are_read_to_one_byte_more_than_they_may_have),
        cmocka_unit_test(test_reading_survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, make_keys, free_keys);
}
