#include "tests/support/certificate.h"

#include <stdio.h>
#include <string.h>

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

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
