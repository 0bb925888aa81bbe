/* tests/unit/test_token_padding.c - RSA signatures with manipulated padding, as used in attacks on
 * verifiers that check padding carelessly. */
#include <errno.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>

#include "gateway/front/jwk_set.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/jwt.h"

enum { BYTES = 256 };

static const struct sl_slice text = {"a.b", 3};
static EVP_PKEY *rsa;
static struct jwk_set *set;

static int begin(void **state)
{
    struct buffer json = BUFFER_INIT;
    struct failure failure;
    int r;

    (void)state;
    rsa = jwt_key_new("RSA");
    buffer_append_str(&json, "{\"keys\":[");
    jwt_append_jwk(&json, rsa, "");
    buffer_append_str(&json, "]}");
    r = jwk_set_parse(buffer_slice(&json), &set, &failure);
    buffer_done(&json);
    return r;
}

static int end(void **state)
{
    (void)state;
    jwk_set_free(set);
    EVP_PKEY_free(rsa);
    return 0;
}

static int verify(enum token_algorithm algorithm, const unsigned char *signature)
{
    return token_key_verify(jwk_set_key(set, 0), algorithm, text,
                            sl_slice((const char *)signature, BYTES));
}

/* --- PKCS #1, version 1.5 --- */

/* Applies the private key to the bytes as they are. */
static int verify_encoded(const unsigned char encoded[static BYTES])
{
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new(rsa, NULL);
    unsigned char signature[BYTES];
    size_t size = sizeof(signature);

    assert_int_equal(EVP_PKEY_sign_init(context), 1);
    assert_int_equal(EVP_PKEY_CTX_set_rsa_padding(context, RSA_NO_PADDING), 1);
    assert_int_equal(EVP_PKEY_sign(context, signature, &size, encoded, BYTES), 1);
    EVP_PKEY_CTX_free(context);
    return verify(TOKEN_RS256, signature);
}

/* 00 01 ff ... ff 00, then `info`, the hash and `behind` zeros. */
static int verify_info(const unsigned char *info, size_t info_size, size_t behind)
{
    unsigned char encoded[BYTES], hash[SHA256_DIGEST_LENGTH];
    size_t padding = BYTES - 3 - info_size - sizeof(hash) - behind;

    memset(encoded, 0, sizeof(encoded));
    encoded[1] = 1;
    memset(encoded + 2, 0xff, padding);
    memcpy(encoded + 3 + padding, info, info_size);
    SHA256((const unsigned char *)text.data, text.size, hash);
    memcpy(encoded + 3 + padding + info_size, hash, sizeof(hash));
    return verify_encoded(encoded);
}

#define OID 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01

static const unsigned char good_info[] = {0x30, 0x31, 0x30, 0x0d, OID, 0x05, 0x00, 0x04, 0x20};

static void test_what_names_the_hash_is_read_to_the_letter(void **state)
{
    static const unsigned char long_length[] = {0x30, 0x81, 0x31, 0x30, 0x0d,
                                                OID,  0x05, 0x00, 0x04, 0x20};
    static const unsigned char long_inner[] = {0x30, 0x32, 0x30, 0x81, 0x0d,
                                               OID,  0x05, 0x00, 0x04, 0x20};
    static const unsigned char indefinite[] = {0x30, 0x80, 0x30, 0x0d, OID, 0x05, 0x00, 0x04, 0x20};
    static const unsigned char sha512[] = {0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60,
                                           0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02,
                                           0x03, 0x05, 0x00, 0x04, 0x20};
    static const unsigned char parameters[] = {0x30, 0x33, 0x30, 0x0f, OID, 0x04,
                                               0x02, 0x41, 0x41, 0x04, 0x20};
    static const unsigned char bit_string[] = {0x30, 0x31, 0x30, 0x0d, OID, 0x05, 0x00, 0x03, 0x20};
    static const struct {
        const unsigned char *info;
        size_t size;
    } bad[] = {{long_length, sizeof(long_length)},
               {long_inner, sizeof(long_inner)},
               {indefinite, sizeof(indefinite)},
               {sha512, sizeof(sha512)},
               {parameters, sizeof(parameters)},
               {bit_string, sizeof(bit_string)},
               {good_info, 0}};

    (void)state;
    assert_int_equal(verify_info(good_info, sizeof(good_info), 0), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(verify_info(bad[i].info, bad[i].size, 0), -EBADMSG);
}

/* Attacks hide a cube root in the room after the hash. */
static void test_nothing_stands_behind_the_hash(void **state)
{
    (void)state;
    for (size_t behind = 1; behind < 150; behind += 37)
        assert_int_equal(verify_info(good_info, sizeof(good_info), behind), -EBADMSG);
}

static void test_padding_is_one_run_of_ff(void **state)
{
    unsigned char encoded[BYTES], good[BYTES];
    const size_t info_at = BYTES - sizeof(good_info) - SHA256_DIGEST_LENGTH;

    (void)state;
    memset(good, 0xff, sizeof(good));
    good[0] = 0;
    good[1] = 1;
    good[info_at - 1] = 0;
    memcpy(good + info_at, good_info, sizeof(good_info));
    SHA256((const unsigned char *)text.data, text.size, good + info_at + sizeof(good_info));
    assert_int_equal(verify_encoded(good), 0);
    for (size_t at = 1; at < BYTES; at += 5) {
        memcpy(encoded, good, sizeof(good));
        encoded[at] ^= 0x40;
        assert_int_equal(verify_encoded(encoded), -EBADMSG);
    }
    memcpy(encoded, good, sizeof(good));
    encoded[1] = 2; /* that of encryption */
    assert_int_equal(verify_encoded(encoded), -EBADMSG);
    encoded[1] = 0;
    assert_int_equal(verify_encoded(encoded), -EBADMSG);
    memcpy(encoded, good, sizeof(good));
    encoded[20] = 0; /* the padding ends too early */
    assert_int_equal(verify_encoded(encoded), -EBADMSG);
}

/* --- PSS --- */

static int verify_pss(const EVP_MD *digest, const EVP_MD *mask, int salt, enum token_algorithm as)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY_CTX *details = NULL;
    unsigned char signature[BYTES];
    size_t size = sizeof(signature);

    assert_int_equal(EVP_DigestSignInit(context, &details, digest, NULL, rsa), 1);
    assert_int_equal(EVP_PKEY_CTX_set_rsa_padding(details, RSA_PKCS1_PSS_PADDING), 1);
    assert_int_equal(EVP_PKEY_CTX_set_rsa_pss_saltlen(details, salt), 1);
    assert_int_equal(EVP_PKEY_CTX_set_rsa_mgf1_md(details, mask), 1);
    assert_int_equal(
        EVP_DigestSign(context, signature, &size, (const unsigned char *)text.data, text.size), 1);
    EVP_MD_CTX_free(context);
    return verify(as, signature);
}

static void test_salt_and_mask_are_those_of_the_algorithm(void **state)
{
    static const int salts[] = {0, 1, 20, 31, 33, 48, 64, BYTES - 2 - 32};

    (void)state;
    assert_int_equal(verify_pss(EVP_sha256(), EVP_sha256(), 32, TOKEN_PS256), 0);
    assert_int_equal(verify_pss(EVP_sha384(), EVP_sha384(), 48, TOKEN_PS384), 0);
    assert_int_equal(verify_pss(EVP_sha512(), EVP_sha512(), 64, TOKEN_PS512), 0);
    for (size_t i = 0; i < sizeof(salts) / sizeof(salts[0]); i++)
        assert_int_equal(verify_pss(EVP_sha256(), EVP_sha256(), salts[i], TOKEN_PS256), -EBADMSG);
    assert_int_equal(verify_pss(EVP_sha256(), EVP_sha1(), 32, TOKEN_PS256), -EBADMSG);
    assert_int_equal(verify_pss(EVP_sha256(), EVP_sha512(), 32, TOKEN_PS256), -EBADMSG);
    assert_int_equal(verify_pss(EVP_sha256(), EVP_sha256(), 32, TOKEN_PS384), -EBADMSG);
    assert_int_equal(verify_pss(EVP_sha256(), EVP_sha256(), 32, TOKEN_RS256), -EBADMSG);
    assert_int_equal(verify_pss(EVP_sha512_256(), EVP_sha512_256(), 32, TOKEN_PS256), -EBADMSG);
}

/* --- the number itself --- */

static void test_number_is_below_the_modulus(void **state)
{
    unsigned char signature[BYTES];
    BIGNUM *n = NULL, *number = BN_new();

    (void)state;
    EVP_PKEY_get_bn_param(rsa, "n", &n);
    for (int i = 0; i < 5; i++) { /* 0, 1, n - 1, n, n + 1 */
        if (i < 2)
            BN_set_word(number, (BN_ULONG)i);
        else
            BN_copy(number, n);
        if (i == 2)
            BN_sub_word(number, 1);
        if (i == 4)
            BN_add_word(number, 1);
        BN_bn2binpad(number, signature, BYTES);
        assert_int_equal(verify(TOKEN_RS256, signature), -EBADMSG);
        assert_int_equal(verify(TOKEN_PS256, signature), -EBADMSG);
    }
    BN_free(n);
    BN_free(number);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_names_the_hash_is_read_to_the_letter),
        cmocka_unit_test(test_nothing_stands_behind_the_hash),
        cmocka_unit_test(test_padding_is_one_run_of_ff),
        cmocka_unit_test(test_salt_and_mask_are_those_of_the_algorithm),
        cmocka_unit_test(test_number_is_below_the_modulus),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
