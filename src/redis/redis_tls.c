/* redis_tls.c - OpenSSL between two memory buffers.
 *
 * A context is created for each connection and freed with it: connections to Redis are rare, and
 * this way the files are as new as the connection. Without an authority in the address, the
 * certificates of the machine are looked up by name, one at a time.
 *
 * No close_notify is sent: Redis does not execute a truncated command, and we do not accept a
 * truncated answer.
 *
 * Buffers are bounded by the owner, who feeds at most one read at a time, and takes the encrypted
 * bytes before encrypting more. */
#include "src/redis/redis_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"

/* The first byte of a record: change cipher spec, alert, handshake, or data. */
enum { RECORD_FIRST = 20, RECORD_LAST = 23 };

struct sl_redis_tls {
    SSL *ssl;
    BIO *in, *out; /* of `ssl` */
    bool was_fed;
    bool has_certificate;          /* we have a client certificate */
    char name[SL_REDIS_PATH_SIZE]; /* that the server's certificate must contain */
};

/* ---- files ---- */

static int no_memory(struct failure *reterr)
{
    ERR_clear_error();
    return failure_set(reterr, -ENOMEM, "out of memory");
}

static int check_readable(const char *option, const char *path, struct failure *reterr)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return failure_set(reterr, -EINVAL, "cannot read the %s '%s': %s", option, path,
                           strerror(errno));
    close(fd);
    return 0;
}

static int refuse_file(const char *option, const char *path, const char *why,
                       struct failure *reterr)
{
    ERR_clear_error();
    return failure_set(reterr, -EINVAL, "the %s '%s' %s", option, path, why);
}

static int trust(SSL_CTX *context, const struct sl_redis_tls_files *files, struct failure *reterr)
{
    int r;

    if (!files->ca[0])
        return SSL_CTX_set_default_verify_paths(context) == 1 ? 0 : no_memory(reterr);
    r = check_readable("ssl-ca", files->ca, reterr);
    if (r == 0 && SSL_CTX_load_verify_file(context, files->ca) != 1)
        r = refuse_file("ssl-ca", files->ca, "holds no certificate", reterr);
    return r;
}

/* Without this, OpenSSL would ask for a password at the terminal. */
static int no_password(char *room, int size, int is_written, void *context)
{
    (void)room;
    (void)size;
    (void)is_written;
    (void)context;
    return -1;
}

static int load_certificate(SSL_CTX *context, const struct sl_redis_tls_files *files,
                            struct failure *reterr)
{
    int r;

    if (!files->cert[0])
        return 0;
    SSL_CTX_set_default_passwd_cb(context, no_password);
    r = check_readable("ssl-cert", files->cert, reterr);
    if (r == 0)
        r = check_readable("ssl-key", files->key, reterr);
    if (r < 0)
        return r;
    if (SSL_CTX_use_certificate_chain_file(context, files->cert) != 1)
        return refuse_file("ssl-cert", files->cert, "holds no certificate", reterr);
    if (SSL_CTX_use_PrivateKey_file(context, files->key, SSL_FILETYPE_PEM) != 1) {
        if (ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH)
            return refuse_file("ssl-key", files->key, "is not that of the ssl-cert", reterr);
        return refuse_file("ssl-key", files->key, "holds no private key, or one with a password",
                           reterr);
    }
    return 0;
}

static int make_context(const struct sl_redis_tls_files *files, SSL_CTX **ret_context,
                        struct failure *reterr)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    int r;

    if (!context)
        return no_memory(reterr);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    r = trust(context, files, reterr);
    if (r == 0)
        r = load_certificate(context, files, reterr);
    if (r < 0)
        SSL_CTX_free(context);
    else
        *ret_context = context;
    return r;
}

int sl_redis_tls_check(const struct sl_redis_address *address, struct failure *reterr)
{
    SSL_CTX *context = NULL;
    int r = 0;

    if (address->is_tls)
        r = make_context(&address->tls, &context, reterr);
    SSL_CTX_free(context);
    return r;
}

/* ---- creating and freeing ---- */

static bool is_ip_address(const char *host)
{
    struct in6_addr room;

    return inet_pton(AF_INET, host, &room) == 1 || inet_pton(AF_INET6, host, &room) == 1;
}

/* A name is also sent to the server (SNI), which may have several certificates. */
static bool expect_name(SSL *ssl, const char *name)
{
    if (is_ip_address(name))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
    SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

static int start(struct sl_redis_tls *tls, SSL_CTX *context, struct failure *reterr)
{
    tls->ssl = SSL_new(context);
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    if (!tls->ssl || !tls->in || !tls->out) {
        BIO_free(tls->in);
        BIO_free(tls->out);
        return no_memory(reterr);
    }
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    SSL_set_connect_state(tls->ssl);
    return expect_name(tls->ssl, tls->name) ? 0 : no_memory(reterr);
}

int sl_redis_tls_new(const struct sl_redis_address *address, const char *host,
                     struct sl_redis_tls **ret_tls, struct failure *reterr)
{
    struct sl_redis_tls *tls = mem_zalloc(sizeof(*tls));
    SSL_CTX *context = NULL;
    int r;

    if (!tls)
        return failure_set(reterr, -ENOMEM, "out of memory");
    tls->has_certificate = address->tls.cert[0] != '\0';
    snprintf(tls->name, sizeof(tls->name), "%s", address->tls.name[0] ? address->tls.name : host);
    r = make_context(&address->tls, &context, reterr);
    if (r == 0)
        r = start(tls, context, reterr);
    SSL_CTX_free(context); /* `ssl` has its own reference */
    if (r < 0) {
        sl_redis_tls_free(tls);
        return r;
    }
    *ret_tls = tls;
    return 0;
}

void sl_redis_tls_free(struct sl_redis_tls *tls)
{
    if (!tls)
        return;
    SSL_free(tls->ssl);
    mem_free(tls);
}

/* ---- errors ---- */

static int explain_certificate(const struct sl_redis_tls *tls, long verdict, struct failure *reterr)
{
    switch (verdict) {
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
        return failure_set(reterr, -EACCES,
                           "the certificate of Redis is not for %s (ssl-name in the URL says whom "
                           "to expect instead)",
                           tls->name);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
        return failure_set(reterr, -EACCES,
                           "the certificate of Redis is not trusted: %s (ssl-ca in the URL names "
                           "the file of who has signed it)",
                           X509_verify_cert_error_string(verdict));
    default:
        return failure_set(reterr, -EACCES, "the certificate of Redis is refused: %s",
                           X509_verify_cert_error_string(verdict));
    }
}

static int explain_alert(const struct sl_redis_tls *tls, int alert, struct failure *reterr)
{
    const char *text = SSL_alert_desc_string_long(alert);
    bool wants_certificate =
        alert == SSL_AD_HANDSHAKE_FAILURE || alert == SSL_AD_CERTIFICATE_REQUIRED;

    if (wants_certificate && !tls->has_certificate)
        return failure_set(reterr, -EACCES,
                           "Redis wants a certificate of ours (ssl-cert and ssl-key in the URL)");
    if (tls->has_certificate && alert != SSL_AD_PROTOCOL_VERSION)
        return failure_set(reterr, -EACCES, "Redis refuses our certificate: %s", text);
    return failure_set(reterr, -EPROTO, "Redis refuses TLS: %s", text);
}

/* Evaluates the result of an OpenSSL function that did not succeed. 0: it needs more data. */
static int explain(struct sl_redis_tls *tls, int result, struct failure *reterr)
{
    unsigned long error = ERR_peek_last_error();
    const char *said = ERR_reason_error_string(error);
    long verdict = SSL_get_verify_result(tls->ssl);
    int kind = SSL_get_error(tls->ssl, result);
    int reason = ERR_GET_REASON(error);

    ERR_clear_error();
    if (kind == SSL_ERROR_WANT_READ)
        return 0;
    if (kind == SSL_ERROR_ZERO_RETURN)
        return failure_set(reterr, -ECONNRESET, "Redis closed the connection");
    if (verdict != X509_V_OK)
        return explain_certificate(tls, verdict, reterr);
    if (reason == ERR_R_MALLOC_FAILURE)
        return no_memory(reterr);
    if (ERR_GET_LIB(error) == ERR_LIB_SSL && reason > SSL_AD_REASON_OFFSET)
        return explain_alert(tls, reason - SSL_AD_REASON_OFFSET, reterr);
    return failure_set(reterr, -EPROTO, "TLS to Redis failed: %s", said ? said : "no reason given");
}

/* ---- bytes ---- */

int sl_redis_tls_feed(struct sl_redis_tls *tls, struct sl_slice bytes, struct failure *reterr)
{
    if (bytes.size == 0)
        return 0;
    if (!tls->was_fed && (bytes.data[0] < RECORD_FIRST || bytes.data[0] > RECORD_LAST))
        return failure_set(reterr, -EPROTO,
                           "Redis answers without TLS: the URL of such a one begins with redis, "
                           "not rediss");
    tls->was_fed = true;
    ERR_clear_error();
    return BIO_write(tls->in, bytes.data, (int)bytes.size) == (int)bytes.size ? 0
                                                                              : no_memory(reterr);
}

int sl_redis_tls_shake_hands(struct sl_redis_tls *tls, struct failure *reterr)
{
    int r;

    ERR_clear_error();
    r = SSL_do_handshake(tls->ssl);
    return r == 1 ? 1 : explain(tls, r, reterr);
}

/* Redis 7 without TLS takes the first bytes of a handshake for the beginning of a command, and
 * waits for the rest. */
int sl_redis_tls_time_out(const struct sl_redis_tls *tls, struct failure *reterr)
{
    if (tls->was_fed)
        return failure_set(reterr, -ECONNREFUSED, "TLS was not agreed on in time");
    return failure_set(reterr, -ECONNREFUSED,
                       "Redis said nothing where TLS was to be agreed on: the URL of one without "
                       "TLS begins with redis, not rediss");
}

int sl_redis_tls_seal(struct sl_redis_tls *tls, struct sl_slice bytes, struct failure *reterr)
{
    int r;

    if (bytes.size == 0)
        return 0;
    ERR_clear_error();
    r = SSL_write(tls->ssl, bytes.data, (int)bytes.size);
    if (r == (int)bytes.size)
        return 0;
    r = explain(tls, r, reterr);
    return r < 0 ? r : failure_set(reterr, -EPROTO, "TLS to Redis failed: it is not agreed on");
}

ssize_t sl_redis_tls_open(struct sl_redis_tls *tls, char *room, size_t room_size,
                          struct failure *reterr)
{
    int r;

    ERR_clear_error();
    r = SSL_read(tls->ssl, room, (int)room_size);
    return r > 0 ? r : explain(tls, r, reterr);
}

void sl_redis_tls_take(struct sl_redis_tls *tls, struct buffer *out)
{
    size_t size = BIO_ctrl_pending(tls->out);
    char *room = size > 0 ? buffer_reserve(out, size) : NULL;
    int taken;

    if (!room)
        return;
    taken = BIO_read(tls->out, room, (int)size);
    if (taken > 0)
        out->size += (size_t)taken;
}
