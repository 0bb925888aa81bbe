/* test_http_proxied.c - the client addresses of requests: PROXY headers on a listener, and headers
 * that trusted proxies add. */
#include <arpa/inet.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/http_scene.h"

#define LINE "PROXY TCP4 192.0.2.1 192.0.2.2 4711 443\r\n"

static struct client_trust trust;

static void begin(const char *trusted, bool with_proxy)
{
    assert_int_equal(ip_networks_parse(sl_slice_str(trusted), &trust.proxies, NULL), 0);
    trust.reads_forwarded = false;
    scene.with_proxy = with_proxy;
    scene.settings.trust = &trust;
    scene_start_again();
}

static int end(void **state)
{
    scene.with_proxy = false;
    return scene_end(state);
}

/* Sends before TLS, if there is any: directly to the socket, before the peer has sent anything. */
static void say_bare(const struct peer *peer, struct sl_slice text)
{
    assert_int_equal(write(peer->fd, text.data, text.size), text.size);
}

static const char *client(void)
{
    static char text[IP_ADDRESS_TEXT_SIZE];
    char room[WIRE_ADDRESS_SIZE];
    struct sl_slice bytes = wire_client_address(http_connection_wire(scene.asked), room);

    assert_non_null(
        inet_ntop(bytes.size == 4 ? AF_INET : AF_INET6, bytes.data, text, sizeof(text)));
    return text;
}

static void expect_client(struct peer *peer, const char *request, const char *expected)
{
    size_t before = scene.handled;

    scene_say(peer, request);
    TURN_UNTIL(scene.handled == before + 1);
    assert_string_equal(client(), expected);
    TURN_UNTIL(peer->heard.size > 0);
    buffer_clear(&peer->heard);
}

static void test_a_proxy_header_names_the_client(void **state)
{
    static const struct sl_slice headers[] = {
        {LINE, sizeof(LINE) - 1},
        {"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xc0\0\2\1\xc0\0\2\2\x12\x67\1\xbb", 28},
    };

    (void)state;
    begin("loopback", true);
    for (size_t i = 0; i < 2; i++) {
        struct peer *peer = scene_enter(i);

        say_bare(peer, headers[i]);
        expect_client(peer, GET("/a"), "192.0.2.1");
        /* only the PROXY header counts */
        expect_client(peer, "GET /b HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 198.51.100.9\r\n\r\n",
                      "192.0.2.1");
    }
}

static void test_a_proxy_header_may_come_byte_by_byte(void **state)
{
    struct peer *peer;

    (void)state;
    begin("loopback", true);
    peer = scene_enter(0);
    for (size_t i = 0; i < sizeof(LINE) - 1; i++) {
        say_bare(peer, sl_slice(LINE + i, 1));
        uv_run(&scene.test_loop.uv, UV_RUN_NOWAIT);
        assert_int_equal(scene_newest()->stage,
                         i + 2 < sizeof(LINE) ? HTTP_STAGE_GATE : HTTP_STAGE_HEAD);
        if (i > 0 && scene_newest()->stage == HTTP_STAGE_GATE)
            assert_true(http_server_is_busy(scene.server));
    }
    expect_client(peer, GET("/a"), "192.0.2.1");
}

static void test_a_proxy_may_ask_for_itself(void **state)
{
    struct peer *peer;

    (void)state;
    begin("loopback", true);
    peer = scene_enter(0);
    say_bare(peer, SL_SLICE("PROXY UNKNOWN\r\n"));
    expect_client(peer, GET("/a"), "127.0.0.1");
}

static void test_who_sends_no_proxy_header_is_hung_up_on(void **state)
{
    struct peer *peer;

    (void)state;
    begin("loopback", true);
    peer = scene_enter(0);
    say_bare(peer, SL_SLICE("GET / HTTP/1.1\r\n"));
    TURN_UNTIL(peer->was_ended || peer->was_reset);
    assert_int_equal(peer->heard.size, 0);
    scene_await_metric(METRIC_PROXY_MALFORMED, 1);
    assert_int_equal(metric_get(scene.metrics, METRIC_CONNECTIONS), 0);
    peer = scene_enter(1); /* a connection that is closed at once, like a health check */
    peer_close(peer);
    scene_await_metric(METRIC_CONNECTIONS, 0);
    assert_int_equal(metric_get(scene.metrics, METRIC_PROXY_MALFORMED), 1);
}

static void test_a_stranger_cannot_speak_for_others(void **state)
{
    struct peer *peer;

    (void)state;
    begin("192.0.2.0/24", true);
    peer = scene_enter(0);
    TURN_UNTIL(peer->was_ended || peer->was_reset);
    assert_int_equal(metric_get(scene.metrics, METRIC_PROXY_UNTRUSTED), 1);
    assert_int_equal(metric_get(scene.metrics, METRIC_CONNECTIONS_ACCEPTED), 0);
    begin("192.0.2.0/24", false);
    expect_client(scene_enter(1), "GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n",
                  "127.0.0.1");
}

static void test_a_gate_has_bounds(void **state)
{
    struct peer *first, *second;

    (void)state;
    scene.settings.max_pending = 1;
    scene.settings.timeout_ms = SHORT_MS;
    begin("loopback", true);
    first = scene_enter(0);
    second = scene_enter(1);
    TURN_UNTIL(first->was_ended || first->was_reset);
    assert_int_equal(metric_get(scene.metrics, METRIC_HANDSHAKES_DROPPED), 1);
    TURN_UNTIL(second->was_ended || second->was_reset);
    assert_int_equal(metric_get(scene.metrics, METRIC_PROXY_LATE), 1);
    scene_enter(2); /* is connected when the server closes */
}

static void test_a_header_names_the_client_of_each_request(void **state)
{
    struct peer *peer;

    (void)state;
    begin("loopback", false);
    peer = scene_enter(0);
    expect_client(peer, GET("/a"), "127.0.0.1");
    expect_client(peer,
                  "GET /b HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 198.51.100.9, 192.0.2.1\r\n\r\n",
                  "192.0.2.1");
    expect_client(peer,
                  "GET /b HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: a\r\n"
                  "X-Forwarded-For: 1.1.1.2\r\nX-Forwarded-For: 1.1.1.3\r\n"
                  "X-Forwarded-For: 1.1.1.4\r\nX-Forwarded-For: 192.0.2.3\r\n\r\n",
                  "192.0.2.3");
    assert_int_equal(metric_get(scene.metrics, METRIC_CLIENT_UNUSABLE), 0);
    expect_client(peer, "GET /c HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: x\r\n\r\n", "127.0.0.1");
    assert_int_equal(metric_get(scene.metrics, METRIC_CLIENT_UNUSABLE), 1);
    trust.reads_forwarded = true;
    expect_client(peer, "GET /d HTTP/1.1\r\nHost: x\r\nForwarded: for=192.0.2.4\r\n\r\n",
                  "192.0.2.4");
    expect_client(peer, GET("/e"), "127.0.0.1");
    expect_client(peer, "GET /d HTTP/1.1\r\nHost: x\r\nForwarded: for=192.0.2.4\r\n\r\n",
                  "192.0.2.4");
    trust.proxies.count = 0; /* by a reload */
    expect_client(peer, "GET /d HTTP/1.1\r\nHost: x\r\nForwarded: for=192.0.2.4\r\n\r\n",
                  "127.0.0.1");
}

static void test_tls_is_known_of(void **state)
{
    struct peer *peer;

    (void)state;
    begin("loopback", false);
    peer = scene_enter(0);
    expect_client(peer, GET("/a"), "127.0.0.1");
    assert_int_equal(http_connection_wire(scene.asked)->is_secure, scene.with_tls);
    expect_client(peer, "GET /b HTTP/1.1\r\nHost: x\r\nX-Forwarded-Proto: https\r\n\r\n",
                  "127.0.0.1");
    assert_true(http_connection_wire(scene.asked)->is_secure);
}

#define PROXIED_TEST(test)                                                                         \
    cmocka_unit_test_prestate_setup_teardown(test, scene_begin, end, &(bool){false}),              \
        cmocka_unit_test_prestate_setup_teardown(test, scene_begin, end, &(bool){true})

int main(void)
{
    const struct CMUnitTest tests[] = {
        PROXIED_TEST(test_a_proxy_header_names_the_client),
        PROXIED_TEST(test_a_proxy_header_may_come_byte_by_byte),
        PROXIED_TEST(test_a_proxy_may_ask_for_itself),
        PROXIED_TEST(test_who_sends_no_proxy_header_is_hung_up_on),
        PROXIED_TEST(test_a_stranger_cannot_speak_for_others),
        PROXIED_TEST(test_a_gate_has_bounds),
        PROXIED_TEST(test_a_header_names_the_client_of_each_request),
        PROXIED_TEST(test_tls_is_known_of),
    };

    return cmocka_run_group_tests(tests, scene_make_folder, scene_remove_folder);
}
