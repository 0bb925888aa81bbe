/* test_http_server_bounds.c - peers that are slow, too many or do not read, and failing
 * allocations. */
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tests/support/http_scene.h"

/* --- time --- */

static void test_who_takes_too_long_is_told_and_who_says_nothing_is_not(void **state)
{
    (void)state;
    scene.settings.timeout_ms = SHORT_MS;
    scene_start_again();
    scene_expect_hung_up(scene_enter(0));
    scene_say(scene_enter(1), "GET / HTTP/1.1\r\n");
    TURN_UNTIL(scene.peers[1].was_ended || scene.peers[1].was_reset);
    if (scene.peers[1].heard.size > 0) /* unless it was slow to connect */
        scene_expect_end(&scene.peers[1], "408 request_timeout");
}

static void test_half_a_request_is_timed_out(void **state)
{
    struct peer *peer = scene_enter(0);

    (void)state;
    scene_say(peer, GET("/a") "GET / HTTP/1.1\r\n");
    scene_await_input(16);
    http_connection_time_out(scene_newest(), HTTP_WAIT_PENDING);
    scene_expect_end(peer, "200 /a, 408 request_timeout");
    peer = scene_enter(1);
    scene_say(peer, POST("4", "") "abc");
    scene_await_stage(scene_newest(), HTTP_STAGE_BODY);
    scene_turn_often();
    http_connection_time_out(scene_newest(), HTTP_WAIT_PENDING);
    scene_expect_end(peer, "408 request_timeout");
}

static void test_who_is_idle_or_lingers_for_long_is_closed(void **state)
{
    struct peer *idle = scene_enter(0), *lingering = scene_enter(1);

    (void)state;
    scene.server->waiting.lists[HTTP_WAIT_IDLE].wait_ms = SHORT_MS;
    scene.server->waiting.lists[HTTP_WAIT_LINGERING].wait_ms = SHORT_MS;
    scene_say(idle, GET("/a"));
    scene_say(lingering, "\r\n\r\n");
    TURN_UNTIL(scene.handled == 1);
    scene_await_metric(METRIC_CONNECTIONS, 0);
    scene_expect(idle, "200 /a");
    TURN_UNTIL(idle->was_ended);
    scene_expect_end(lingering, "400 bad_request");
}

static void test_who_reads_slowly_goes_on_and_who_does_not_read_is_cut_off(void **state)
{
    struct peer *peer = scene_enter_slowly(0);
    struct http_connection *connection = scene_newest();
    size_t held;

    (void)state;
    scene_say(peer, GET("/large"));
    TURN_UNTIL(scene.handled == 1 && connection->wire.is_blocked);
    scene_turn_often();
    held = connection->wire.held.size;
    assert_int_equal(connection->waiter.wait, HTTP_WAIT_SENDING);
    peer->reads_most = 20000;
    TURN_UNTIL(connection->wire.held.size < held);
    peer->reads_most = 0;
    connection->waiter.deadline.due_ms = 0; /* its time has expired */
    scene.server->waiting.lists[HTTP_WAIT_SENDING].wait_ms = SHORT_MS;
    uv_timer_start(scene.server->waiting.timer, scene.server->waiting.timer->timer_cb, 0, 0);
    scene_turn();
    assert_int_equal(connection->stage, HTTP_STAGE_HEAD);
    assert_int_equal(metric_get(scene.metrics, METRIC_BROKEN), 0);
    scene_await_metric(METRIC_CONNECTIONS, 0); /* it had another SHORT_MS, and read nothing */
    assert_int_equal(metric_get(scene.metrics, METRIC_BROKEN), 1);
}

/* --- bounds --- */

static void test_only_so_many_may_be_pending(void **state)
{
    (void)state;
    scene.settings.max_pending = 2;
    scene_start_again();
    scene_enter(0);
    scene_say(scene_enter(1), "GET");
    TURN_UNTIL(peer_has_spoken(&scene.peers[1]));
    scene_enter(2);
    scene_expect_hung_up(&scene.peers[0]);
    assert_int_equal(metric_get(scene.metrics, METRIC_HANDSHAKES_DROPPED), 1);
    assert_int_equal(metric_get(scene.metrics, METRIC_HANDSHAKES_PENDING), 2);
    scene_say(&scene.peers[2], GET("/a")); /* afterwards it is idle, and does not count */
    scene_expect(&scene.peers[2], "200 /a");
    scene_enter(3);
    scene_turn_often();
    assert_int_equal(metric_get(scene.metrics, METRIC_HANDSHAKES_DROPPED), 1);
}

static void test_the_number_of_idle_ones_is_limited(void **state)
{
    (void)state;
    scene.settings.max_idle = 2;
    scene_start_again();
    for (size_t i = 0; i < 3; i++) {
        scene_say(scene_enter(i), GET("/a"));
        scene_expect(&scene.peers[i], "200 /a");
    }
    scene_expect_hung_up(&scene.peers[0]);
    assert_int_equal(metric_get(scene.metrics, METRIC_IDLE_DROPPED), 1);
    scene_say(&scene.peers[1], GET("/b"));
    scene_expect(&scene.peers[1], "200 /b");
}

static void test_the_number_of_lingering_ones_is_limited(void **state)
{
    (void)state;
    scene.settings.max_lingering = 2;
    scene_start_again();
    for (size_t i = 0; i < 4; i++) {
        scene_say(scene_enter(i), "\r\n\r\n");
        scene_expect(&scene.peers[i], "400 bad_request");
    }
    scene_await_metric(METRIC_CONNECTIONS, 2);
    assert_int_equal(metric_get(scene.metrics, METRIC_LINGERING_DROPPED), 2);
}

static void test_without_room_to_be_idle_an_answer_is_the_last(void **state)
{
    (void)state;
    scene.settings.max_idle = 0;
    scene_start_again();
    scene_say(scene_enter(0), GET("/a"));
    TURN_UNTIL(scene.peers[0].was_ended || scene.peers[0].was_reset);
    scene_expect(&scene.peers[0], "200 /a");
}

static void test_the_slowest_large_body_gives_way(void **state)
{
    struct peer *slow = scene_enter(0), *quick;

    (void)state;
    scene.server->bodies.max_bytes = 4 * 100000; /* a quarter is for these tests */
    scene_say(slow, POST("200000", "") "abc");
    scene_await_stage(scene_newest(), HTTP_STAGE_BODY);
    TURN_UNTIL(scene.server->bodies.bytes == 3);
    scene_newest()->incoming->share.began_ms -= HTTP_BODIES_GRACE_MS;
    quick = scene_enter(1);
    scene_say(quick, POST("200000", ""));
    peer_say(quick, sl_slice(scene.large, 100000));
    scene_expect_end(slow, "503 busy");
    TURN_UNTIL(scene.server->bodies.bytes == 100000);
    peer_say(quick, sl_slice(scene.large, 100000));
    scene_expect_end(quick, "503 busy"); /* there is nobody else */
    assert_int_equal(scene.server->bodies.bytes, 0);
}

/* --- peers that do not read --- */

static void test_large_answers_reach_a_slow_reader(void **state)
{
    struct peer *peer = scene_enter_slowly(0);
    struct http_connection *connection = scene_newest();
    size_t most = 0;

    (void)state;
    for (int i = 0; i < 8; i++)
        scene_say(peer, GET("/large") GET("/a"));
    peer->reads_most = 15000;
    test_loop_start_deadline(&scene.test_loop);
    while (scene.handled < 16 || connection->wire.is_blocked) {
        scene_turn();
        if (connection->wire.held.size > most)
            most = connection->wire.held.size;
    }
    test_loop_stop_deadline(&scene.test_loop);
    peer->reads_most = SIZE_MAX;
    scene_expect(peer,
                 "200 large, 200 /a, 200 large, 200 /a, 200 large, 200 /a, 200 large, 200 /a, "
                 "200 large, 200 /a, 200 large, 200 /a, 200 large, 200 /a, 200 large, 200 /a");
    assert_true(most > 0);
    assert_true(most <= OUTPUT_MAX + LARGE + 1000);
}

/* However many requests the peer sends. */
static void test_who_does_not_read_its_answers_is_not_asked_for_more(void **state)
{
    struct peer *peer = scene_enter_slowly(0);
    struct http_connection *connection = scene_newest();

    (void)state;
    for (int i = 0; i < 32; i++)
        scene_say(peer, GET("/large"));
    TURN_UNTIL(connection->wire.is_blocked);
    scene_turn_often();
    assert_true(scene.handled <= 2);
    assert_true(connection->wire.held.size <= OUTPUT_MAX + LARGE + 1000);
    assert_true(scene.server->output.capacity <= 2 * OUTPUT_MAX);
}

static void test_a_last_answer_is_sent_before_the_end(void **state)
{
    struct peer *peer = scene_enter_slowly(0);

    (void)state;
    scene_say(peer, "GET /large HTTP/1.0\r\n\r\n");
    TURN_UNTIL(scene.handled == 1);
    scene_turn_often();
    assert_int_equal(scene.asked->stage, HTTP_STAGE_LAST);
    assert_int_equal(scene.asked->waiter.wait, HTTP_WAIT_SENDING);
    peer->reads_most = SIZE_MAX;
    scene_expect_end(peer, "200 large");
}

/* --- failing allocations --- */

static void test_out_of_memory_there_is_no_server(void **state)
{
    (void)state;
    scene_stop();
    scene.server = NULL;
    for (uint64_t n = 0; !scene.server; n++) {
        mem_fail_after(n);
        scene.server = http_server_new(&scene.settings);
        mem_fail_never();
    }
}

/* Sends requests of all kinds from one peer, with memory for n allocations. True: that was
 * enough. */
static bool ask_with_memory_for(uint64_t n)
{
    static const char requests[] = GET("/a") "GET /b HTTP/1.1\r\n";
    static const char rest[] = "Host: x\r\n\r\n" POST("20000", "");
    struct peer *peer = &scene.peers[0];
    bool has_failed;

    peer_connect(peer, &scene.address, scene.with_tls, 0);
    buffer_reserve(&peer->heard, 100000);
    buffer_reserve(&peer->to_say, 100000);
    mem_fail_after(n);
    scene_accept(0);
    peer_say(peer, sl_slice(requests, sizeof(requests) - 1));
    TURN_UNTIL(peer->was_ended || peer->was_reset || (peer_has_spoken(peer) && scene.handled == 1));
    scene_turn();
    peer_say(peer, sl_slice(rest, sizeof(rest) - 1));
    peer_say(peer, sl_slice(scene.large, 20000));
    peer_say(peer, SL_SLICE(UPGRADE "more"));
    TURN_UNTIL(peer->was_ended || peer->was_reset || scene.handled == 4);
    scene_turn_often();
    has_failed = mem_failed();
    mem_fail_never();
    peer_close(peer);
    wire_close(&scene.taken);
    buffer_done(&scene.taken_heard);
    scene.handled = 0;
    scene_turn_often();
    assert_true(list_is_empty(&scene.server->connections));
    return !has_failed;
}

static void test_out_of_memory_a_connection_ends(void **state)
{
    uint64_t n = 0;

    (void)state;
    while (!ask_with_memory_for(n))
        n++;
    assert_true(n > 5);
}

/* What follows a lost answer must not be taken for it. */
static void test_out_of_memory_nothing_follows_what_is_missing(void **state)
{
    struct peer *peer = &scene.peers[0];
    bool has_failed = true;

    (void)state;
    for (uint64_t n = 0; has_failed; n++) {
        scene_start_again();
        peer_connect(peer, &scene.address, scene.with_tls, 0);
        buffer_reserve(&peer->heard, 100000);
        scene_say(peer, GET("/a") GET("/b") UPGRADE);
        scene_accept(0);
        mem_fail_after(n);
        TURN_UNTIL(peer->was_ended || peer->was_reset || scene.handled == 3);
        scene_turn_often();
        has_failed = mem_failed();
        mem_fail_never();
        if (peer->heard.size > 0)
            assert_string_equal(scene_summary(peer, NULL), "200 /a, 200 /b ...");
        peer_close(peer);
        scene.handled = 0;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HTTP_TEST(test_who_takes_too_long_is_told_and_who_says_nothing_is_not),
        HTTP_TEST(test_half_a_request_is_timed_out),
        HTTP_TEST(test_who_is_idle_or_lingers_for_long_is_closed),
        HTTP_TEST(test_who_reads_slowly_goes_on_and_who_does_not_read_is_cut_off),
        HTTP_TEST(test_only_so_many_may_be_pending),
        HTTP_TEST(test_the_number_of_idle_ones_is_limited),
        HTTP_TEST(test_the_number_of_lingering_ones_is_limited),
        HTTP_TEST(test_without_room_to_be_idle_an_answer_is_the_last),
        HTTP_TEST(test_the_slowest_large_body_gives_way),
        HTTP_TEST(test_large_answers_reach_a_slow_reader),
        HTTP_TEST(test_who_does_not_read_its_answers_is_not_asked_for_more),
        HTTP_TEST(test_a_last_answer_is_sent_before_the_end),
        HTTP_TEST(test_out_of_memory_there_is_no_server),
        HTTP_TEST(test_out_of_memory_a_connection_ends),
        HTTP_TEST(test_out_of_memory_nothing_follows_what_is_missing),
    };

    return cmocka_run_group_tests(tests, scene_make_folder, scene_remove_folder);
}
