/* Limits, incidents and samples, with a simulated clock. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/delivery/client_progress.h"
#include "gateway/metrics/monitor.h"
#include "tests/support/cmocka_all.h"

enum { WORKERS = 2 };

#define START_MS UINT64_C(1795280000000)

static struct metrics_board *board;
static struct slow_board *slow;
static struct history *history;
static struct monitor *monitor;
static uint64_t now_ms; /* both clocks; the wall clock begins at START_MS */

static const struct reading_bounds bounds = {.most = {1000000, 1000000, 1000000, 100}};

static void look(void)
{
    monitor_look(monitor, &bounds, 1000 + now_ms, START_MS + now_ms);
}

static void pass(uint64_t ms)
{
    for (uint64_t end_ms = now_ms + ms; now_ms < end_ms;) {
        now_ms += MONITOR_LOOK_MS;
        look();
    }
}

static void set_workers(uint64_t state)
{
    for (unsigned i = 0; i < WORKERS; i++) {
        metric_set(metrics_slot(board, i), METRIC_WORKER_UP, state);
        metric_set(metrics_slot(board, i), METRIC_SUBSCRIBED, state);
        metric_set(metrics_slot(board, i), METRIC_READY, state);
    }
}

static int set_up(void **state)
{
    (void)state;
    now_ms = 0;
    board = metrics_board_new(WORKERS);
    slow = slow_board_new(WORKERS);
    history = history_new();
    assert_non_null(board);
    assert_non_null(slow);
    assert_non_null(history);
    monitor = monitor_new(board, slow, history, true);
    assert_non_null(monitor);
    set_workers(1);
    metric_set(metrics_supervisor(board), METRIC_INTAKE_UP, 1);
    look();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    monitor_free(monitor);
    history_free(history);
    slow_board_free(slow);
    metrics_board_free(board);
    return 0;
}

static struct metrics *worker(unsigned i)
{
    return metrics_slot(board, i);
}

/* `text`: a part of the message; NULL: not checked. */
static void expect(enum verdict_level level, const char *text)
{
    struct history_state *state = history_read(history);

    assert_non_null(state);
    if (state->level != level || (text && !strstr(state->text, text)))
        fail_msg("%s: %s", verdict_level_name(state->level), state->text);
    mem_free(state);
}

static struct incident last_incident(uint64_t count)
{
    struct history_state *state = history_read(history);
    struct incident incident;

    assert_non_null(state);
    assert_int_equal(state->incident_count, count);
    incident = state->incidents[(count - 1) % HISTORY_INCIDENTS];
    mem_free(state);
    return incident;
}

static void test_all_is_well(void **state)
{
    (void)state;
    pass(6000);
    expect(VERDICT_OK, "All is well: 0 streams");
    metric_add(worker(0), METRIC_EVENTS_RECEIVED, 5000); /* both receive all */
    metric_add(worker(1), METRIC_EVENTS_RECEIVED, 5000);
    metric_add(worker(1), METRIC_DELIVERIES, 10000);
    pass(1000);
    expect(VERDICT_OK, "1,000 events a second in, 2,000 out");
}

static void test_a_silent_redis(void **state)
{
    struct incident incident;

    (void)state;
    pass(6000);
    metric_set(worker(0), METRIC_REDIS_UNANSWERED_API, (START_MS + now_ms) * 1000);
    pass(500);
    expect(VERDICT_WARNING, "Redis silent for 500 ms");
    pass(2000);
    expect(VERDICT_CRITICAL, "Redis silent for 2.5 s");
    metric_add(worker(0), METRIC_SUBSCRIPTIONS_LOST, 2);
    metric_observe(worker(0), METRIC_HISTOGRAM_REDIS_ROUND_TRIP, 2500000, 1);
    metric_set(worker(0), METRIC_REDIS_UNANSWERED_API, 0);
    pass(500);
    expect(VERDICT_OK, NULL); /* and its slow answer is not a further problem */
    metric_add(worker(0), METRIC_EVENTS_REPAIRED, 13400);
    metric_add(worker(1), METRIC_EVENTS_REPAIRED, 13400); /* the same */
    pass(3000);
    expect(VERDICT_OK, NULL);
    incident = last_incident(1);
    assert_int_equal(incident.level, VERDICT_CRITICAL);
    assert_string_equal(incident.name, "redis_silent");
    assert_int_equal(incident.began_ms, START_MS + 6000);
    assert_int_equal(incident.ended_ms, START_MS + 9000);
    assert_non_null(strstr(incident.text, "2.5 s"));
    assert_string_equal(incident.consequence,
                        "2 subscriptions lost, 13,400 events came from the log, nothing lost");
    pass(30000);
    last_incident(1);
}

static void test_trouble_that_comes_back_is_one_incident(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        metric_set(worker(0), METRIC_SUBSCRIBED, 0);
        pass(1000);
        expect(VERDICT_CRITICAL, "1 of 2 workers: they receive no events");
        metric_set(worker(0), METRIC_SUBSCRIBED, 1);
        pass(4000);
        expect(VERDICT_OK, NULL);
    }
    last_incident(1);
    pass(20000);
    metric_set(worker(0), METRIC_SUBSCRIBED, 0);
    pass(1000);
    assert_int_equal(last_incident(2).ended_ms, 0);
}

static void test_slow_answers(void **state)
{
    (void)state;
    pass(20000);
    metric_observe(worker(0), METRIC_HISTOGRAM_REDIS_ROUND_TRIP, 90000, 1);
    pass(1000);
    expect(VERDICT_OK, NULL); /* a single one may be chance */
    metric_observe(worker(0), METRIC_HISTOGRAM_REDIS_ROUND_TRIP, 90000, 1);
    pass(1000);
    expect(VERDICT_WARNING, "up to 100 ms");
    metric_observe(worker(0), METRIC_HISTOGRAM_REDIS_ROUND_TRIP, 900000, 2);
    pass(1000);
    expect(VERDICT_CRITICAL, "up to 1 s");
    pass((READING_LONG_S + 2) * 1000);
    expect(VERDICT_OK, NULL);
}

static void test_a_worker_that_dies(void **state)
{
    struct incident incident;

    (void)state;
    pass(1000);
    set_workers(1);
    metric_set(worker(1), METRIC_WORKER_UP, 0);
    metric_set(worker(1), METRIC_SUBSCRIBED, 0);
    metric_set(worker(1), METRIC_READY, 0);
    monitor_note_death(monitor, "worker 1", "by signal 9 (Killed)", 3, START_MS + now_ms);
    pass(500);
    expect(VERDICT_CRITICAL, "1 of 2 workers is down: Worker 1 ended by signal 9 (Killed)");
    set_workers(1);
    pass(1000);
    expect(VERDICT_WARNING, "Worker 1 ended by signal 9 (Killed); it was restarted");
    pass(30000);
    expect(VERDICT_OK, NULL);
    incident = last_incident(1);
    assert_int_equal(incident.began_ms, START_MS + 1000);
    assert_int_equal(incident.ended_ms, START_MS + 2000); /* not when it was removed */
    assert_string_equal(incident.consequence, "3 streams lost their connections");
}

static void test_a_worker_that_is_back_at_once(void **state)
{
    (void)state;
    monitor_note_death(monitor, "the intake process", "with status 1", 0, START_MS + now_ms);
    pass(500);
    expect(VERDICT_WARNING, "The intake process ended with status 1; it was restarted");
    metric_set(metrics_supervisor(board), METRIC_INTAKE_UP, 0);
    pass(500);
    expect(VERDICT_CRITICAL, "The intake process is down");
}

static void set_slow(uint64_t late, uint64_t lag_ms)
{
    struct slow_list list = {.count = 2};

    list.clients[0] = (struct slow_client){
        .is_late = late > 0, .lag_ms = lag_ms, .reads = 75000, .needs = 380000};
    slow_board_write(slow, 1, &list);
    metric_set(worker(1), METRIC_STREAMS, 9);
    metric_set(worker(1), METRIC_STREAMS_LATE, late);
    metric_set(worker(1), METRIC_SLOWEST_CLIENT, lag_ms * 1000);
}

static void test_streams_that_are_behind(void **state)
{
    struct incident incident;

    (void)state;
    set_slow(2, 25000);
    pass(500);
    expect(VERDICT_WARNING,
           "2 of 9 streams are behind, by 25 s at most: the slowest reads 75 kB/s, "
           "the stream brings 380 kB/s.");
    metric_add(worker(1), METRIC_FALLEN_BEHIND, 2);
    set_slow(1, 31000);
    pass(500);
    expect(VERDICT_CRITICAL, "1 of 9 streams is behind, by 31 s: it reads");
    set_slow(1, 6000);
    pass(500);
    expect(VERDICT_WARNING, "by 6 s");
    set_slow(0, 3600000); /* replays the past, quickly */
    pass(500);
    expect(VERDICT_OK, NULL);
    incident = last_incident(2); /* the other incident: clients began to catch up */
    assert_string_equal(incident.name, "catching_up");
}

static void test_what_is_owed_grows(void **state)
{
    (void)state;
    for (uint64_t owed = 2000; owed < 20000; owed += 2000) {
        if (now_ms < 30000)
            expect(VERDICT_OK, NULL);
        metric_set(worker(0), METRIC_OWED_EVENTS, owed);
        pass(5000);
    }
    expect(VERDICT_WARNING, "Clients are owed 18,000 events");
    pass(11000); /* it stays at this level */
    expect(VERDICT_OK, NULL);
}

static void test_cpu_and_memory(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        metric_add(worker(1), METRIC_WORKER_CPU, 930000);
        pass(1000);
    }
    expect(VERDICT_WARNING, "Worker 1 uses 93 % of a core");
    pass(20000);
    metric_set(worker(0), METRIC_EVENT_BYTES, 850000);
    pass(500);
    expect(VERDICT_WARNING, "850 kB in one worker of 1 MB (max-shared-bytes)");
    metric_set(worker(0), METRIC_HOME_BYTES, 990000);
    pass(500);
    expect(VERDICT_CRITICAL, "max-home-bytes");
    metric_set(worker(0), METRIC_HOME_BYTES, 0);
    metric_set(worker(0), METRIC_EVENT_BYTES, 0);
    pass(500);
    expect(VERDICT_OK, NULL);
    metric_set(worker(0), METRIC_STREAMS, 50);
    metric_set(worker(1), METRIC_STREAMS, 46); /* in all */
    pass(500);
    expect(VERDICT_CRITICAL, "There are 96 streams of 100 (max-connections)");
}

static void test_gaps_are_told_of_for_a_quarter_of_an_hour(void **state)
{
    (void)state;
    pass(90000);
    metric_add(worker(0), METRIC_GAPS_TOLD_REDIS, 2);
    pass(500);
    expect(VERDICT_WARNING, "2 gaps were reported to clients in the last 15 minutes");
    expect(VERDICT_WARNING, ": redis)");
    pass(14 * 60000);
    metric_add(worker(0), METRIC_GAPS_TOLD, 1);
    pass(2 * 60000);
    expect(VERDICT_WARNING, "1 gap was reported");
    pass(15 * 60000);
    expect(VERDICT_OK, NULL);
    last_incident(1);
}

static void test_refusals(void **state)
{
    (void)state;
    pass(20000);
    metric_add(worker(0), METRIC_TOKENS_BAD_SIGNATURE, 30);
    metric_add(worker(0), METRIC_TOKENS_EXPIRED, 2);
    pass(1000);
    expect(VERDICT_WARNING, "2 tokens a second are refused, most as bad_signature. Was a key");
    pass(20000);
    expect(VERDICT_OK, NULL);
    assert_string_equal(last_incident(1).consequence, "32 tokens refused");
    metric_add(worker(0), METRIC_ADMISSION_FULL, 40);
    pass(1000);
    expect(VERDICT_WARNING, "streams a second are refused");
}

static void test_parts_that_fail_and_why_in_general(void **state)
{
    (void)state;
    pass(1000);
    health_set(worker(0), HEALTH_WRITES, HEALTH_FAILING,
               "shard 0: Redis at 10.0.0.1 says: OOM command not allowed", START_MS + 700);
    health_set(worker(0), HEALTH_TASKS, HEALTH_FAILING, "a task waits", START_MS + 100);
    pass(500);
    expect(VERDICT_CRITICAL, "Redis refuses writes: its memory is full. Raise maxmemory");
    assert_int_equal(last_incident(2).began_ms, START_MS + 100);
    health_set(worker(0), HEALTH_WRITES, HEALTH_OK, NULL, START_MS + 900);
    pass(500);
    expect(VERDICT_WARNING, "A task has waited");
}

static void test_starting_is_no_trouble_for_a_while(void **state)
{
    struct history_state *first;

    tear_down(state);
    set_up(state); /* all are ready after a check: another board */
    monitor_free(monitor);
    set_workers(0);
    metric_set(worker(0), METRIC_WORKER_UP, 1);
    monitor = monitor_new(board, slow, history, true);
    look();
    expect(VERDICT_OK, "Starting: 0 of 2 workers are ready.");
    pass(6000);
    expect(VERDICT_CRITICAL, "Redis is away for 1 of 2 workers");
    first = history_read(history);
    mem_free(first);
}

static json_t *print(uint64_t since_ms, uint64_t at_ms)
{
    struct history_state *state = history_read(history);
    struct buffer text = BUFFER_INIT;
    json_t *json;

    buffer_append_char(&text, '{');
    history_print_verdict(state, at_ms, &text);
    buffer_append_char(&text, ',');
    history_print_past(state, since_ms, &text);
    buffer_append_char(&text, '}');
    json = json_loadb(text.data, text.size, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    buffer_done(&text);
    mem_free(state);
    return json;
}

static size_t size_of(const json_t *json, const char *member)
{
    return json_array_size(json_object_get(json, member));
}

static void test_the_past_is_bounded_and_given_from_a_time_on(void **state)
{
    const char *text;
    json_t *json, *incident;

    (void)state;
    pass(20 * 60000);
    for (unsigned i = 0; i < HISTORY_INCIDENTS + 7; i++)
        monitor_note(monitor, VERDICT_NOTE, "reload", "again", START_MS + now_ms + i);
    json = print(0, START_MS + now_ms);
    assert_int_equal(size_of(json, "samples"), HISTORY_SAMPLES);
    assert_int_equal(size_of(json, "incidents"), HISTORY_INCIDENTS);
    incident = json_array_get(json_object_get(json, "incidents"), HISTORY_INCIDENTS - 1);
    assert_int_equal(json_integer_value(json_object_get(incident, "number")),
                     HISTORY_INCIDENTS + 7);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(json, "verdict"), "level")), "ok");
    json_decref(json);

    json = print(START_MS + now_ms - 60000, START_MS + now_ms + HISTORY_STALE_MS + 1000);
    assert_int_equal(size_of(json, "samples"), 60000 / HISTORY_SAMPLE_MS);
    text = json_string_value(json_object_get(json_object_get(json, "verdict"), "text"));
    assert_non_null(strstr(text, "has not looked for 11 s"));
    json_decref(json);
    json = print(START_MS + now_ms + 100, START_MS + now_ms);
    assert_int_equal(size_of(json, "incidents"), 6); /* only the last ones */
    assert_int_equal(size_of(json, "samples"), 0);
    json_decref(json);
}

static void test_an_incident_that_changes_is_given_again(void **state)
{
    json_t *json;

    (void)state;
    pass(1000);
    set_slow(1, 9000);
    pass(500);
    json = print(START_MS + now_ms, START_MS + now_ms);
    assert_int_equal(size_of(json, "incidents"), 0);
    json_decref(json);
    pass(2000);
    set_slow(0, 0);
    pass(500);
    json = print(START_MS + now_ms - 500, START_MS + now_ms);
    assert_int_equal(size_of(json, "incidents"), 1);
    json_decref(json);
}

/* One pair per second: what it was sent then, and how far behind it was. */
static struct client_progress progress_of(const uint64_t (*looks)[2], unsigned count)
{
    struct client_progress progress = {0};
    uint64_t sent = 0;

    for (unsigned i = 0; i < count; i++) {
        sent += looks[i][0];
        client_progress_note(&progress, 5000 + i * 1000, sent, looks[i][1]);
    }
    return progress;
}

static void test_who_catches_up_is_not_late(void **state)
{
    static const uint64_t slow_reader[][2] = {
        {0, 4000}, {100, 4750}, {100, 5500}, {100, 6250}, {100, 7000}};
    static const uint64_t resuming[][2] = {
        {0, 3600000}, {900, 3500000}, {900, 3400000}, {900, 3300000}, {900, 3200000}};
    static const uint64_t stuck[][2] = {{0, 5000}, {0, 6000}, {0, 7000}, {0, 8000}, {0, 9000}};
    struct client_progress progress = progress_of(slow_reader, 5);

    (void)state;
    assert_int_equal(progress.late_from_ms, 7000);
    assert_in_range((uint64_t)progress.reads, 99, 101);
    assert_in_range(client_progress_needs(&progress), 396, 404);
    progress = progress_of(resuming, 5);
    assert_int_equal(progress.late_from_ms, 0);
    progress = progress_of(stuck, 5);
    assert_int_not_equal(progress.late_from_ms, 0);
    assert_int_equal(client_progress_needs(&progress), 0); /* unknown */
    client_progress_note(&progress, 60000, 7, 9000);       /* meanwhile it had caught up */
    assert_int_equal(progress.late_from_ms, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_all_is_well),
        TEST(test_a_silent_redis),
        TEST(test_trouble_that_comes_back_is_one_incident),
        TEST(test_slow_answers),
        TEST(test_a_worker_that_dies),
        TEST(test_a_worker_that_is_back_at_once),
        TEST(test_streams_that_are_behind),
        TEST(test_what_is_owed_grows),
        TEST(test_cpu_and_memory),
        TEST(test_gaps_are_told_of_for_a_quarter_of_an_hour),
        TEST(test_refusals),
        TEST(test_parts_that_fail_and_why_in_general),
        TEST(test_starting_is_no_trouble_for_a_while),
        TEST(test_the_past_is_bounded_and_given_from_a_time_on),
        TEST(test_an_incident_that_changes_is_given_again),
        cmocka_unit_test(test_who_catches_up_is_not_late),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
