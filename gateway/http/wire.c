/* wire.c - connections by libwebsockets in its raw role, plain and over TLS.
 *
 * libwebsockets accepts TLS, watches the socket with libuv, reads up to one TLS record at a time
 * and passes the bytes on. It does not write: a plain wire is written with sendmsg(2), from shared
 * pieces without a copy; a TLS wire through its SSL object, a record at a time. Bypassing
 * libwebsockets for writing is safe in this role, because it sends nothing itself.
 *
 * Limits: a read is at most one TLS record, so that nothing remains inside OpenSSL when reading is
 * switched off. What a wire holds is limited by its owner, who checks held.size.
 *
 * Known properties of libwebsockets 4.1 and 4.3:
 *
 *   - the timeout that it sets for the TLS handshake is not stopped after it, so it is cleared at
 *     the first bytes;
 *   - in the raw role it closes without a TLS close_notify, so wire_finish() sends one;
 *   - its timers are one sorted list, which is slow with many connections: none are used. */
#include "gateway/http/wire.h"

#include <assert.h>
#include <errno.h>
#include <libwebsockets.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/alloc.h"

enum { RECORD_SIZE = 16384 };

struct wire_kind {
    ssize_t (*send)(struct wire *wire, const struct iovec *pieces, int count);
    ssize_t (*send_held)(struct wire *wire); /* how many bytes were sent; fewer than held: the wire
                                                is blocked */
    void (*finish)(struct wire *wire);
};

/* If an SSL context is given a certificate of another kind (RSA, EC), it also keeps the first one;
 * and if it is given a certificate without its key, it loses the old key. Therefore both files are
 * read into a context of their own, from which every handshake takes the certificate. */
struct wire_certificate {
    SSL_CTX *context;
};

struct wires {
    struct wires_settings settings;
    struct lws_context *context;
    struct lws_vhost *plain, *with_tls; /* with_tls NULL: no TLS */
    SSL_CTX *tls;                       /* of `with_tls` */
    struct wire_certificate *renewed;   /* NULL: `tls` contains the current one */
    char record[RECORD_SIZE];           /* buffer for assembling a record */
};

static struct wires *wires_of(const struct wire *wire)
{
    return lws_context_user(lws_get_context(wire->lws));
}

/* --- writing, plain --- */

static void block(struct wire *wire)
{
    if (wire->is_blocked)
        return;
    wire->is_blocked = true;
    lws_callback_on_writable(wire->lws);
}

static ssize_t plain_send(struct wire *wire, const struct iovec *pieces, int count)
{
    struct msghdr message = {.msg_iov = (struct iovec *)pieces, .msg_iovlen = (size_t)count};
    ssize_t sent;

    do
        sent = sendmsg(wire->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent >= 0)
        return sent;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
        return -errno;
    block(wire);
    return 0;
}

static ssize_t plain_send_held(struct wire *wire)
{
    struct iovec piece = {wire->held.data, wire->held.size};
    ssize_t sent = plain_send(wire, &piece, 1);

    if (sent >= 0 && (size_t)sent < piece.iov_len)
        block(wire);
    return sent;
}

static void plain_finish(struct wire *wire)
{
    shutdown(wire->fd, SHUT_WR);
}

static const struct wire_kind plain_kind = {plain_send, plain_send_held, plain_finish};

/* --- writing, over TLS --- */

/* Iterates over the pieces. */
struct pieces {
    const struct iovec *next;
    int count;     /* remaining, including `next` */
    size_t offset; /* in `next` */
};

static size_t record_of(size_t size)
{
    return size < RECORD_SIZE ? size : RECORD_SIZE;
}

/* The bytes of the next record: in place if they are contiguous, else copied to `room`. Empty:
 * there are no more. */
static struct sl_slice next_record(struct pieces *pieces, char room[static RECORD_SIZE])
{
    size_t filled = 0;

    while (pieces->count > 0 && filled < RECORD_SIZE) {
        const char *from = (const char *)pieces->next->iov_base + pieces->offset;
        size_t size = pieces->next->iov_len - pieces->offset;
        size_t part = size < RECORD_SIZE - filled ? size : RECORD_SIZE - filled;
        bool is_alone = filled == 0 && (part == RECORD_SIZE || pieces->count == 1);

        pieces->offset += part;
        if (part == size) {
            pieces->next++;
            pieces->count--;
            pieces->offset = 0;
        }
        if (is_alone)
            return sl_slice(from, part);
        memcpy(room + filled, from, part);
        filled += part;
    }
    return sl_slice(room, filled);
}

/* How many of the bytes, at most a record, were taken. 0: the socket is full, and OpenSSL must be
 * given the same bytes again; -EPIPE. */
static ssize_t write_record(struct wire *wire, struct sl_slice record)
{
    SSL *tls = lws_get_ssl(wire->lws);
    int r;

    ERR_clear_error();
    r = SSL_write(tls, record.data, (int)record.size);
    if (r > 0)
        return r;
    if (SSL_get_error(tls, r) != SSL_ERROR_WANT_WRITE)
        return -EPIPE;
    block(wire);
    return 0;
}

/* If the socket does not take a whole record, OpenSSL keeps it and must be given the same bytes
 * again before any others. They are held, and count as sent. */
static ssize_t tls_send(struct wire *wire, const struct iovec *pieces, int count)
{
    struct pieces walk = {pieces, count, 0};
    char *room = wires_of(wire)->record;
    struct sl_slice record;
    size_t sent = 0;

    while (!wire->is_blocked && (record = next_record(&walk, room)).size > 0) {
        sent += record.size;
        while (!wire->is_blocked && record.size > 0) {
            ssize_t taken = write_record(wire, record);

            if (taken < 0)
                return taken;
            record = sl_slice_from(record, (size_t)taken);
        }
        if (record.size > 0) /* even an empty append would allocate */
            buffer_append_slice(&wire->held, record);
    }
    return wire->held.failed ? -ENOMEM : (ssize_t)sent;
}

/* OpenSSL may already have a part of what is held: see tls_send(). */
static ssize_t tls_send_held(struct wire *wire)
{
    return write_record(wire, sl_slice(wire->held.data, record_of(wire->held.size)));
}

/* Without a close_notify the peer must assume an attack. If the socket has no room for it, it is
 * sent later. */
static void tls_finish(struct wire *wire)
{
    SSL *tls = lws_get_ssl(wire->lws);
    int r;

    ERR_clear_error();
    r = SSL_shutdown(tls);
    wire->is_finishing = r < 0 && SSL_get_error(tls, r) == SSL_ERROR_WANT_WRITE;
    if (wire->is_finishing)
        block(wire);
    else
        shutdown(wire->fd, SHUT_WR);
}

static const struct wire_kind tls_kind = {tls_send, tls_send_held, tls_finish};

/* --- writing --- */

ssize_t wire_send(struct wire *wire, const struct iovec *pieces, int count)
{
    assert(wire->lws && !wire->is_blocked);
    return wire->kind->send(wire, pieces, count);
}

int wire_hold(struct wire *wire, const struct iovec *pieces, int count)
{
    assert(wire->lws);
    for (int i = 0; i < count; i++)
        buffer_append(&wire->held, pieces[i].iov_base, pieces[i].iov_len);
    block(wire);
    return wire->held.failed ? -ENOMEM : 0;
}

int wire_write(struct wire *wire, struct sl_slice bytes)
{
    struct iovec piece = {(char *)bytes.data, bytes.size};
    ssize_t sent = 0;

    if (!wire->is_blocked)
        sent = wire_send(wire, &piece, 1);
    if (sent < 0)
        return (int)sent;
    piece = (struct iovec){(char *)bytes.data + sent, bytes.size - (size_t)sent};
    return piece.iov_len > 0 ? wire_hold(wire, &piece, 1) : 0;
}

void wire_finish(struct wire *wire)
{
    assert(wire->held.size == 0);
    if (wire->lws && wire->was_heard)
        wire->kind->finish(wire);
}

/* Sends as much as the socket takes. 0; a negative errno: the connection is broken. */
static int send_held(struct wire *wire)
{
    wire->is_blocked = false;
    while (wire->held.size > 0 && !wire->is_blocked) {
        ssize_t sent = wire->kind->send_held(wire);

        if (sent < 0)
            return (int)sent;
        buffer_consume(&wire->held, (size_t)sent);
    }
    if (!wire->is_blocked)
        buffer_done(&wire->held);
    return 0;
}

void wire_cork(struct wire *wire)
{
    assert(wire->lws && !wire->is_blocked);
    wire->is_blocked = true;
}

int wire_uncork(struct wire *wire)
{
    if (wire->held.failed)
        return -ENOMEM;
    return wire->lws ? send_held(wire) : 0;
}

/* 0; negative: the connection is broken. */
static int on_room(struct wire *wire)
{
    int r = send_held(wire);

    if (r < 0 || wire->is_blocked)
        return r;
    if (wire->is_finishing)
        wire->kind->finish(wire);
    else
        wire->callbacks->writable(wire);
    return 0;
}

/* --- reading --- */

/* Any set bit stops reading; ours is the only one. */
static void switch_reading(struct wire *wire, bool on)
{
    if (!wire->lws || wire->is_reading == on)
        return;
    wire->is_reading = on;
    lws_rx_flow_control(
        wire->lws,
        (int)(LWS_RXFLOW_REASON_USER_BOOL | LWS_RXFLOW_REASON_FLAG_PROCESS_NOW |
              (on ? LWS_RXFLOW_REASON_APPLIES_ENABLE : LWS_RXFLOW_REASON_APPLIES_DISABLE)));
}

void wire_stop_reading(struct wire *wire)
{
    switch_reading(wire, false);
}

void wire_resume_reading(struct wire *wire)
{
    switch_reading(wire, true);
}

bool wire_has_begun(const struct wire *wire)
{
    SSL *tls = wire->lws ? lws_get_ssl(wire->lws) : NULL;
    int unread = 0;

    if (tls && SSL_in_init(tls) && SSL_get_state(tls) != TLS_ST_BEFORE)
        return true;
    return wire->lws && ioctl(wire->fd, FIONREAD, &unread) == 0 && unread > 0;
}

/* --- callbacks of libwebsockets --- */

static void on_closed(struct lws *lws)
{
    struct wire *wire = lws_get_opaque_user_data(lws);

    if (!wire)
        return;
    lws_set_opaque_user_data(lws, NULL);
    wire->lws = NULL;
    wire->fd = -1;
    buffer_done(&wire->held);
    wire->callbacks->closed(wire);
}

static int on_received(struct lws *lws, char *bytes, size_t size)
{
    struct wire *wire = lws_get_opaque_user_data(lws);

    if (!wire)
        return -1;
    if (!wire->was_heard)
        lws_set_timeout(lws, NO_PENDING_TIMEOUT, 0);
    wire->was_heard = true;
    wire->callbacks->received(wire, bytes, size);
    return 0;
}

static int callback(struct lws *lws, enum lws_callback_reasons reason, void *user, void *in,
                    size_t size)
{
    struct wire *wire;

    switch (reason) {
    case LWS_CALLBACK_RAW_RX:
        return on_received(lws, in, size);
    case LWS_CALLBACK_RAW_WRITEABLE:
        wire = lws_get_opaque_user_data(lws);
        return wire ? on_room(wire) : -1;
    case LWS_CALLBACK_RAW_CLOSE:
        on_closed(lws);
        return 0;
    case LWS_CALLBACK_OPENSSL_LOAD_EXTRA_SERVER_VERIFY_CERTS: /* `user` is the new context */
        ((struct wires *)lws_context_user(lws_get_context(lws)))->tls = user;
        return 0;
    default:
        return 0;
    }
}

static const struct lws_protocols protocols[] = {
    {.name = "raw", .callback = callback},
    {.name = NULL},
};

/* --- a wire --- */

int wire_open(struct wires *wires, struct wire *wire, int fd, bool with_tls,
              const struct wire_callbacks *callbacks)
{
    lws_adoption_type type = LWS_ADOPT_SOCKET | (with_tls ? LWS_ADOPT_ALLOW_SSL : 0);
    lws_sock_file_fd_type descriptor = {.sockfd = fd};

    assert(!with_tls || wires->with_tls);
    *wire = (struct wire){.callbacks = callbacks,
                          .kind = with_tls ? &tls_kind : &plain_kind,
                          .fd = fd,
                          .is_reading = true,
                          .is_secure = with_tls};
    /* It closes the socket on failure. */
    wire->lws = lws_adopt_descriptor_vhost(with_tls ? wires->with_tls : wires->plain, type,
                                           descriptor, protocols[0].name, NULL);
    if (!wire->lws) {
        wire->fd = -1;
        return -ENOMEM;
    }
    lws_set_opaque_user_data(wire->lws, wire);
    return 0;
}

void wire_close(struct wire *wire)
{
    struct lws *lws = wire->lws;

    buffer_done(&wire->held);
    if (!lws)
        return;
    lws_set_opaque_user_data(lws, NULL);
    wire->lws = NULL;
    wire->fd = -1;
    lws_close_free_wsi(lws, LWS_CLOSE_STATUS_NOSTATUS_CONTEXT_DESTROY, "closed");
}

void wire_move(struct wire *from, struct wire *to, const struct wire_callbacks *callbacks)
{
    assert(from->lws);
    *to = *from;
    to->callbacks = callbacks;
    lws_set_opaque_user_data(to->lws, to);
    from->lws = NULL;
    from->fd = -1;
    from->held = BUFFER_INIT;
}

struct ip_address wire_peer(const struct wire *wire)
{
    union {
        struct sockaddr any;
        struct sockaddr_storage room;
    } address = {.any.sa_family = AF_UNSPEC};
    socklen_t size = sizeof(address);

    getpeername(wire->fd, &address.any, &size);
    return ip_address_of_socket(&address.any);
}

void wire_set_client(struct wire *wire, const struct ip_address *client, bool is_secure)
{
    wire->client = *client;
    wire->is_secure = is_secure || wire->kind == &tls_kind;
}

struct sl_slice wire_client_address(const struct wire *wire, char room[static WIRE_ADDRESS_SIZE])
{
    struct ip_address client = wire->client.size > 0 ? wire->client : wire_peer(wire);

    return client.size > 0 ? sl_slice(memcpy(room, client.bytes, client.size), client.size)
                           : SL_SLICE_NONE;
}

/* --- all wires --- */

static int refuse_certificate(const char *file, const char *key_file, struct failure *reterr)
{
    ERR_clear_error();
    return failure_set(reterr, -EINVAL, "cannot serve with certificate '%s' and key '%s'", file,
                       key_file);
}

int wire_certificate_new(const char *file, const char *key_file,
                         struct wire_certificate **ret_certificate, struct failure *reterr)
{
    struct wire_certificate *certificate = mem_zalloc(sizeof(*certificate));
    SSL_CTX *context = certificate ? SSL_CTX_new(TLS_server_method()) : NULL;

    if (!context) {
        mem_free(certificate);
        return failure_set(reterr, -ENOMEM, "out of memory");
    }
    certificate->context = context;
    if (SSL_CTX_use_certificate_chain_file(context, file) == 1 &&
        SSL_CTX_use_PrivateKey_file(context, key_file, SSL_FILETYPE_PEM) == 1 &&
        SSL_CTX_check_private_key(context) == 1) {
        *ret_certificate = certificate;
        return 0;
    }
    wire_certificate_free(certificate);
    return refuse_certificate(file, key_file, reterr);
}

void wire_certificate_free(struct wire_certificate *certificate)
{
    if (!certificate)
        return;
    SSL_CTX_free(certificate->context);
    mem_free(certificate);
}

/* Done before there is a context of libwebsockets, because that could not be freed without the
 * loop. */
static int check_certificate(const struct wires_settings *settings, struct failure *reterr)
{
    struct wire_certificate *certificate = NULL;
    int r = 0;

    if (settings->certificate)
        r = wire_certificate_new(settings->certificate, settings->key, &certificate, reterr);
    wire_certificate_free(certificate);
    return r;
}

static int create_tls(struct wires *wires, struct lws_context_creation_info *info,
                      struct failure *reterr)
{
    info->options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    info->vhost_name = "tls";
    info->alpn = "http/1.1";
    info->ssl_cert_filepath = wires->settings.certificate;
    info->ssl_private_key_filepath = wires->settings.key;
    wires->with_tls = lws_create_vhost(wires->context, info);
    if (!wires->with_tls)
        return refuse_certificate(wires->settings.certificate, wires->settings.key, reterr);
    /* Idle connections keep no record buffers. */
    SSL_CTX_set_mode(wires->tls, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return 0;
}

static int create_context(struct wires *wires, struct failure *reterr)
{
    static const lws_retry_bo_t no_validity_timers = {.secs_since_valid_ping = 0,
                                                      .secs_since_valid_hangup = 0};
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN_SERVER,
        .options = LWS_SERVER_OPTION_LIBUV | LWS_SERVER_OPTION_EXPLICIT_VHOSTS |
                   LWS_SERVER_OPTION_DISABLE_IPV6,
        .foreign_loops = (void *[]){wires->settings.loop},
        .protocols = protocols,
        .user = wires,
        .gid = -1,
        .uid = -1,
        .pt_serv_buf_size = WIRE_READ_SIZE + LWS_PRE, /* it reads after the first LWS_PRE bytes */
        .retry_and_idle_policy = &no_validity_timers,
        .timeout_secs = (unsigned)(wires->settings.handshake_timeout_ms / 1000 + 1),
        .vhost_name = "plain",
    };

    if (wires->settings.certificate)
        info.options |= LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    lws_set_log_level(0, NULL); /* its log levels do not correspond to ours */
    wires->context = lws_create_context(&info);
    if (!wires->context)
        return failure_set(reterr, -ENOMEM, "libwebsockets cannot start");
    info.options &= ~(uint64_t)LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
    wires->plain = lws_create_vhost(wires->context, &info);
    if (!wires->plain)
        return failure_set(reterr, -ENOMEM, "out of memory");
    return wires->settings.certificate ? create_tls(wires, &info, reterr) : 0;
}

int wires_new(const struct wires_settings *settings, struct wires **ret_wires,
              struct failure *reterr)
{
    struct wires *wires = mem_zalloc(sizeof(*wires));
    int r;

    if (!wires)
        return failure_set(reterr, -ENOMEM, "out of memory");
    wires->settings = *settings;
    r = check_certificate(settings, reterr);
    if (r == 0)
        r = create_context(wires, reterr);
    if (r < 0) {
        wires_close(wires);
        wires_free(wires);
        return r;
    }
    *ret_wires = wires;
    return 0;
}

bool wires_have_tls(const struct wires *wires)
{
    return wires->with_tls != NULL;
}

/* Called at the beginning of a handshake. 1; 0: the handshake fails. */
static int show_renewed(SSL *tls, void *owner)
{
    const struct wires *wires = owner;
    SSL_CTX *context = wires->renewed->context;
    STACK_OF(X509) *chain = NULL;

    SSL_CTX_get0_chain_certs(context, &chain);
    SSL_certs_clear(tls);
    return SSL_use_cert_and_key(tls, SSL_CTX_get0_certificate(context),
                                SSL_CTX_get0_privatekey(context), chain, 1);
}

void wires_set_certificate_take(struct wires *wires, struct wire_certificate *certificate)
{
    assert(wires->tls);
    wire_certificate_free(wires->renewed);
    wires->renewed = certificate;
    SSL_CTX_set_cert_cb(wires->tls, show_renewed, wires);
}

void wires_close(struct wires *wires)
{
    if (wires->context)
        lws_context_destroy(wires->context);
}

/* On a foreign loop, libwebsockets only begins to destroy its context at the first call; the second
 * call, after the loop has closed its handles, frees the memory. */
void wires_free(struct wires *wires)
{
    if (!wires)
        return;
    if (wires->context)
        lws_context_destroy(wires->context);
    wire_certificate_free(wires->renewed);
    mem_free(wires);
}
