/* test_http_server.c - requests and their answers, however they are split, and what closes a
 * connection. */
#include <string.h>
#include <unistd.h>

#include "tests/support/http_scene.h"

/* --- requests --- */

static void test_a_request_is_answered_and_the_connection_kept(void **state)
{
    struct peer *peer = scene_enter(0);

    (void)state;
    assert_int_equal(metric_get(scene.metrics, METRIC_HANDSHAKES_PENDING), 1);
    scene_say(peer, GET("/a"));
    TURN_UNTIL(scene.handled == 1);
    assert_int_equal(http_connection_listener(scene.asked), 7);
    TURN_UNTIL(strcmp(scene_summary(peer, NULL), "200 /a") == 0);
    assert_non_null(strstr(buffer_str(&peer->heard), "\r\nX-Test: yes\r\n"));
    assert_null(strstr(buffer_str(&peer->heard), "Connection:"));
    buffer_clear(&peer->heard);
    assert_int_equal(metric_get(scene.metrics, METRIC_CONNECTIONS_IDLE), 1);
    assert_int_equal(metric_get(scene.metrics, METRIC_HANDSHAKES_PENDING), 0);
    scene_say(peer, GET("/b"));
    scene_expect(peer, "200 /b");
    assert_int_equal(metric_get(scene.metrics, METRIC_CONNECTIONS_ACCEPTED), 1);
    peer_close(peer);
    scene_await_metric(METRIC_CONNECTIONS, 0);
}

static void test_a_request_may_come_byte_by_byte(void **state)
{
    static const char request[] = POST("4", "") "abcd" GET("/b");
    struct peer *peer = scene_enter(0);

    (void)state;
    for (size_t i = 0; i < sizeof(request) - 1; i++) {
        peer_say(peer, sl_slice(request + i, 1));
        TURN_UNTIL(peer_has_spoken(peer));
        scene_turn();
    }
    scene_expect(peer, "200 abcd, 200 /b");
}

/* Wherever a stream of requests is cut, the answers are the same. */
static void test_requests_may_be_cut_anywhere(void **state)
{
    static const char requests[] = GET("/a") POST("4", "") "abcd" HEAD("/c") POST("0", "")
        POST("5", "X: y\r\n") "GET /" UPGRADE "more";

    (void)state;
    for (size_t i = 1; i < sizeof(requests) - 1; i++) {
        struct peer *peer = scene_enter(0);

        scene.handled = 0;
        peer_say(peer, sl_slice(requests, i));
        TURN_UNTIL(peer_has_spoken(peer));
        scene_turn();
        peer_say(peer, sl_slice(requests + i, sizeof(requests) - 1 - i));
        TURN_UNTIL(scene.taken_heard.size == 4);
        assert_memory_equal(scene.taken_heard.data, "more", 4);
        TURN_UNTIL(peer->heard.size > 5 &&
                   memcmp(peer->heard.data + peer->heard.size - 5, "taken", 5) == 0);
        scene_expect_of(peer, "200 /a, 200 abcd, 200, 200, 200 GET / ...", "--h--");
        assert_int_equal(scene.handled, 6);
        wire_close(&scene.taken);
        buffer_done(&scene.taken_heard);
    }
    assert_int_equal(metric_get(scene.metrics, METRIC_CONNECTIONS),
                     sizeof(requests) - 2); /* now in our hands */
}

/* They are answered in order, interleaved with other connections. */
static void test_many_requests_may_be_sent_ahead(void **state)
{
    struct buffer expected = BUFFER_INIT;
    struct peer *eager = scene_enter(0), *other = scene_enter(1);
    size_t before;

    (void)state;
    scene_say(other, GET("/a"));
    scene_expect(other, "200 /a");
    scene.handled = 0;
    for (int i = 0; i < 500; i++) {
        char request[64];

        snprintf(request, sizeof(request), "GET /%d HTTP/1.1\r\nHost: x\r\n\r\n", i);
        scene_say(eager, request);
        buffer_append_format(&expected, "%s200 /%d", i ? ", " : "", i);
    }
    TURN_UNTIL(scene.handled > 0);
    scene_say(other, GET("/other"));
    test_loop_start_deadline(&scene.test_loop);
    while (scene.handled < 501) {
        before = scene.handled;
        scene_turn();
        assert_true(scene.handled - before <= 64 + 1); /* those put off, and the new one */
        if (scene.handled >= 400)
            assert_string_equal(scene_summary(other, NULL), "200 /other");
    }
    test_loop_stop_deadline(&scene.test_loop);
    scene_expect(eager, buffer_str(&expected));
    buffer_done(&expected);
}

static void test_who_expects_to_be_told_to_continue_is(void **state)
{
    struct peer *peer = scene_enter(0);

    (void)state;
    scene_say(peer, POST("4", "Expect: 100-continue\r\n"));
    scene_expect(peer, "100");
    scene_say(peer, "abcd");
    scene_expect(peer, "200 abcd");
    scene_say(peer, POST("4", "Expect: 100-continue\r\n") "abcd"); /* and did not wait */
    scene_expect(peer, "200 abcd");
    scene_say(peer, GET("/a") POST("4", "Expect: 100-continue\r\n"));
    scene_expect(peer, "200 /a, 100"); /* in this order */
}

static void test_large_bodies_are_read(void **state)
{
    struct peer *peer = scene_enter(0);
    struct buffer expected = BUFFER_INIT;

    (void)state;
    buffer_append_str(&expected, "200 ");
    for (int i = 0; i < 15000; i++)
        buffer_append_char(&expected, (char)('a' + i % 26));
    scene_say(peer, POST("15000", ""));
    peer_say(peer, sl_slice_from(buffer_slice(&expected), 4));
    scene_expect(peer, buffer_str(&expected));
    scene_say(peer, POST("200000", ""));
    TURN_UNTIL(scene_newest()->stage == HTTP_STAGE_BODY);
    peer_say(peer, sl_slice(scene.large, 200000));
    TURN_UNTIL(peer->heard.size > 200000);
    assert_int_equal(scene.server->bodies.bytes, 0);
    buffer_done(&expected);
}

static void test_head_has_no_body(void **state)
{
    struct peer *peer = scene_enter(0);

    (void)state;
    scene_say(peer, HEAD("/abc") GET("/b"));
    TURN_UNTIL(strcmp(scene_summary(peer, "h-"), "200, 200 /b") == 0);
    assert_non_null(strstr(buffer_str(&peer->heard), "Content-Length: 4\r\n"));
}

static void test_who_asks_for_the_end_gets_it(void **state)
{
    static const char *const requests[] = {
        "GET /a HTTP/1.0\r\n\r\n" GET("/b"),
        "GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" GET("/b"),
        "GET /a HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n" GET(
            "/b")};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct peer *peer = scene_enter(0);

        scene_say(peer, requests[i]);
        scene_expect_end(peer, "200 /a");
        assert_int_equal(metric_get(scene.metrics, METRIC_CONNECTIONS_LINGERING), 1);
        peer_close(peer);
        scene_await_metric(METRIC_CONNECTIONS, 0);
    }
    assert_int_equal(metric_get(scene.metrics, METRIC_LINGERING_DROPPED), 0);
}

/* --- refusals --- */

static void expect_refused(const char *request, const char *expected)
{
    struct peer *peer = scene_enter(0);

    scene_say(peer, request);
    TURN_UNTIL(metric_get(scene.metrics, METRIC_CONNECTIONS_LINGERING) == 1);
    scene_say(peer, "and what it still has to say does not reset the answer");
    TURN_UNTIL(peer_has_spoken(peer));
    scene_turn_often();
    peer_say(peer, sl_slice(scene.large, sizeof(scene.large)));
    TURN_UNTIL(peer_has_spoken(peer));
    scene_expect_end(peer, expected);
    peer_close(peer);
    scene_await_metric(METRIC_CONNECTIONS, 0);
}

static void test_what_is_refused_is_answered(void **state)
{
    char too_long[MAX_HEAD + 100];

    (void)state;
    expect_refused("GET a HTTP/1.1\r\n\r\n" GET("/b"), "400 bad_request");
    expect_refused(GET("/a") "BREW / HTTP/1.1\r\nHost: x\r\n\r\n", "200 /a, 501 not_implemented");
    expect_refused(POST("200001", ""), "413 body_too_large");
    expect_refused("POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n", "403 no");
    expect_refused("POST /no HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\na", "403 no");
    assert_int_equal(metric_get(scene.metrics, METRIC_REFUSED_HEADS), 3);
    for (size_t size = MAX_HEAD; size <= MAX_HEAD + 1; size++) {
        snprintf(too_long, sizeof(too_long), "GET /a HTTP/1.1\r\nHost: x\r\nX: ");
        memset(too_long + strlen(too_long), 'x', sizeof(too_long) - strlen(too_long));
        strcpy(too_long + size - 4, "\r\n\r\n");
        if (size > MAX_HEAD)
            expect_refused(too_long, "431 headers_too_large");
        else {
            scene_say(scene_enter(0), too_long);
            scene_expect(&scene.peers[0], "200 /a");
            peer_close(&scene.peers[0]);
            scene_await_metric(METRIC_CONNECTIONS, 0);
        }
    }
    memset(too_long, 'x', MAX_HEAD + 1);
    too_long[MAX_HEAD + 1] = '\0';
    expect_refused(too_long, "431 headers_too_large"); /* it does not wait for the end */
}

static void test_a_refusal_by_the_handler_keeps_the_connection(void **state)
{
    struct peer *peer = scene_enter(0);

    (void)state;
    scene_say(peer, GET("/refused") GET("/b"));
    scene_expect(peer, "403 no, 200 /b");
}

static void test_the_headers_of_the_check_are_not_those_of_the_answer(void **state)
{
    struct peer *peer = scene_enter(0);

    (void)state;
    scene_say(peer, POST("1", ""));
    TURN_UNTIL(scene_newest()->stage == HTTP_STAGE_BODY);
    scene_say(peer, "a");
    TURN_UNTIL(strcmp(scene_summary(peer, NULL), "200 a") == 0);
    assert_non_null(strstr(buffer_str(&peer->heard), "X-Test"));
    assert_null(strstr(buffer_str(&peer->heard), "X-Checked"));
}

static void test_who_talks_on_for_ever_is_cut_off(void **state)
{
    struct peer *peer = scene_enter(0);

    (void)state;
    scene_say(peer, "\r\n\r\n");
    for (int i = 0; i < 20; i++)
        peer_say(peer, sl_slice(scene.large, sizeof(scene.large)));
    scene_await_metric(METRIC_CONNECTIONS, 0);
    assert_int_equal(metric_get(scene.metrics, METRIC_LINGERING_DROPPED), 0);
}

/* --- delayed answers --- */

static void test_an_answer_may_come_later(void **state)
{
    struct peer *peer = scene_enter(0), *other = scene_enter(1);

    (void)state;
    scene_say(peer, GET("/a") GET("/later") GET("/c"));
    scene_expect(peer, "200 /a");
    assert_int_equal(scene.later_count, 1);
    scene_say(other, GET("/other"));
    scene_expect(other, "200 /other");
    scene_answer(scene.later[0], SL_SLICE("b"));
    scene_expect(peer, "200 b, 200 /c");
    assert_int_equal(scene.abandoned, 0);
}

static void test_who_has_ended_its_half_gets_its_answer(void **state)
{
    struct peer *peer = scene_enter(0);

    (void)state;
    scene_say(peer, GET("/a") GET("/later"));
    TURN_UNTIL(peer_has_spoken(peer));
    peer_end(peer);
    TURN_UNTIL(scene.later_count == 1);
    scene_turn_often();
    assert_int_equal(scene.abandoned, 0);
    scene_answer(scene.later[0], SL_SLICE("b"));
    TURN_UNTIL(peer->was_ended);
    scene_expect(peer, "200 /a, 200 b");
    scene_await_metric(METRIC_CONNECTIONS, 0);
}

static void test_an_answer_to_nobody_is_no_harm(void **state)
{
    struct peer *peer = scene_enter(0);

    (void)state;
    scene_say(peer, GET("/later"));
    TURN_UNTIL(scene.later_count == 1);
    peer_reset(peer);
    scene_turn_often();
    scene_answer(scene.later[0], sl_slice(scene.large, sizeof(scene.large)));
    scene_await_metric(METRIC_CONNECTIONS, 0);
}

static void test_an_answer_is_abandoned_when_the_server_closes(void **state)
{
    struct peer *peer = scene_enter(0);

    (void)state;
    scene_say(peer, GET("/later"));
    TURN_UNTIL(scene.later_count == 1);
    http_server_close(scene.server);
    assert_int_equal(scene.abandoned, 1);
    assert_int_equal(metric_get(scene.metrics, METRIC_CONNECTIONS), 0);
    scene_expect_hung_up(peer);
}

/* --- taking over --- */

static void test_what_is_taken_over_begins_behind_the_answers(void **state)
{
    struct peer *peer = scene_enter(0);

    (void)state;
    scene_say(peer, GET("/a") UPGRADE "behind the head");
    TURN_UNTIL(scene.taken_heard.size == 15);
    assert_memory_equal(scene.taken_heard.data, "behind the head", 15);
    TURN_UNTIL(peer->heard.size > 5 &&
               memcmp(peer->heard.data + peer->heard.size - 5, "taken", 5) == 0);
    assert_string_equal(scene_summary(peer, NULL), "200 /a ...");
    scene_say(peer, ", and later");
    TURN_UNTIL(scene.taken_heard.size == 26);
    scene_turn_often();
    assert_true(list_is_empty(&scene.server->connections));
    assert_int_equal(metric_get(scene.metrics, METRIC_CONNECTIONS), 1); /* until it is taken over */
    peer_end(peer);
    TURN_UNTIL(scene.taken_is_closed);
}

static void test_what_was_put_off_may_be_taken_over(void **state)
{
    struct peer *peer = scene_enter(0);

    (void)state;
    for (int i = 0; i < 100; i++)
        scene_say(peer, GET("/a"));
    scene_say(peer, UPGRADE "behind the head");
    TURN_UNTIL(scene.taken_heard.size == 15);
    assert_int_equal(scene.handled, 101);
    TURN_UNTIL(peer->heard.size > 5 &&
               memcmp(peer->heard.data + peer->heard.size - 5, "taken", 5) == 0);
}

static void test_a_wire_that_holds_answers_may_be_taken_over(void **state)
{
    struct peer *peer = scene_enter_slowly(0);

    (void)state;
    scene_say(peer, GET("/later"));
    TURN_UNTIL(scene.later_count == 1);
    for (int i = 0; i < 3; i++)
        scene_say(peer, GET("/a"));
    scene_say(peer, UPGRADE "behind");
    scene_answer(scene.later[0], sl_slice(scene.large, sizeof(scene.large)));
    scene_turn_often();
    assert_int_equal(scene.handled, 1);
    peer->reads_most = SIZE_MAX;
    TURN_UNTIL(scene.taken_heard.size == 6);
    TURN_UNTIL(peer->heard.size > 5 &&
               memcmp(peer->heard.data + peer->heard.size - 5, "taken", 5) == 0);
    assert_string_equal(scene_summary(peer, NULL), "200 large, 200 /a, 200 /a, 200 /a ...");
}

/* --- the end --- */

static void test_draining_ends_what_is_idle_and_answers_the_last(void **state)
{
    struct peer *idle = scene_enter(0), *asking = scene_enter(1), *half = scene_enter(2);

    (void)state;
    scene_say(idle, GET("/a"));
    scene_expect(idle, "200 /a");
    scene_say(asking, GET("/later"));
    scene_say(half, "GET /a HTTP/1.1\r\n");
    TURN_UNTIL(scene.later_count == 1 && peer_has_spoken(half));
    scene_await_input(17);
    http_server_drain(scene.server, false);
    scene_expect_hung_up(idle);
    assert_true(http_server_is_busy(scene.server));
    scene_answer(scene.later[0], SL_SLICE("b"));
    scene_say(half, "Host: x\r\n\r\n");
    scene_expect_end(asking, "200 b");
    scene_expect_end(half, "200 /a");
    assert_true(http_server_is_busy(scene.server)); /* they linger */
    peer_close(asking);
    peer_close(half);
    TURN_UNTIL(!http_server_is_busy(scene.server));
    assert_true(list_is_empty(&scene.server->connections));
}

static void test_one_that_has_just_come_counts_for_a_moment(void **state)
{
    (void)state;
    scene_enter(0);
    http_server_drain(scene.server, false);
    assert_true(http_server_is_busy(scene.server));
    TURN_UNTIL(!http_server_is_busy(scene.server)); /* its first request does not arrive */
    scene_say(&scene.peers[0], GET("/a"));          /* or arrives late */
    scene_expect_end(&scene.peers[0], "200 /a");
}

static void test_with_a_successor_all_are_served_once_more(void **state)
{
    struct peer *idle = scene_enter(0), *silent = scene_enter(1);

    (void)state;
    scene_say(idle, GET("/a"));
    scene_expect(idle, "200 /a");
    http_server_drain(scene.server, true);
    scene_turn_often();
    assert_true(http_server_is_busy(scene.server));
    scene_say(idle, GET("/b"));
    scene_expect_end(idle, "200 /b");
    scene_say(silent, GET("/c"));
    scene_expect_end(silent, "200 /c");
    peer_close(idle);
    peer_close(silent);
    TURN_UNTIL(!http_server_is_busy(scene.server));
}

static void test_it_may_be_closed_at_any_time(void **state)
{
    struct peer *blocked = scene_enter_slowly(0);

    (void)state;
    scene_say(blocked, GET("/large"));
    TURN_UNTIL(scene.handled == 1);
    scene_say(scene_enter(1), "\r\n\r\n");
    scene_expect(&scene.peers[1], "400 bad_request");
    scene_say(scene_enter(2), "GET");
    scene_await_input(3);
    scene_say(scene_enter(3), POST("200000", "") "a");
    scene_await_stage(scene_newest(), HTTP_STAGE_BODY);
    for (int i = 0; i < 100; i++)
        scene_say(&scene.peers[4], "");
    scene_say(scene_enter(4), GET("/later"));
    TURN_UNTIL(scene.later_count == 1);
    scene_enter(5);
    http_server_close(scene.server);
    scene_turn();
    assert_int_equal(metric_get(scene.metrics, METRIC_CONNECTIONS), 0);
    assert_true(list_is_empty(&scene.server->connections));
}

/* Whatever is done for a delayed one, it may be closed meanwhile. */
static void test_one_that_is_put_off_may_be_closed(void **state)
{
    struct peer *peer = scene_enter(0);

    (void)state;
    for (int i = 0; i < 300; i++)
        scene_say(peer, GET("/a"));
    TURN_UNTIL(scene.handled > 0);
    http_connection_end(scene_newest());
    TURN_UNTIL(peer->was_ended || peer->was_reset);
    assert_true(list_is_empty(&scene.server->put_off));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        HTTP_TEST(test_a_request_is_answered_and_the_connection_kept),
        HTTP_TEST(test_a_request_may_come_byte_by_byte),
        HTTP_TEST(test_requests_may_be_cut_anywhere),
        HTTP_TEST(test_many_requests_may_be_sent_ahead),
        HTTP_TEST(test_who_expects_to_be_told_to_continue_is),
        HTTP_TEST(test_large_bodies_are_read),
        HTTP_TEST(test_head_has_no_body),
        HTTP_TEST(test_who_asks_for_the_end_gets_it),
        HTTP_TEST(test_what_is_refused_is_answered),
        HTTP_TEST(test_a_refusal_by_the_handler_keeps_the_connection),
        HTTP_TEST(test_the_headers_of_the_check_are_not_those_of_the_answer),
        HTTP_TEST(test_who_talks_on_for_ever_is_cut_off),
        HTTP_TEST(test_an_answer_may_come_later),
        HTTP_TEST(test_who_has_ended_its_half_gets_its_answer),
        HTTP_TEST(test_an_answer_to_nobody_is_no_harm),
        HTTP_TEST(test_an_answer_is_abandoned_when_the_server_closes),
        HTTP_TEST(test_what_is_taken_over_begins_behind_the_answers),
        HTTP_TEST(test_what_was_put_off_may_be_taken_over),
        HTTP_TEST(test_a_wire_that_holds_answers_may_be_taken_over),
        HTTP_TEST(test_draining_ends_what_is_idle_and_answers_the_last),
        HTTP_TEST(test_one_that_has_just_come_counts_for_a_moment),
        HTTP_TEST(test_with_a_successor_all_are_served_once_more),
        HTTP_TEST(test_it_may_be_closed_at_any_time),
        HTTP_TEST(test_one_that_is_put_off_may_be_closed),
    };

    return cmocka_run_group_tests(tests, scene_make_folder, scene_remove_folder);
}
