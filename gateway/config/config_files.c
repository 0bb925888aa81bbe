/* config_files.c - reads keys and certificates like the workers will, only to check them.
 *
 * Token keys are read by the same function as in workers (front/token.h). For TLS the certificate
 * and its key must be readable, without a password, and belong together. Blocks on the disk: before
 * there are workers, and in the parent when the settings are reloaded. */
#include "gateway/config/config_files.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "gateway/front/audit_file.h"
#include "gateway/front/token.h"

static int check_token_keys(const struct config *config, enum config_option option,
                            const struct token_policy_settings *settings, struct failure *reterr)
{
    struct token_policy *policy = NULL;
    struct failure why;
    int r;

    r = token_policy_new(settings, &policy, &why);
    token_policy_free(policy);
    if (r < 0)
        return config_refuse(config, option, reterr, r, "%s", why.text);
    return 0;
}

static int open_file(const struct config *config, enum config_option option, const char *path,
                     FILE **ret_file, struct failure *reterr)
{
    *ret_file = fopen(path, "re");
    if (!*ret_file)
        return config_refuse(config, option, reterr, -errno, "cannot read '%s': %s", path,
                             strerror(errno));
    return 0;
}

/* Otherwise OpenSSL would ask for the password of an encrypted key at the terminal. */
static int give_no_password(char *room, int size, int writing, void *owner)
{
    (void)room;
    (void)size;
    (void)writing;
    (void)owner;
    return -1;
}

static int read_certificate(const struct config *config, X509 **ret_certificate,
                            struct failure *reterr)
{
    FILE *file;
    int r;

    r = open_file(config, CONFIG_OPTION_tls_cert, config->tls_cert, &file, reterr);
    if (r < 0)
        return r;
    *ret_certificate = PEM_read_X509(file, NULL, give_no_password, NULL);
    fclose(file);
    if (!*ret_certificate)
        return config_refuse(config, CONFIG_OPTION_tls_cert, reterr, -EINVAL,
                             "'%s' has no certificate in PEM", config->tls_cert);
    return 0;
}

static int read_key(const struct config *config, EVP_PKEY **ret_key, struct failure *reterr)
{
    FILE *file;
    int r;

    r = open_file(config, CONFIG_OPTION_tls_key, config->tls_key, &file, reterr);
    if (r < 0)
        return r;
    *ret_key = PEM_read_PrivateKey(file, NULL, give_no_password, NULL);
    fclose(file);
    if (!*ret_key)
        return config_refuse(config, CONFIG_OPTION_tls_key, reterr, -EINVAL,
                             "'%s' has no private key in PEM without a password", config->tls_key);
    return 0;
}

static int check_certificate(const struct config *config, struct failure *reterr)
{
    X509 *certificate = NULL;
    EVP_PKEY *key = NULL;
    int r;

    r = read_certificate(config, &certificate, reterr);
    if (r == 0)
        r = read_key(config, &key, reterr);
    if (r == 0 && X509_check_private_key(certificate, key) != 1)
        r = config_refuse(config, CONFIG_OPTION_tls_key, reterr, -EINVAL,
                          "'%s' is not the key of the certificate in '%s'", config->tls_key,
                          config->tls_cert);
    EVP_PKEY_free(key);
    X509_free(certificate);
    ERR_clear_error();
    return r;
}

static int check_audit_log(const struct config *config, struct failure *reterr)
{
    const char *path = config_audit_log(config);
    struct failure why;
    int fd = path ? audit_file_open(path, &why) : -1;

    if (path && fd < 0)
        return config_refuse(config, CONFIG_OPTION_audit_log, reterr, fd, "%s", why.text);
    if (fd >= 0)
        close(fd);
    return 0;
}

int config_check_files(const struct config *config, struct failure *reterr)
{
    const struct token_policy_settings secret = {.secret_file = config->jwt_secret_file};
    const struct token_policy_settings keys = {
        .public_key_files = (const char *const *)config->jwt_public_keys.items,
        .public_key_count = config->jwt_public_keys.count,
    };
    const struct token_policy_settings sets = {
        .jwks_files = (const char *const *)config->jwks_files.items,
        .jwks_file_count = config->jwks_files.count,
    };
    const struct token_policy_settings issuers = {
        .issuer = config->jwt_issuer,
        .issuers_file = config->issuers_file,
    };
    int r;

    r = check_token_keys(config, CONFIG_OPTION_jwt_secret_file, &secret, reterr);
    if (r == 0)
        r = check_token_keys(config, CONFIG_OPTION_jwt_public_keys, &keys, reterr);
    if (r == 0)
        r = check_token_keys(config, CONFIG_OPTION_jwks_files, &sets, reterr);
    if (r == 0)
        r = check_token_keys(config, CONFIG_OPTION_issuers_file, &issuers, reterr);
    if (r == 0 && config->tls_cert)
        r = check_certificate(config, reterr);
    if (r == 0)
        r = check_audit_log(config, reterr);
    return r;
}
