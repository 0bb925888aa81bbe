/* tests/support/certificate.h - keys and certificates for tests that serve over TLS. */
#pragma once

#include <openssl/evp.h>

enum certificate_type { CERTIFICATE_EC, CERTIFICATE_RSA };

/* Writes a new key to a file, with a password unless it is NULL. The caller frees it. */
EVP_PKEY *certificate_write_key(const char *path, enum certificate_type type, const char *password);
/* Writes a self-signed certificate of the key, for `name`, valid for an hour. */
void certificate_write(const char *path, EVP_PKEY *key, const char *name);
/* Writes a new key and a certificate for it. */
void certificate_write_pair(enum certificate_type type, const char *name,
                            const char *certificate_path, const char *key_path);

/* An authority that signs certificates. */
struct certificate_authority {
    EVP_PKEY *key;
    struct x509_st *certificate;
};

/* Creates one, with its certificate in a file. */
void certificate_authority_init(struct certificate_authority *authority, const char *path,
                                const char *name);
void certificate_authority_done(struct certificate_authority *authority);
/* Writes a new key and a certificate for it, signed by `authority`: of a server or a client, for
 * `names` ("DNS:localhost,IP:127.0.0.1"), valid from an hour ago until `valid_s` from now. */
void certificate_sign_pair(const struct certificate_authority *authority, const char *names,
                           long valid_s, const char *certificate_path, const char *key_path);
