#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/http/http_waiting.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/test_loop.h"

enum { LONG_MS = 3600000, MOST = 2, WAITERS = 5 };

static struct test_loop test_loop;
static struct metrics_board *board;
static struct metrics *metrics;
static struct http_waiting waiting;
static struct http_waiter waiters[WAITERS];

/* What has happened: a letter for what expired, and the number of the waiter. */
static char story[64];

static size_t index_of(const struct http_waiter *waiter)
{
    return (size_t)(waiter - waiters);
}

static void note(char letter, const struct http_waiter *waiter)
{
    size_t size = strlen(story);

    assert_int_equal(waiter->wait, HTTP_WAIT_NONE);
    assert_true(size + 3 < sizeof(story));
    story[size] = letter;
    story[size + 1] = (char)('0' + index_of(waiter));
    story[size + 2] = '\0';
}

static void on_overdue(struct http_waiter *waiter, enum http_wait wait)
{
    static const char letters[] = {'?', 'P', 'I', 'S', 'L'};

    note(letters[wait], waiter);
}

static void on_dropped(struct http_waiter *waiter)
{
    note('-', waiter);
}

static struct http_waiting_settings settings_with(uint32_t ms)
{
    return (struct http_waiting_settings){
        .loop = &test_loop.uv,
        .metrics = metrics,
        .waits = {[HTTP_WAIT_PENDING] = {ms, MOST},
                  [HTTP_WAIT_IDLE] = {2 * ms, MOST},
                  [HTTP_WAIT_SENDING] = {ms, SIZE_MAX},
                  [HTTP_WAIT_LINGERING] = {ms, 0}},
        .overdue = on_overdue,
        .dropped = on_dropped,
    };
}

static void begin(uint32_t ms)
{
    struct http_waiting_settings settings;

    test_loop_init(&test_loop, NULL);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    settings = settings_with(ms);
    story[0] = '\0';
    memset(waiters, 0, sizeof(waiters));
    assert_int_equal(http_waiting_init(&waiting, &settings), 0);
}

static void end(void)
{
    for (size_t i = 0; i < WAITERS; i++)
        http_wait(&waiting, &waiters[i], HTTP_WAIT_NONE);
    http_waiting_done(&waiting);
    http_waiting_done(&waiting); /* calling it twice is harmless */
    test_loop_done(&test_loop);
    metrics_board_free(board);
}

static void wait_all(enum http_wait wait, size_t count)
{
    for (size_t i = 0; i < count; i++)
        http_wait(&waiting, &waiters[i], wait);
}

static void test_the_one_that_has_waited_longest_goes(void **state)
{
    (void)state;
    begin(LONG_MS);
    wait_all(HTTP_WAIT_PENDING, 4);
    assert_string_equal(story, "-0-1");
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_DROPPED), 2);
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_PENDING), MOST);
    wait_all(HTTP_WAIT_IDLE, 4);
    assert_string_equal(story, "-0-1-0-1");
    assert_int_equal(metric_get(metrics, METRIC_IDLE_DROPPED), 2);
    assert_int_equal(metric_get(metrics, METRIC_CONNECTIONS_IDLE), MOST);
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_PENDING), 0);
    end();
}

static void test_with_a_limit_of_zero_the_new_one_is_closed(void **state)
{
    (void)state;
    begin(LONG_MS);
    http_wait(&waiting, &waiters[3], HTTP_WAIT_LINGERING);
    assert_string_equal(story, "-3");
    assert_int_equal(metric_get(metrics, METRIC_LINGERING_DROPPED), 1);
    assert_int_equal(metric_get(metrics, METRIC_CONNECTIONS_LINGERING), 0);
    end();
}

static void test_without_a_limit_none_is_closed(void **state)
{
    (void)state;
    begin(LONG_MS);
    wait_all(HTTP_WAIT_SENDING, WAITERS);
    assert_string_equal(story, "");
    end();
}

static void test_waiting_for_the_same_changes_nothing(void **state)
{
    uint64_t due_ms;

    (void)state;
    begin(LONG_MS);
    wait_all(HTTP_WAIT_PENDING, 2);
    due_ms = waiters[0].deadline.due_ms;
    waiting.lists[HTTP_WAIT_PENDING].wait_ms = 2 * LONG_MS;
    http_wait(&waiting, &waiters[0], HTTP_WAIT_PENDING);
    assert_int_equal(waiters[0].deadline.due_ms, due_ms);
    http_wait(&waiting, &waiters[2], HTTP_WAIT_PENDING);
    assert_string_equal(story, "-0"); /* it is still the oldest */
    end();
}

static void test_each_has_its_time(void **state)
{
    (void)state;
    begin(10);
    http_wait(&waiting, &waiters[0], HTTP_WAIT_IDLE);
    http_wait(&waiting, &waiters[1], HTTP_WAIT_PENDING);
    http_wait(&waiting, &waiters[2], HTTP_WAIT_SENDING);
    RUN_UNTIL(&test_loop, strlen(story) == 6);
    assert_non_null(strstr(story, "P1"));
    assert_non_null(strstr(story, "S2"));
    assert_non_null(strstr(story, "I0"));
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_PENDING), 0);
    assert_int_equal(metric_get(metrics, METRIC_CONNECTIONS_IDLE), 0);
    assert_int_equal(metric_get(metrics, METRIC_HANDSHAKES_DROPPED), 0);
    end();
}

static void test_who_waits_for_nothing_is_not_told(void **state)
{
    (void)state;
    begin(10);
    wait_all(HTTP_WAIT_SENDING, 2);
    http_wait(&waiting, &waiters[0], HTTP_WAIT_NONE);
    RUN_UNTIL(&test_loop, story[0] != '\0');
    assert_string_equal(story, "S1");
    end();
}

/* The timer fires for one that has left, and must be set again for the other. */
static void test_one_timer_serves_all(void **state)
{
    (void)state;
    begin(10);
    http_wait(&waiting, &waiters[0], HTTP_WAIT_PENDING);
    http_wait(&waiting, &waiters[1], HTTP_WAIT_IDLE);
    http_wait(&waiting, &waiters[0], HTTP_WAIT_NONE);
    assert_int_equal(test_loop.uv.active_handles, 1);
    RUN_UNTIL(&test_loop, story[0] != '\0');
    assert_string_equal(story, "I1");
    assert_false(uv_is_active((uv_handle_t *)waiting.timer));
    http_wait(&waiting, &waiters[1], HTTP_WAIT_IDLE);
    http_wait(&waiting, &waiters[0],
              HTTP_WAIT_PENDING); /* due before the time for which the timer is set */
    RUN_UNTIL(&test_loop, strlen(story) == 6);
    assert_string_equal(story, "I1P0I1");
    end();
}

/* The callback of an owner may start waiting again, or end the wait of another one. */
static void on_overdue_again(struct http_waiter *waiter, enum http_wait wait)
{
    on_overdue(waiter, wait);
    if (strlen(story) < 8)
        http_wait(&waiting, waiter, wait);
    http_wait(&waiting, &waiters[1], HTTP_WAIT_NONE);
}

static void test_who_is_told_may_wait_again(void **state)
{
    (void)state;
    begin(5);
    waiting.settings.overdue = on_overdue_again;
    wait_all(HTTP_WAIT_SENDING, 2);
    RUN_UNTIL(&test_loop, strlen(story) == 8);
    assert_string_equal(story, "S0S0S0S0");
    end();
}

static void test_out_of_memory_it_does_not_begin(void **state)
{
    struct http_waiting_settings settings;
    struct http_waiting other = {.timer = NULL};

    (void)state;
    begin(LONG_MS);
    settings = settings_with(LONG_MS);
    mem_fail_after(0);
    assert_int_equal(http_waiting_init(&other, &settings), -ENOMEM);
    mem_fail_never();
    http_waiting_done(&other);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_one_that_has_waited_longest_goes),
        cmocka_unit_test(test_with_a_limit_of_zero_the_new_one_is_closed),
        cmocka_unit_test(test_without_a_limit_none_is_closed),
        cmocka_unit_test(test_waiting_for_the_same_changes_nothing),
        cmocka_unit_test(test_each_has_its_time),
        cmocka_unit_test(test_who_waits_for_nothing_is_not_told),
        cmocka_unit_test(test_one_timer_serves_all),
        cmocka_unit_test(test_who_is_told_may_wait_again),
        cmocka_unit_test(test_out_of_memory_it_does_not_begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
