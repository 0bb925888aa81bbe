#include "tests/support/certificate.h"

#include <stdio.h>
#include <string.h>

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "tests/support/cmocka_all.h"

EVP_PKEY *certificate_write_key(const char *path, enum certificate_type type, const char *password)
{
    EVP_PKEY *key = type == CERTIFICATE_RSA ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
    FILE *file = fopen(path, "w");

    assert_non_null(key);
    assert_non_null(file);
    assert_int_equal(PEM_write_PrivateKey(file, key, password ? EVP_aes_128_cbc() : NULL,
                                          (const unsigned char *)password,
                                          password ? (int)strlen(password) : 0, NULL, NULL),
                     1);
    fclose(file);
    return key;
}

void certificate_write(const char *path, EVP_PKEY *key, const char *name)
{
    X509 *certificate = X509_new();
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    X509_set_version(certificate, X509_VERSION_3);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    X509_set_pubkey(certificate, key);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    fclose(file);
    X509_free(certificate);
}

void certificate_write_pair(enum certificate_type type, const char *name,
                            const char *certificate_path, const char *key_path)
{
    EVP_PKEY *key = certificate_write_key(key_path, type, NULL);

    certificate_write(certificate_path, key, name);
    EVP_PKEY_free(key);
}

/* ---- signed by an authority ---- */

enum { HOUR_S = 3600 };

static void extend(X509 *certificate, int which, const char *value)
{
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, which, value);

    assert_non_null(extension);
    assert_int_equal(X509_add_ext(certificate, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

static X509 *make(EVP_PKEY *key, const char *name, long serial, long valid_s)
{
    X509 *certificate = X509_new();

    X509_set_version(certificate, X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -HOUR_S);
    X509_gmtime_adj(X509_getm_notAfter(certificate), valid_s);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *)name, -1, -1, 0);
    X509_set_pubkey(certificate, key);
    return certificate;
}

static void write_signed(X509 *certificate, const struct certificate_authority *authority,
                         const char *path)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    X509_set_issuer_name(certificate, X509_get_subject_name(authority->certificate));
    assert_true(X509_sign(certificate, authority->key, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    fclose(file);
}

void certificate_authority_init(struct certificate_authority *authority, const char *path,
                                const char *name)
{
    authority->key = EVP_EC_gen("P-256");
    authority->certificate = make(authority->key, name, 1, HOUR_S);
    extend(authority->certificate, NID_basic_constraints, "critical,CA:TRUE");
    write_signed(authority->certificate, authority, path);
}

void certificate_authority_done(struct certificate_authority *authority)
{
    EVP_PKEY_free(authority->key);
    X509_free(authority->certificate);
}

void certificate_sign_pair(const struct certificate_authority *authority, const char *names,
                           long valid_s, const char *certificate_path, const char *key_path)
{
    static long serial = 1;
    EVP_PKEY *key = certificate_write_key(key_path, CERTIFICATE_EC, NULL);
    X509 *certificate = make(key, "a test", ++serial, valid_s);

    extend(certificate, NID_subject_alt_name, names);
    write_signed(certificate, authority, certificate_path);
    X509_free(certificate);
    EVP_PKEY_free(key);
}
