/* client_socket.c - a socket on loopback, from one of 16 source addresses, with OpenSSL if
 * requested.
 *
 * With so many addresses there can be more connections than one address has ports. Sockets are
 * reset when they are closed, so that none stays in TIME_WAIT. Certificates are not checked and
 * sessions not resumed: it is the server that is measured. */
#include "bench/client_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "bench/measure.h"

enum { SOURCES = 16 /* addresses from 127.0.0.1 */ };

static SSL_CTX *tls_context(void)
{
    static SSL_CTX *context;

    if (!context) {
        context = SSL_CTX_new(TLS_client_method());
        if (!context)
            measure_fail("TLS", "no context");
        SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
        SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_read_ahead(context, 1);
    }
    return context;
}

void client_socket_open(struct client_socket *ret_socket, uint16_t port, uint64_t number,
                        bool is_tls)
{
    struct sockaddr_in source = {.sin_family = AF_INET}, server = source;
    struct linger reset = {1, 0};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;

    if (fd < 0)
        measure_fail("socket", NULL);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    source.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)(number % SOURCES));
    server.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server.sin_port = htons(port);
    if (bind(fd, (struct sockaddr *)&source, sizeof(source)) < 0)
        measure_fail("bind", NULL);
    if (connect(fd, (struct sockaddr *)&server, sizeof(server)) < 0 && errno != EINPROGRESS)
        measure_fail("connect", NULL);
    *ret_socket = (struct client_socket){.fd = fd};
    if (is_tls) {
        ret_socket->ssl = SSL_new(tls_context());
        if (!ret_socket->ssl || SSL_set_fd(ret_socket->ssl, fd) != 1)
            measure_fail("TLS", "no connection");
        SSL_set_connect_state(ret_socket->ssl);
    }
}

/* The results are those of recv() and send(). */
static ssize_t tls_result(struct client_socket *socket, int r)
{
    if (r > 0)
        return r;
    switch (SSL_get_error(socket->ssl, r)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        ERR_clear_error();
        errno = EPROTO;
        return -1;
    }
}

int client_socket_connect(struct client_socket *socket)
{
    socklen_t size = sizeof(int);
    int error = 0;

    if (!socket->ssl) {
        getsockopt(socket->fd, SOL_SOCKET, SO_ERROR, &error, &size);
        errno = error;
        return error ? -1 : 1;
    }
    if (tls_result(socket, SSL_do_handshake(socket->ssl)) > 0)
        return 1;
    return errno == EAGAIN ? 0 : -1;
}

/* Reads everything that has arrived: data buffered in OpenSSL does not make the descriptor
 * readable. */
static ssize_t tls_read(struct client_socket *socket, char *room, size_t size)
{
    size_t have = 0;
    ssize_t r = -1;

    while (have < size) {
        size_t part = size - have < 1 << 20 ? size - have : 1 << 20;

        r = tls_result(socket, SSL_read(socket->ssl, room + have, (int)part));
        if (r <= 0)
            break;
        have += (size_t)r;
    }
    return have > 0 ? (ssize_t)have : r;
}

ssize_t client_socket_read(struct client_socket *socket, void *room, size_t size)
{
    return socket->ssl ? tls_read(socket, room, size) : recv(socket->fd, room, size, MSG_DONTWAIT);
}

ssize_t client_socket_send(struct client_socket *socket, const void *bytes, size_t size)
{
    if (socket->ssl)
        return tls_result(socket, SSL_write(socket->ssl, bytes, (int)size));
    return send(socket->fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void client_socket_close(struct client_socket *socket)
{
    SSL_free(socket->ssl);
    close(socket->fd);
}
