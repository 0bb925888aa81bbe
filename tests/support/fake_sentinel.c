#include "tests/support/fake_sentinel.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/cmocka_all.h"

void fake_sentinel_open(struct fake_sentinel *sentinel)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    sentinel->connection = -1;
    sentinel->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(bind(sentinel->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(sentinel->listener, 8), 0);
    assert_int_equal(getsockname(sentinel->listener, (struct sockaddr *)&address, &size), 0);
    sentinel->endpoint = (struct sl_redis_endpoint){"127.0.0.1", ntohs(address.sin_port)};
}

void fake_sentinel_hang_up(struct fake_sentinel *sentinel)
{
    if (sentinel->connection >= 0)
        close(sentinel->connection);
    sentinel->connection = -1;
}

void fake_sentinel_close(struct fake_sentinel *sentinel)
{
    fake_sentinel_hang_up(sentinel);
    close(sentinel->listener);
}

bool fake_sentinel_accept(struct fake_sentinel *sentinel, bool waits)
{
    struct pollfd waiting = {.fd = sentinel->listener, .events = POLLIN};

    if (poll(&waiting, 1, waits ? 30000 : 0) != 1)
        return false;
    fake_sentinel_hang_up(sentinel);
    sentinel->connection = accept4(sentinel->listener, NULL, NULL, SOCK_CLOEXEC);
    return sentinel->connection >= 0;
}

void fake_sentinel_say(struct fake_sentinel *sentinel, const char *format, ...)
{
    char text[1024];
    va_list args;
    int size;

    va_start(args, format);
    size = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    assert_in_range(size, 1, sizeof(text) - 1);
    assert_int_equal(send(sentinel->connection, text, (size_t)size, MSG_NOSIGNAL), size);
}

void fake_sentinel_name(struct fake_sentinel *sentinel, const char *host, unsigned port)
{
    char number[16];

    snprintf(number, sizeof(number), "%u", port);
    fake_sentinel_say(sentinel,
                      "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n"
                      "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n",
                      strlen(host), host, strlen(number), number);
}

void fake_sentinel_tell(struct fake_sentinel *sentinel, const char *text)
{
    fake_sentinel_say(sentinel, "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$%zu\r\n%s\r\n",
                      strlen(text), text);
}

void fake_sentinel_read(struct fake_sentinel *sentinel, char *room, size_t size)
{
    ssize_t got = recv(sentinel->connection, room, size - 1, MSG_DONTWAIT);

    room[got > 0 ? got : 0] = '\0';
}
