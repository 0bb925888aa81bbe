#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

#include "gateway/front/disconnect.h"
#include "gateway/front/stream_request.h"
#include "gateway/front/token.h"
#include "gateway/metrics/metrics.h"
#include "tests/support/cmocka_all.h"

/* Whether the board prints a line equal to `line`. */
static bool prints(const struct metrics_board *board, const char *line)
{
    struct buffer text = BUFFER_INIT;
    char *with_ends = NULL;
    bool found;

    buffer_append_char(&text, '\n');
    metrics_print(board, &text);
    assert_true(asprintf(&with_ends, "\n%s\n", line) > 0);
    found = strstr(buffer_str(&text), with_ends) != NULL;
    free(with_ends);
    buffer_done(&text);
    return found;
}

static void test_numbers_of_all_workers_add_up(void **state)
{
    struct metrics_board *board = metrics_board_new(2);

    (void)state;
    assert_int_equal(metrics_workers(board), 2);
    metric_add(metrics_slot(board, 0), METRIC_EVENTS_RECEIVED, 3);
    metric_add(metrics_slot(board, 1), METRIC_EVENTS_RECEIVED, 4);
    metric_add(metrics_slot(board, 1), METRIC_CONNECTIONS, 9);
    metric_sub(metrics_slot(board, 1), METRIC_CONNECTIONS, 2);
    assert_int_equal(metrics_sum(board, METRIC_EVENTS_RECEIVED), 7);
    assert_true(prints(board, "sluice_events_received_total 7"));
    assert_true(prints(board, "sluice_connections 7"));
    metrics_board_free(board);
}

static void test_what_a_child_counts_is_seen_by_its_parent(void **state)
{
    struct metrics_board *board = metrics_board_new(1);
    int status;
    pid_t pid = fork();

    (void)state;
    if (pid == 0) {
        metric_add(metrics_slot(board, 0), METRIC_SENDS, 5);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(metric_get(metrics_slot(board, 0), METRIC_SENDS), 5);
    metrics_board_free(board);
}

static void test_slot_of_a_dead_worker_keeps_totals_and_loses_gauges(void **state)
{
    struct metrics_board *board = metrics_board_new(2);
    struct metrics *dead = metrics_slot(board, 0);

    (void)state;
    metric_add(dead, METRIC_EVENTS_RECEIVED, 3);
    metric_add(dead, METRIC_CONNECTIONS, 10);
    metric_observe(dead, METRIC_HISTOGRAM_MATCH_TIME, 1, 1);
    metric_set(dead, METRIC_WORKER_UP, 1);
    metric_add(metrics_slot(board, 1), METRIC_CONNECTIONS, 1);
    metrics_slot_reset_gauges(dead);
    assert_true(prints(board, "sluice_events_received_total 3"));
    assert_true(prints(board, "sluice_connections 1"));
    assert_true(prints(board, "sluice_worker_up{worker=\"0\"} 0"));
    assert_true(prints(board, "sluice_match_seconds_count 1"));
    metrics_board_free(board);
}

static void test_some_numbers_are_shown_for_each_worker(void **state)
{
    struct metrics_board *board = metrics_board_new(2);

    (void)state;
    metric_set(metrics_slot(board, 1), METRIC_WORKER_RESIDENT, 4096);
    metric_set(metrics_slot(board, 0), METRIC_WORKER_CPU, 2500000);
    assert_true(prints(board, "sluice_worker_resident_bytes{worker=\"0\"} 0"));
    assert_true(prints(board, "sluice_worker_resident_bytes{worker=\"1\"} 4096"));
    assert_true(prints(board, "sluice_worker_cpu_seconds_total{worker=\"0\"} 2.500000"));
    metrics_board_free(board);
}

static void test_supervisor_counts_in_a_slot_of_its_own(void **state)
{
    struct metrics_board *board = metrics_board_new(1);

    (void)state;
    metric_add(metrics_supervisor(board), METRIC_PRIVATE_REDIS_RESTARTS, 2);
    assert_true(prints(board, "sluice_private_redis_restarts_total 2"));
    assert_ptr_not_equal(metrics_supervisor(board), metrics_slot(board, 0));
    metrics_board_free(board);
}

static void test_histogram_counts_each_time_into_its_bucket(void **state)
{
    struct metrics_board *board = metrics_board_new(2);

    (void)state;
    metric_observe(metrics_slot(board, 0), METRIC_HISTOGRAM_DELIVERY_TIME, 0, 1);
    metric_observe(metrics_slot(board, 0), METRIC_HISTOGRAM_DELIVERY_TIME, 1, 1);
    metric_observe(metrics_slot(board, 1), METRIC_HISTOGRAM_DELIVERY_TIME, 2, 10);
    metric_observe(metrics_slot(board, 0), METRIC_HISTOGRAM_DELIVERY_TIME, 3, 1);
    metric_observe(metrics_slot(board, 0), METRIC_HISTOGRAM_DELIVERY_TIME, 10000000, 1);
    metric_observe(metrics_slot(board, 0), METRIC_HISTOGRAM_DELIVERY_TIME, 10000001, 1);
    assert_true(prints(board, "sluice_delivery_seconds_bucket{le=\"0.000001\"} 2"));
    assert_true(prints(board, "sluice_delivery_seconds_bucket{le=\"0.000002\"} 12"));
    assert_true(prints(board, "sluice_delivery_seconds_bucket{le=\"0.000005\"} 13"));
    assert_true(prints(board, "sluice_delivery_seconds_bucket{le=\"5.000000\"} 13"));
    assert_true(prints(board, "sluice_delivery_seconds_bucket{le=\"10.000000\"} 14"));
    assert_true(prints(board, "sluice_delivery_seconds_bucket{le=\"+Inf\"} 15"));
    assert_true(prints(board, "sluice_delivery_seconds_sum 20.000025"));
    assert_true(prints(board, "sluice_delivery_seconds_count 15"));
    metrics_board_free(board);
}

static void test_every_family_is_described_once_before_its_numbers(void **state)
{
    struct metrics_board *board = metrics_board_new(2);
    struct buffer text = BUFFER_INIT;
    char family[80] = "", line_family[80], described[80];
    char *rest = NULL, *copy;
    unsigned samples = 0;

    (void)state;
    metrics_print(board, &text);
    copy = strdup(buffer_str(&text));
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            char again[96];

            assert_int_equal(sscanf(line, "# HELP %79s %79s", family, described), 2);
            snprintf(again, sizeof(again), "# HELP %s ", family);
            assert_null(rest ? strstr(rest, again) : NULL);
        } else if (strncmp(line, "# TYPE ", 7) == 0) {
            assert_int_equal(sscanf(line, "# TYPE %79s %79s", line_family, described), 2);
            assert_string_equal(line_family, family);
        } else {
            assert_int_equal(sscanf(line, "%79[a-z_]", line_family), 1);
            assert_memory_equal(line_family, family, strlen(family));
            samples++;
        }
    }
    assert_true(samples > METRIC_COUNT);
    free(copy);
    buffer_done(&text);
    metrics_board_free(board);
}

static void test_manual_has_each_family_once(void **state)
{
    struct buffer text = BUFFER_INIT;
    const char *family;

    (void)state;
    metrics_print_manual(&text);
    assert_non_null(strstr(buffer_str(&text), ".It Cm sluice_worker_up Pq gauge\n"));
    assert_non_null(strstr(buffer_str(&text), ".It Cm sluice_match_seconds Pq histogram\n"));
    family = strstr(buffer_str(&text), ".It Cm sluice_disconnects_total Pq counter\n");
    assert_non_null(family);
    assert_null(strstr(family + 1, ".It Cm sluice_disconnects_total"));
    buffer_done(&text);
}

static void test_families_by_enum_stand_in_its_order(void **state)
{
    struct metrics_board *board = metrics_board_new(1);
    struct metrics *metrics = metrics_slot(board, 0);

    (void)state;
    metric_add(metrics, metric_at(METRIC_TOKENS_REFUSED, TOKEN_EXPIRED - TOKEN_MALFORMED), 1);
    assert_true(prints(board, "sluice_tokens_refused_total{fault=\"expired\"} 1"));
    assert_int_equal(METRIC_TOKENS_REVOKED - METRIC_TOKENS_REFUSED,
                     TOKEN_REVOKED - TOKEN_MALFORMED);
    assert_int_equal(TOKEN_REVOKED, TOKEN_FAULT_COUNT - 1);
    metric_add(metrics, metric_at(METRIC_DISCONNECTS, DISCONNECT_TOO_SLOW), 1);
    assert_true(prints(board, "sluice_disconnects_total{code=\"too_slow\"} 1"));
    assert_int_equal(METRIC_DISCONNECTS_QUOTA - METRIC_DISCONNECTS, DISCONNECT_QUOTA);
    assert_int_equal(DISCONNECT_QUOTA, DISCONNECT_REASON_COUNT - 1);
    metrics_board_free(board);
}

static void test_streams_by_kind_stand_in_the_order_of_the_enums(void **state)
{
    struct metrics_board *board = metrics_board_new(1);
    struct metrics *metrics = metrics_slot(board, 0);

    (void)state;
    metric_add(metrics, metric_at(METRIC_STREAMS_BY, STREAM_HOME * FORMAT_COUNT + FORMAT_SSE), 1);
    metric_add(metrics, metric_at(METRIC_STREAMS_BY, STREAM_MANY * FORMAT_COUNT), 2);
    assert_true(prints(board, "sluice_streams_by_kind{stream=\"home\",transport=\"sse\"} 1"));
    assert_true(prints(board, "sluice_streams_by_kind{stream=\"many\",transport=\"websocket\"} 2"));
    for (unsigned stream = STREAM_FILTER; stream < STREAM_MANY; stream++) {
        for (unsigned format = 0; format < FORMAT_COUNT; format++) {
            char line[128];

            metric_set(metrics, metric_at(METRIC_STREAMS_BY, stream * FORMAT_COUNT + format), 77);
            snprintf(line, sizeof(line),
                     "sluice_streams_by_kind{stream=\"%s\",transport=\"%s\"} 77",
                     stream_kind_name(stream), stream_format_name(format));
            assert_true(prints(board, line));
        }
    }
    metrics_board_free(board);
}

static json_t *as_json(const struct metrics_board *board)
{
    struct buffer text = BUFFER_INIT;
    json_error_t error;
    json_t *json;

    buffer_append_char(&text, '{');
    metrics_print_json(board, &text);
    buffer_append_char(&text, '}');
    json = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, &error);
    if (!json)
        fail_msg("%s near %s", error.text, buffer_str(&text) + error.position - 20);
    buffer_done(&text);
    return json;
}

static void test_json_has_the_same_numbers(void **state)
{
    struct metrics_board *board = metrics_board_new(2);
    json_t *json, *numbers, *one, *bounds;

    (void)state;
    metric_set(metrics_slot(board, 0), METRIC_EVENTS_RECEIVED, 5);
    metric_set(metrics_slot(board, 1), METRIC_EVENTS_RECEIVED, 6);
    metric_set(metrics_slot(board, 1), METRIC_WORKER_CPU, 1500000);
    metric_set(metrics_slot(board, 0), metric_at(METRIC_DISCONNECTS, DISCONNECT_TOO_SLOW), 3);
    metric_set(metrics_slot(board, 1), metric_at(METRIC_STREAMS_BY, FORMAT_SSE), 4);
    metric_observe(metrics_slot(board, 1), METRIC_HISTOGRAM_MATCH_TIME, 3, 2);
    metric_observe(metrics_slot(board, 0), METRIC_HISTOGRAM_MATCH_TIME, 20000000, 1);
    json = as_json(board);
    numbers = json_object_get(json, "metrics");
    assert_int_equal(json_integer_value(json_object_get(numbers, "sluice_events_received_total")),
                     11);
    one = json_object_get(numbers, "sluice_worker_cpu_seconds_total");
    assert_int_equal(json_array_size(one), 2);
    assert_true(json_real_value(json_array_get(one, 1)) == 1.5);
    one = json_object_get(numbers, "sluice_disconnects_total");
    assert_int_equal(json_object_size(one), DISCONNECT_REASON_COUNT);
    assert_int_equal(json_integer_value(json_object_get(one, "too_slow")), 3);
    one = json_object_get(numbers, "sluice_streams_by_kind");
    assert_int_equal(json_integer_value(json_object_get(one, "filter/sse")), 4);

    bounds = json_object_get(json, "bounds");
    assert_int_equal(json_array_size(bounds), METRIC_BUCKET_COUNT - 1);
    one = json_object_get(json_object_get(json, "histograms"), "sluice_match_seconds");
    assert_true(json_real_value(json_object_get(one, "sum")) == 20.000006);
    one = json_object_get(one, "buckets");
    assert_int_equal(json_array_size(one), METRIC_BUCKET_COUNT);
    assert_int_equal(json_integer_value(json_array_get(one, 2)), 2); /* up to 5 us */
    assert_true(json_real_value(json_array_get(bounds, 2)) == 0.000005);
    assert_int_equal(json_integer_value(json_array_get(one, METRIC_BUCKET_COUNT - 1)), 1);
    json_decref(json);
    metrics_board_free(board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_of_all_workers_add_up),
        cmocka_unit_test(test_what_a_child_counts_is_seen_by_its_parent),
        cmocka_unit_test(test_slot_of_a_dead_worker_keeps_totals_and_loses_gauges),
        cmocka_unit_test(test_some_numbers_are_shown_for_each_worker),
        cmocka_unit_test(test_supervisor_counts_in_a_slot_of_its_own),
        cmocka_unit_test(test_histogram_counts_each_time_into_its_bucket),
        cmocka_unit_test(test_every_family_is_described_once_before_its_numbers),
        cmocka_unit_test(test_manual_has_each_family_once),
        cmocka_unit_test(test_families_by_enum_stand_in_its_order),
        cmocka_unit_test(test_streams_by_kind_stand_in_the_order_of_the_enums),
        cmocka_unit_test(test_json_has_the_same_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
