#include "tests/support/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/cmocka_all.h"

enum { READ_SIZE = 65536 };

/* Disables Nagle's algorithm. */
static void send_at_once(int fd)
{
    const int on = 1;

    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
}

int peer_listen(struct sockaddr_in *ret_address)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(listen(fd, 1000), 0);
    send_at_once(fd); /* accepted connections inherit it */
    *ret_address = address;
    return fd;
}

static SSL *tls_new(int fd)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *tls;

    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    tls = SSL_new(context);
    SSL_CTX_free(context); /* `tls` keeps it */
    assert_int_equal(SSL_set_fd(tls, fd), 1);
    SSL_set_connect_state(tls);
    return tls;
}

void peer_connect(struct peer *peer, const struct sockaddr_in *address, bool with_tls,
                  int receive_size)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (receive_size > 0)
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_size, sizeof(receive_size)),
                         0);
    assert_int_equal(connect(fd, (const struct sockaddr *)address, sizeof(*address)), 0);
    send_at_once(fd);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    *peer = (struct peer){.fd = fd, .tls = with_tls ? tls_new(fd) : NULL, .reads_most = SIZE_MAX};
}

void peer_say(struct peer *peer, struct sl_slice bytes)
{
    buffer_append_slice(&peer->to_say, bytes);
}

bool peer_has_spoken(const struct peer *peer)
{
    return peer->to_say.size == 0;
}

/* Converts the result `r` of SSL_write() and the like to that of recv(). */
static ssize_t tls_result(struct peer *peer, int r)
{
    int error = SSL_get_error(peer->tls, r);

    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
        errno = EAGAIN;
        return -1;
    }
    if (error == SSL_ERROR_ZERO_RETURN) {
        peer->was_told = true;
        return 0;
    }
    if (error == SSL_ERROR_SSL &&
        ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
        return 0;
    errno = ECONNRESET;
    return -1;
}

static ssize_t send_some(struct peer *peer)
{
    int r;

    if (!peer->tls)
        return send(peer->fd, peer->to_say.data, peer->to_say.size, MSG_NOSIGNAL);
    ERR_clear_error();
    r = SSL_write(peer->tls, peer->to_say.data, (int)peer->to_say.size);
    return r > 0 ? r : tls_result(peer, r);
}

static ssize_t receive_some(struct peer *peer, char *room, size_t size)
{
    int r;

    if (!peer->tls)
        return recv(peer->fd, room, size, 0);
    ERR_clear_error();
    r = SSL_read(peer->tls, room, (int)size);
    return r > 0 ? r : tls_result(peer, r);
}

static void speak(struct peer *peer)
{
    while (peer->to_say.size > 0) {
        ssize_t sent = send_some(peer);

        if (sent < 0) {
            if (errno != EAGAIN)
                peer->was_reset = true;
            return;
        }
        buffer_consume(&peer->to_say, (size_t)sent);
    }
}

static void hear(struct peer *peer)
{
    char room[READ_SIZE];
    size_t left = peer->reads_most;

    while (left > 0 && !peer->was_ended && !peer->was_reset) {
        ssize_t size = receive_some(peer, room, left < sizeof(room) ? left : sizeof(room));

        if (size < 0 && errno == EAGAIN)
            return;
        if (size < 0)
            peer->was_reset = true;
        else if (size == 0)
            peer->was_ended = true;
        if (size <= 0)
            return;
        buffer_append(&peer->heard, room, (size_t)size);
        left -= (size_t)size;
    }
}

void peer_turn(struct peer *peer)
{
    if (peer->fd < 0 || peer->was_reset)
        return;
    speak(peer);
    hear(peer);
}

void peer_end(struct peer *peer)
{
    if (peer->tls)
        SSL_shutdown(peer->tls);
    shutdown(peer->fd, SHUT_WR);
}

void peer_close(struct peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
    SSL_free(peer->tls);
    peer->tls = NULL;
    buffer_done(&peer->to_say);
    buffer_done(&peer->heard);
}

void peer_reset(struct peer *peer)
{
    const struct linger at_once = {.l_onoff = 1};

    setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    peer_close(peer);
}
