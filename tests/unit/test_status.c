/* The board of slow clients, and its JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "base/alloc.h"
#include "gateway/metrics/history.h"
#include "gateway/metrics/status.h"
#include "tests/support/cmocka_all.h"

static struct slow_client slow(const char *subject, uint64_t lag_ms)
{
    struct slow_client client = {.stream = STREAM_FIREHOSE,
                                 .format = FORMAT_SSE,
                                 .lag_ms = lag_ms,
                                 .owed_events = 2,
                                 .owed_bytes = 700,
                                 .connected_ms = 9000};

    snprintf(client.subject, sizeof(client.subject), "%s", subject);
    snprintf(client.filter, sizeof(client.filter), "posts with \"tea\"");
    return client;
}

static void add(struct slow_list *list, const char *subject, uint64_t lag_ms)
{
    struct slow_client client = slow(subject, lag_ms);

    slow_list_add(list, &client);
}

static void test_the_slowest_are_kept_in_order(void **state)
{
    struct slow_list list = {0};

    (void)state;
    for (uint64_t i = 0; i < 1000; i++)
        add(&list, "x", i * 7919 % 1000);
    assert_int_equal(list.count, SLOW_BOARD_CLIENTS);
    for (unsigned i = 0; i < SLOW_BOARD_CLIENTS; i++)
        assert_int_equal(list.clients[i].lag_ms, 999 - i);
}

static void test_lists_of_all_workers_become_one(void **state)
{
    struct slow_board *board = slow_board_new(3);
    struct slow_list list = {0}, other = {0}, all;

    (void)state;
    add(&list, "a", 10);
    add(&list, "b", 30);
    add(&other, "c", 20);
    slow_board_write(board, 0, &list);
    slow_board_write(board, 2, &other);
    slow_board_read(board, &all);
    assert_int_equal(all.count, 3);
    assert_string_equal(all.clients[0].subject, "b");
    assert_int_equal(all.clients[0].worker, 0);
    assert_string_equal(all.clients[1].subject, "c");
    assert_int_equal(all.clients[1].worker, 2);
    assert_string_equal(all.clients[2].subject, "a");
    slow_board_forget_worker(board, 0);
    slow_board_read(board, &all);
    assert_int_equal(all.count, 1);
    slow_board_free(board);
}

/* A writer is killed again and again, anywhere; a reader gets a complete list or none. */
static void test_a_reader_never_sees_half_of_a_list(void **state)
{
    struct slow_board *board = slow_board_new(1);
    unsigned seen = 0;

    (void)state;
    for (unsigned life = 0; life < 20; life++) {
        int alive[2], status;
        char byte;
        pid_t pid;

        assert_int_equal(pipe(alive), 0);
        pid = fork();
        if (pid == 0) {
            for (uint64_t n = 1;; n++) {
                struct slow_list list = {0};
                char subject[24];

                snprintf(subject, sizeof(subject), "%llu", (unsigned long long)n);
                for (unsigned i = 0; i < SLOW_BOARD_CLIENTS; i++)
                    add(&list, subject, n);
                slow_board_write(board, 0, &list);
                if (n == 1 && write(alive[1], "", 1) != 1)
                    _exit(1);
            }
        }
        assert_int_equal(read(alive[0], &byte, 1), 1);
        for (unsigned i = 0; i < 200; i++) {
            struct slow_list list;

            slow_board_read(board, &list);
            assert_true(list.count == 0 || list.count == SLOW_BOARD_CLIENTS);
            for (unsigned k = 0; k < list.count; k++) {
                assert_int_equal(list.clients[k].lag_ms, list.clients[0].lag_ms);
                assert_int_equal(strtoull(list.clients[k].subject, NULL, 10),
                                 list.clients[0].lag_ms);
            }
            seen += list.count > 0;
        }
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        close(alive[0]);
        close(alive[1]);
    }
    assert_true(seen > 0);
    slow_board_forget_worker(board, 0); /* repairs the state that the crash left */
    slow_board_free(board);
}

static json_t *print(const struct metrics_board *metrics, const struct slow_board *board,
                     struct status_view view)
{
    struct history *history = history_new();
    struct buffer text = BUFFER_INIT;
    json_t *json;

    assert_non_null(history);
    status_print(metrics, board, history, view, 1234567, &text);
    history_free(history);
    json = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    buffer_done(&text);
    return json;
}

static void test_subjects_are_shown_to_those_who_may_see_them(void **state)
{
    struct metrics_board *metrics = metrics_board_new(2);
    struct slow_board *board = slow_board_new(2);
    struct slow_list list = {0};
    json_t *json, *client;

    (void)state;
    add(&list, "ada \"x\"", 50);
    slow_board_write(board, 1, &list);

    json = print(metrics, board, (struct status_view){.with_subjects = true});
    assert_string_equal(json_string_value(json_object_get(json, "version")), SLUICE_VERSION);
    assert_int_equal(json_integer_value(json_object_get(json, "now_ms")), 1234567);
    assert_int_equal(json_integer_value(json_object_get(json, "workers")), 2);
    assert_true(json_is_object(json_object_get(json, "metrics")));
    client = json_array_get(json_object_get(json, "slowest"), 0);
    assert_string_equal(json_string_value(json_object_get(client, "subject")), "ada \"x\"");
    assert_string_equal(json_string_value(json_object_get(client, "filter")), "posts with \"tea\"");
    assert_string_equal(json_string_value(json_object_get(client, "stream")), "firehose");
    assert_string_equal(json_string_value(json_object_get(client, "transport")), "sse");
    assert_int_equal(json_integer_value(json_object_get(client, "worker")), 1);
    assert_int_equal(json_integer_value(json_object_get(client, "lag_ms")), 50);
    assert_int_equal(json_integer_value(json_object_get(client, "owed_bytes")), 700);
    json_decref(json);

    json = print(metrics, board, (struct status_view){.with_reasons = true});
    assert_true(json_is_false(json_object_get(json, "subjects")));
    client = json_array_get(json_object_get(json, "slowest"), 0);
    assert_true(json_is_null(json_object_get(client, "subject")));
    assert_true(json_is_null(json_object_get(client, "filter")));
    assert_int_equal(json_integer_value(json_object_get(client, "lag_ms")), 50);
    json_decref(json);
    slow_board_free(board);
    metrics_board_free(metrics);
}

static void expect_part(const struct metrics_board *metrics, struct status_view view,
                        const char *part, const char *state, uint64_t since_ms, const char *why)
{
    struct slow_board *board = slow_board_new(1);
    json_t *json = print(metrics, board, view);
    json_t *found = json_object_get(json_object_get(json, "health"), part);
    json_t *since = json_object_get(found, "since_ms"), *reason = json_object_get(found, "why");

    assert_string_equal(json_string_value(json_object_get(found, "state")), state);
    assert_int_equal(json_integer_value(since), since_ms);
    assert_int_equal(json_is_null(since), since_ms == 0);
    if (why)
        assert_string_equal(json_string_value(reason), why);
    else
        assert_true(json_is_null(reason));
    json_decref(json);
    slow_board_free(board);
}

static void expect_health(const struct metrics_board *metrics, const char *part, const char *state,
                          uint64_t since_ms, const char *why)
{
    expect_part(metrics, (struct status_view){.with_reasons = true}, part, state, since_ms, why);
}

static void test_reasons_are_shown_to_those_who_may_see_them(void **state)
{
    const struct status_view stranger = {.with_subjects = true};
    struct metrics_board *board = metrics_board_new(1);

    (void)state;
    health_set(metrics_slot(board, 0), HEALTH_READS, HEALTH_OK, NULL, 1000);
    health_set(metrics_slot(board, 0), HEALTH_WRITES, HEALTH_FAILING, "no room at 10.0.0.7", 2000);
    expect_health(board, "writes", "failing", 2000, "no room at 10.0.0.7");
    expect_part(board, stranger, "writes", "failing", 2000,
                "withheld: in the log, at ops-listen, or with a token with scope admin");
    expect_part(board, stranger, "reads", "ok", 1000, NULL);
    metrics_board_free(board);
}

static void test_a_part_fails_when_it_does_for_any_worker(void **state)
{
    struct metrics_board *board = metrics_board_new(3);
    struct metrics *first = metrics_slot(board, 0), *second = metrics_slot(board, 1);
    char long_why[2 * HEALTH_WHY_SIZE];

    (void)state;
    expect_health(board, "writes", "unknown", 0, NULL);
    assert_true(health_set(first, HEALTH_WRITES, HEALTH_OK, NULL, 1000));
    assert_true(health_set(second, HEALTH_WRITES, HEALTH_OK, NULL, 2000));
    assert_false(health_set(first, HEALTH_WRITES, HEALTH_OK, NULL, 3000));
    expect_health(board, "writes", "ok", 2000, NULL);
    assert_true(health_set(first, HEALTH_WRITES, HEALTH_FAILING, "the \"disk\"", 5000));
    assert_true(health_set(second, HEALTH_WRITES, HEALTH_FAILING, "later", 6000));
    assert_false(health_set(second, HEALTH_WRITES, HEALTH_FAILING, "later", 7000));
    expect_health(board, "writes", "failing", 5000, "the \"disk\"");
    assert_int_equal(metrics_sum(board, METRIC_FAILING_WRITES), 2);
    assert_false(health_set(first, HEALTH_WRITES, HEALTH_FAILING, "the memory", 8000));
    expect_health(board, "writes", "failing", 5000, "the memory"); /* since the first failure */
    metrics_slot_reset_gauges(first);
    health_forget(first);
    expect_health(board, "writes", "failing", 6000, "later");
    assert_int_equal(metrics_sum(board, METRIC_FAILING_WRITES), 1);
    assert_true(health_set(second, HEALTH_WRITES, HEALTH_OK, NULL, 9000));
    expect_health(board, "writes", "ok", 9000, NULL);
    assert_int_equal(metrics_sum(board, METRIC_FAILING_WRITES), 0);
    assert_true(health_set(first, HEALTH_ARCHIVE, HEALTH_OFF, NULL, 10000));
    expect_health(board, "archive", "off", 10000, NULL);
    memset(long_why, 'x', sizeof(long_why) - 1);
    long_why[sizeof(long_why) - 1] = '\0';
    health_set(first, HEALTH_TASKS, HEALTH_FAILING, long_why, 11000);
    long_why[HEALTH_WHY_SIZE - 1] = '\0';
    expect_health(board, "tasks", "failing", 11000, long_why);
    metrics_board_free(board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_part_fails_when_it_does_for_any_worker),
        cmocka_unit_test(test_the_slowest_are_kept_in_order),
        cmocka_unit_test(test_lists_of_all_workers_become_one),
        cmocka_unit_test(test_a_reader_never_sees_half_of_a_list),
        cmocka_unit_test(test_subjects_are_shown_to_those_who_may_see_them),
        cmocka_unit_test(test_reasons_are_shown_to_those_who_may_see_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
