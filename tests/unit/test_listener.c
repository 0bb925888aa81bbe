#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/http/listener.h"
#include "tests/support/cmocka_all.h"

static struct listen_address address(const char *text)
{
    struct listen_address parsed;

    assert_int_equal(listen_address_parse(sl_slice_str(text), &parsed, NULL), 0);
    return parsed;
}

/* Sends something at once: silent connections are only handed over after a second. */
static int connect_to(uint16_t port)
{
    struct sockaddr_in peer = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, (struct sockaddr *)&peer, sizeof(peer)) == 0 && write(fd, "x", 1) == 1)
        return fd;
    close(fd);
    return -1;
}

static void close_all(const int *sockets, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        close(sockets[i]);
}

static void test_addresses_are_taken_apart(void **state)
{
    (void)state;
    assert_string_equal(address("127.0.0.1:8080").host, "127.0.0.1");
    assert_int_equal(address("127.0.0.1:8080").port, 8080);
    assert_string_equal(address("[::1]:0").host, "::1");
    assert_string_equal(address("*:65535").host, "");
    assert_int_equal(address("*:65535").port, 65535);
    assert_string_equal(address("localhost:80").host, "localhost");
}

static void test_every_socket_listens_on_one_free_port(void **state)
{
    struct listen_address any = address("127.0.0.1:0");
    int sockets[3];
    struct pollfd waiting[3];
    unsigned accepted = 0;
    uint16_t port = 0;

    (void)state;
    assert_int_equal(listener_open(&any, 3, sockets, &port, NULL), 0);
    assert_int_not_equal(port, 0);
    for (int i = 0; i < 3; i++) {
        struct sockaddr_in own;
        socklen_t size = sizeof(own);

        assert_int_equal(getsockname(sockets[i], (struct sockaddr *)&own, &size), 0);
        assert_int_equal(ntohs(own.sin_port), port);
        waiting[i] = (struct pollfd){.fd = sockets[i], .events = POLLIN};
    }
    /* The kernel chooses a socket by the peer's port: each connection must reach one that
     * accepts. */
    for (int i = 0; i < 64; i++) {
        int client = connect_to(port);

        assert_true(client >= 0);
        assert_true(poll(waiting, 3, 5000) > 0);
        for (int k = 0; k < 3; k++) {
            int server = accept(sockets[k], NULL, NULL);

            if (server >= 0) {
                accepted |= 1u << k;
                close(server);
            }
        }
        close(client);
    }
    assert_int_equal(accepted, 7);
    close_all(sockets, 3);
}

static void test_busy_port_is_refused_even_when_it_could_be_shared(void **state)
{
    struct listen_address any = address("127.0.0.1:0"), same;
    struct failure failure;
    char expected[80];
    int first[2], second[2];
    uint16_t port, ignored;

    (void)state;
    assert_int_equal(listener_open(&any, 2, first, &port, NULL), 0);
    same = any;
    same.port = port;
    assert_int_equal(listener_open(&same, 2, second, &ignored, &failure), -EADDRINUSE);
    snprintf(expected, sizeof(expected), "port %u of 127.0.0.1 is in use by another program", port);
    assert_string_equal(failure.text, expected);
    close_all(first, 2);
    assert_int_equal(listener_open(&same, 2, second, &ignored, &failure), 0);
    close_all(second, 2);
}

static void test_address_of_another_machine_is_refused(void **state)
{
    struct listen_address elsewhere = address("192.0.2.1:8080");
    struct failure failure;
    int socket_;
    uint16_t port;

    (void)state;
    assert_true(listener_open(&elsewhere, 1, &socket_, &port, &failure) < 0);
    assert_string_equal(failure.text, "cannot listen on port 8080 of 192.0.2.1: Cannot assign "
                                      "requested address");
}

static void test_star_takes_connections_to_any_address(void **state)
{
    struct listen_address star = address("*:0");
    int socket_, client;
    uint16_t port;

    (void)state;
    assert_int_equal(listener_open(&star, 1, &socket_, &port, NULL), 0);
    client = connect_to(port);
    assert_true(client >= 0);
    close(client);
    close(socket_);
}

static void test_every_socket_has_somebody_and_every_worker_the_same_number(void **state)
{
    (void)state;
    for (unsigned count = 1; count <= 12; count++) {
        for (unsigned workers = 1; workers <= count; workers++) {
            unsigned first = 0;

            for (unsigned worker = 0; worker < workers; worker++) {
                unsigned mine = 0;

                for (unsigned i = 0; i < count; i++)
                    mine += listener_is_for(i, count, worker, workers);
                first = worker == 0 ? mine : first;
                assert_int_equal(mine, first);
            }
            for (unsigned i = 0; i < count; i++) {
                unsigned takers = 0;

                for (unsigned worker = 0; worker < workers; worker++)
                    takers += listener_is_for(i, count, worker, workers);
                assert_true(takers >= 1);
            }
        }
    }
}

static void test_more_sockets_join_those_that_listen(void **state)
{
    struct listen_address any = address("127.0.0.1:0"), here, elsewhere;
    int sockets[3], clients[64];
    unsigned accepted = 0;
    uint16_t port, same;
    char room[LISTENER_DESCRIPTION_SIZE], text[32];

    (void)state;
    assert_int_equal(listener_open(&any, 1, sockets, &port, NULL), 0);
    assert_int_equal(listener_add(sockets, 1, 3), 0);
    for (int i = 0; i < 64; i++) { /* sockets that are only bound get no connections */
        clients[i] = connect_to(port);
        assert_true(clients[i] >= 0);
    }
    for (int i = 0; i < 64; i++) {
        struct pollfd waiting = {.fd = sockets[0], .events = POLLIN};
        int client;

        assert_int_equal(poll(&waiting, 1, 20000), 1);
        client = accept(sockets[0], NULL, NULL);
        assert_true(client >= 0);
        close(client);
        close(clients[i]);
    }
    assert_int_equal(listener_start(sockets[1]), 0);
    assert_int_equal(listener_start(sockets[2]), 0);
    for (unsigned others = 0; others == 0; accepted++) {
        struct pollfd waiting[3];
        int client = connect_to(port);

        assert_true(client >= 0);
        for (int i = 0; i < 3; i++)
            waiting[i] = (struct pollfd){.fd = sockets[i], .events = POLLIN};
        assert_true(poll(waiting, 3, 20000) >= 1);
        others = waiting[1].revents != 0 || waiting[2].revents != 0;
        if (waiting[0].revents)
            close(accept(sockets[0], NULL, NULL));
        close(client);
    }
    snprintf(text, sizeof(text), "127.0.0.1:%u", port);
    assert_string_equal(listener_describe(sockets[2], room), text);
    assert_true(listener_is_at(sockets[2], &any, &same));
    assert_int_equal(same, port);
    snprintf(text, sizeof(text), "127.0.0.1:%u", port);
    here = address(text);
    assert_true(listener_is_at(sockets[0], &here, &same));
    snprintf(text, sizeof(text), "127.0.0.2:%u", port);
    elsewhere = address(text);
    assert_false(listener_is_at(sockets[0], &elsewhere, &same));
    snprintf(text, sizeof(text), "127.0.0.1:%u", port ^ 1);
    elsewhere = address(text);
    assert_false(listener_is_at(sockets[0], &elsewhere, &same));
    close_all(sockets, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_are_taken_apart),
        cmocka_unit_test(test_every_socket_listens_on_one_free_port),
        cmocka_unit_test(test_busy_port_is_refused_even_when_it_could_be_shared),
        cmocka_unit_test(test_address_of_another_machine_is_refused),
        cmocka_unit_test(test_star_takes_connections_to_any_address),
        cmocka_unit_test(test_every_socket_has_somebody_and_every_worker_the_same_number),
        cmocka_unit_test(test_more_sockets_join_those_that_listen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
