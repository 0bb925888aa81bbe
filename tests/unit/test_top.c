#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/figure.h"
#include "cli/snapshots.h"
#include "cli/top_view.h"
#include "tests/support/cmocka_all.h"

static void assert_figure(struct figure figure, const char *expected)
{
    assert_string_equal(figure.text, expected);
}

static void test_figures_have_the_digits_that_they_are_worth(void **state)
{
    (void)state;
    assert_figure(figure_count(0), "0");
    assert_figure(figure_count(0.254), "0.25");
    assert_figure(figure_count(3.5), "3.5");
    assert_figure(figure_count(42.4), "42");
    assert_figure(figure_count(999.4), "999");
    assert_figure(figure_count(999.6), "1,000");
    assert_figure(figure_count(12058), "12,058");
    assert_figure(figure_count(999999.6), "1.00M");
    assert_figure(figure_count(4210000), "4.21M");
    assert_figure(figure_count(9e15), "9000.00T");
    assert_figure(figure_count(NAN), "-");
    assert_figure(figure_bytes(512), "512 B");
    assert_figure(figure_bytes(512.7), "513 B");
    assert_figure(figure_bytes(4200), "4.2 kB");
    assert_figure(figure_bytes(84e6), "84 MB");
    assert_figure(figure_bytes(NAN), "-");
    assert_figure(figure_percent(0.414), "41 %");
    assert_figure(figure_percent(NAN), "-");
}

static void test_times_from_microseconds_to_days(void **state)
{
    (void)state;
    assert_figure(figure_seconds(0), "0 s");
    assert_figure(figure_seconds(0.000012), "12 us");
    assert_figure(figure_seconds(0.00021), "0.21 ms");
    assert_figure(figure_seconds(0.25), "250 ms");
    assert_figure(figure_seconds(4.5), "4.5 s");
    assert_figure(figure_seconds(59.4), "59 s");
    assert_figure(figure_seconds(59.6), "1 min");
    assert_figure(figure_seconds(720), "12 min");
    assert_figure(figure_seconds(3.4 * 3600), "3.4 h");
    assert_figure(figure_seconds(9 * 86400), "9 days");
    assert_figure(figure_seconds(NAN), "-");
}

static int add(struct snapshots *snapshots, const char *text)
{
    return snapshots_add(snapshots, sl_slice_str(text), NULL);
}

/* Adds a snapshot at `now_ms` of a server started at `start`, whose two workers have received
 * `received` messages. */
static void add_snapshot(struct snapshots *snapshots, int now_ms, int start, int received,
                         int matches)
{
    char text[512];

    snprintf(text, sizeof(text),
             "{\"now_ms\":%d,\"workers\":2,\"version\":\"1\",\"subjects\":false,\"slowest\":[],"
             "\"metrics\":{\"sluice_start_time_seconds\":%d,\"sluice_events_received_total\":%d,"
             "\"sluice_matches_total\":%d,\"sluice_worker_subscribed\":[1,1],"
             "\"sluice_worker_ready\":[1,1],\"sluice_worker_up\":[1,1],\"sluice_worker_cpu_seconds_"
             "total\":[%d,2]}}",
             now_ms, start, received, matches, now_ms / 1000);
    assert_int_equal(add(snapshots, text), 0);
}

static void test_sum_of_a_family_is_over_workers_and_labels(void **state)
{
    struct snapshots snapshots = {.count = 0};
    const json_t *snapshot;

    (void)state;
    assert_int_equal(add(&snapshots, "{\"now_ms\":1,\"metrics\":{\"a\":3,\"b\":[1,2],"
                                     "\"c\":{\"x/y\":4,\"z\":5},\"d\":\"?\"}}"),
                     0);
    snapshot = snapshots_latest(&snapshots);
    assert_true(snapshot_sum(snapshot, "a") == 3 && snapshot_sum(snapshot, "b") == 3 &&
                snapshot_sum(snapshot, "c") == 9);
    assert_true(snapshot_part(snapshot, "c", "x/y") == 4 && snapshot_worker(snapshot, "b", 1) == 2);
    assert_true(isnan(snapshot_sum(snapshot, "d")) && isnan(snapshot_sum(snapshot, "e")));
    assert_true(isnan(snapshot_part(snapshot, "c", "y")) &&
                isnan(snapshot_worker(snapshot, "b", 2)));
    snapshots_done(&snapshots);
}

static void test_what_is_no_status_is_refused_and_changes_nothing(void **state)
{
    static const char *const texts[] = {"",
                                        "hello",
                                        "[]",
                                        "{}",
                                        "{\"now_ms\":1}",
                                        "{\"now_ms\":\"1\",\"metrics\":{}}",
                                        "{\"now_ms\":1,\"metrics\":[]}"};
    struct snapshots snapshots = {.count = 0};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(add(&snapshots, texts[i]), -EBADMSG);
    assert_int_equal(snapshots.count, 0);
}

static void test_rates_need_two_looks_and_are_about_the_seconds_asked_for(void **state)
{
    struct snapshots snapshots = {.count = 0};

    (void)state;
    add_snapshot(&snapshots, 10000, 1, 100, 0);
    assert_true(isnan(snapshots_rate(&snapshots, "sluice_events_received_total", 2)));
    add_snapshot(&snapshots, 12000, 1, 120, 0);
    add_snapshot(&snapshots, 14000, 1, 160, 80);
    assert_true(snapshots_rate(&snapshots, "sluice_events_received_total", 2) == 20);
    assert_true(snapshots_rate(&snapshots, "sluice_events_received_total", 60) == 15);
    assert_true(snapshots_ratio(&snapshots, "sluice_matches_total", "sluice_events_received_total",
                                2) == 2);
    assert_true(snapshots_worker_rate(&snapshots, "sluice_worker_cpu_seconds_total", 0, 2) == 1);
    assert_true(snapshots_worker_rate(&snapshots, "sluice_worker_cpu_seconds_total", 1, 2) == 0);
    assert_true(isnan(snapshots_rate(&snapshots, "no such family", 2)));
    assert_true(isnan(snapshots_ratio(&snapshots, "sluice_matches_total", "no such family", 2)));
    snapshots_done(&snapshots);
}

static void test_server_that_was_started_anew_counts_from_its_first_snapshot(void **state)
{
    struct snapshots snapshots = {.count = 0};

    (void)state;
    add_snapshot(&snapshots, 10000, 1, 100, 0);
    add_snapshot(&snapshots, 12000, 2, 150, 0);
    assert_int_equal(snapshots.count, 1);
    add_snapshot(&snapshots, 11000, 2, 150, 0); /* its clock was set back */
    assert_int_equal(snapshots.count, 1);
    snapshots_done(&snapshots);
}

static void test_oldest_look_is_forgotten(void **state)
{
    struct snapshots snapshots = {.count = 0};

    (void)state;
    for (int i = 0; i < SNAPSHOTS_MAX + 3; i++)
        add_snapshot(&snapshots, 1000 * i, 1, i * i, 0);
    assert_int_equal(snapshots.count, SNAPSHOTS_MAX);
    assert_true(snapshot_number(snapshots.all[0], "now_ms") == 3000);
    snapshots_done(&snapshots);
}

static void test_quantile_is_of_what_has_been_counted_between(void **state)
{
    static const char text[] = "{\"now_ms\":%d,\"metrics\":{},\"bounds\":[0.1,1,10],"
                               "\"histograms\":{\"h\":{\"buckets\":[%d,%d,%d,%d]}}}";
    struct snapshots snapshots = {.count = 0};
    char first[200], second[200], third[200];

    (void)state;
    snprintf(first, sizeof(first), text, 1000, 100, 0, 0, 0);
    snprintf(second, sizeof(second), text, 2000, 101, 98, 1, 0);
    snprintf(third, sizeof(third), text, 3000, 101, 98, 1, 7);
    assert_int_equal(add(&snapshots, first), 0);
    assert_true(snapshots_quantile(&snapshots, "h", 0.5, 1) ==
                0.1); /* everything that it has counted */
    assert_int_equal(add(&snapshots, second), 0);
    assert_true(snapshots_quantile(&snapshots, "h", 0.01, 1) == 0.1);
    assert_true(snapshots_quantile(&snapshots, "h", 0.5, 1) == 1);
    assert_true(snapshots_quantile(&snapshots, "h", 1, 1) == 10);
    assert_int_equal(add(&snapshots, third), 0);
    assert_true(snapshots_quantile(&snapshots, "h", 0.5, 1) == 10); /* beyond the last bucket */
    assert_true(isnan(snapshots_quantile(&snapshots, "none", 0.5, 1)));
    snapshots_done(&snapshots);
}

static const char *page(const struct snapshots *snapshots, struct buffer *text)
{
    static const struct top_form plain = {0};

    buffer_clear(text);
    top_view_print(snapshots, "http://x", &plain, text);
    assert_non_null(buffer_str(text));
    return text->data;
}

static void test_page_has_a_row_for_each_kind_of_stream(void **state)
{
    static const char text[] = "{\"now_ms\":1000,\"metrics\":{\"sluice_streams_by_kind\":{"
                               "\"counts/sse\":2,\"trends/ndjson\":1,\"many/websocket\":4}}}";
    struct snapshots snapshots = {.count = 0};
    struct buffer shown = BUFFER_INIT;

    (void)state;
    assert_int_equal(add(&snapshots, text), 0);
    page(&snapshots, &shown);
    assert_non_null(strstr(
        shown.data, "\ncounts                0          0          0          2          2\n"));
    assert_non_null(strstr(
        shown.data, "\ntrends                0          1          0          0          1\n"));
    assert_non_null(strstr(
        shown.data, "\nall                   4          1          0          2          7\n"));
    buffer_done(&shown);
    snapshots_done(&snapshots);
}

static void test_page_counts_an_event_once_though_each_worker_hears_it(void **state)
{
    struct snapshots snapshots = {.count = 0};
    struct buffer text = BUFFER_INIT;

    (void)state;
    add_snapshot(&snapshots, 10000, 1, 100, 0);
    assert_non_null(strstr(page(&snapshots, &text), "events in     - /s"));
    add_snapshot(&snapshots, 12000, 1, 180, 120);
    assert_non_null(strstr(page(&snapshots, &text), "events in     20 /s"));
    assert_non_null(strstr(text.data, "matches       3 per event"));
    assert_non_null(strstr(text.data, "sluiced 1 at http://x, up 11 s, all well\n"));
    assert_non_null(strstr(text.data, "no problems\n"));
    assert_non_null(strstr(text.data, "all streams keep up\n"));
    buffer_clear(&text);
    top_view_print_line(&snapshots, &text);
    assert_non_null(strstr(buffer_str(&text), " events_in=20 "));
    assert_non_null(strstr(text.data, " matches_per_event=3 "));
    assert_non_null(strstr(text.data, " owed_events=- "));
    assert_non_null(strstr(text.data, "ts=1970-01-01T00:00:12.000Z "));
    buffer_done(&text);
    snapshots_done(&snapshots);
}

static void test_page_names_what_fails(void **state)
{
    struct snapshots snapshots = {.count = 0};
    struct buffer text = BUFFER_INIT;

    (void)state;
    assert_int_equal(
        add(&snapshots, "{\"now_ms\":5000,\"workers\":1,\"version\":\"1\",\"health\":{"
                        "\"streams\":{\"state\":\"ok\"},\"writes\":{\"state\":\"failing\"},"
                        "\"tasks\":{\"state\":\"failing\"},\"archive\":{\"state\":\"off\"}},"
                        "\"metrics\":{\"sluice_worker_up\":[1],\"sluice_worker_subscribed\":[1]}}"),
        0);
    page(&snapshots, &text);
    assert_non_null(strstr(text.data, ", failing: writes, tasks\n"));
    buffer_done(&text);
    snapshots_done(&snapshots);
}

static void test_verdict_is_folded_to_the_window(void **state)
{
    static const struct top_form narrow = {.page = {.rows = 24, .columns = 18}};
    struct snapshots snapshots = {.count = 0};
    struct buffer text = BUFFER_INIT;

    (void)state;
    assert_int_equal(add(&snapshots, "{\"now_ms\":5000,\"workers\":1,\"version\":\"1\",\"verdict\":"
                                     "{\"level\":\"warning\",\"text\":\"Two of nine are far "
                                     "behindbehindbehind.\"},\"metrics\":{}}"),
                     0);
    page(&snapshots, &text);
    assert_non_null(strstr(text.data, "\nTwo of nine are far behindbehindbehind.\n"));
    buffer_clear(&text);
    top_view_print(&snapshots, "http://x", &narrow, &text);
    assert_non_null(strstr(buffer_str(&text), "\nTwo of nine are\nfar\nbehindbehindbehind.\n"));
    buffer_done(&text);
    snapshots_done(&snapshots);
}

static void test_page_names_slow_clients_and_troubles_without_obeying_them(void **state)
{
    struct snapshots snapshots = {.count = 0};
    struct buffer text = BUFFER_INIT;

    (void)state;
    assert_int_equal(
        add(&snapshots,
            "{\"now_ms\":5000,\"workers\":2,\"version\":\"1\",\"subjects\":true,\"slowest\":["
            "{\"worker\":1,\"subject\":\"e\\u001b[2J\\u009bx\\u202e\\n\\u2028\\u00e9\",\"stream\":"
            "\"home\","
            "\"transport\":\"sse\",\"catching_up\":true,\"lag_ms\":1830,\"owed_events\":410,"
            "\"owed_bytes\":238112,\"connected_ms\":61000}],\"metrics\":{"
            "\"sluice_worker_up\":[1,0],\"sluice_worker_subscribed\":[1,0],"
            "\"sluice_start_time_seconds\":1,\"sluice_broken_connections_total\":3,"
            "\"sluice_disconnects_total\":{\"draining\":5,\"too_slow\":2,\"internal\":0},"
            "\"sluice_streams_by_kind\":{\"home/sse\":1,\"home/ndjson\":1200}}}"),
        0);
    page(&snapshots, &text);
    assert_non_null(strstr(text.data, "1 of 2 workers down"));
    assert_non_null(strstr(
        text.data, "home/sse            e\\u001b[2J\\u009bx\\u202e\\u000a\\u2028\xc3\xa9\n"));
    assert_non_null(strstr(text.data, "1.8 s    yes        410   238 kB  1 min      home/sse "));
    assert_non_null(strstr(text.data, "        2  streams ended: too_slow\n"));
    assert_non_null(strstr(text.data, "        3  connections broken\n"));
    assert_null(strstr(text.data, "draining"));
    assert_non_null(strstr(text.data, "dropped       5 streams"));
    assert_non_null(strstr(text.data, "home                  0      1,200          0          1"
                                      "      1,201\n"));
    assert_null(strchr(text.data, '\033'));
    buffer_done(&text);
    snapshots_done(&snapshots);
}

/* Two workers: the first one is well, the second as given. */
static const char *page_of_workers(const char *up, const char *subscribed, const char *ready,
                                   struct buffer *text)
{
    struct snapshots snapshots = {.count = 0};
    char json[256];

    snprintf(json, sizeof(json),
             "{\"now_ms\":5000,\"workers\":2,\"version\":\"1\",\"metrics\":{"
             "\"sluice_worker_up\":[1,%s],\"sluice_worker_subscribed\":[1,%s],"
             "\"sluice_worker_ready\":[1,%s]}}",
             up, subscribed, ready);
    assert_int_equal(add(&snapshots, json), 0);
    page(&snapshots, text);
    snapshots_done(&snapshots);
    return buffer_str(text);
}

static void test_worker_is_well_while_it_is_ready(void **state)
{
    struct buffer text = BUFFER_INIT;
    const char *shown;

    (void)state;
    shown = page_of_workers("1", "1", "1", &text);
    assert_non_null(strstr(shown, ", all well\n"));
    assert_non_null(strstr(shown, "\n0            ready"));
    assert_non_null(strstr(shown, "\n1            ready"));
    shown = page_of_workers("1", "1", "0", &text);
    assert_non_null(strstr(shown, ", 1 of 2 workers not ready\n"));
    assert_non_null(strstr(shown, "\n0            ready"));
    assert_non_null(strstr(shown, "\n1        not ready"));
    shown = page_of_workers("1", "0", "0", &text);
    assert_non_null(strstr(shown, ", Redis is away\n"));
    assert_non_null(strstr(shown, "\n1       Redis away"));
    shown = page_of_workers("0", "0", "0", &text);
    assert_non_null(strstr(shown, ", 1 of 2 workers down\n"));
    assert_non_null(strstr(shown, "\n1             down"));
    buffer_done(&text);
}

/* Appends a title and lines "a1", "a2", ... */
static void fill(struct buffer *text, char name, unsigned lines)
{
    buffer_append_format(text, "%c\n", name);
    for (unsigned i = 1; i <= lines; i++)
        buffer_append_format(text, "%c%u\n", name, i);
}

/* Two parts in the first column, the second of which can be shortened, and two lists in the second
 * column. */
static const char *paged(size_t rows, size_t columns, bool has_styles, struct buffer *text)
{
    const struct layout_form form = {rows, columns, has_styles};
    struct layout_part parts[4] = {
        [2] = {.is_list = true, .is_second = true},
        [3] = {.is_list = true, .is_second = true},
    };

    for (unsigned i = 0; i < 4; i++)
        fill(&parts[i].text, (char)('a' + i), i < 3 ? 3 : 1);
    fill(&parts[1].shorter, 'b', 1);
    buffer_clear(text);
    layout_print(parts, 4, &form, text);
    for (unsigned i = 0; i < 4; i++) {
        buffer_done(&parts[i].text);
        buffer_done(&parts[i].shorter);
    }
    assert_non_null(buffer_str(text));
    return text->data;
}

static void test_page_is_made_to_fit_the_window(void **state)
{
    static const char whole[] = "a\na1\na2\na3\n\nb\nb1\nb2\nb3\n\nc\nc1\nc2\nc3\n\nd\nd1\n";
    struct buffer text = BUFFER_INIT;

    (void)state;
    assert_string_equal(paged(0, 0, false, &text), whole);
    assert_string_equal(paged(17, 80, false, &text), whole);
    assert_string_equal(paged(16, 80, false, &text),
                        "a\na1\na2\na3\n\nb\nb1\n\nc\nc1\nc2\nc3\n\nd\nd1\n");
    assert_string_equal(paged(14, 80, false, &text),
                        "a\na1\na2\na3\nb\nb1\nc\nc1\nc2\nc3\nd\nd1\n");
    assert_string_equal(paged(11, 80, false, &text),
                        "a\na1\na2\na3\nb\nb1\nc\nc1\n... and 2 more\nd\nd1\n");
    assert_string_equal(paged(10, 80, false, &text),
                        "a\na1\na2\na3\nb\nb1\nc\n... and 3 more\nd\nd1\n");
    assert_string_equal(paged(5, 80, false, &text), /* cut to the window */
                        "a\na1\na2\na3\nb\nb1\nc\n... and 3 more\nd\nd1\n");
    buffer_done(&text);
}

static void test_page_has_two_columns_in_a_wide_window(void **state)
{
    struct buffer text = BUFFER_INIT;
    char expected[1024];
    int size = 0;
    static const char *const left[] = {"a", "a1", "a2", "a3", "", "b", "b1", "b2", "b3"};
    static const char *const right[] = {"c", "c1", "c2", "c3", "", "d", "d1"};

    (void)state;
    for (unsigned i = 0; i < 9; i++) {
        bool is_alone = i >= 7 || !*right[i];

        size += snprintf(expected + size, sizeof(expected) - (size_t)size, "%-*s%s\n",
                         is_alone ? 0 : LAYOUT_COLUMN_WIDTH + LAYOUT_COLUMN_GAP, left[i],
                         i < 7 ? right[i] : "");
    }
    assert_string_equal(paged(20, 163, false, &text), expected);
    assert_null(strstr(paged(20, 162, false, &text), "  "));
    assert_non_null(strstr(paged(20, 163, true, &text), "\033[1ma\033[0m "));
    assert_int_equal(strcspn(strchr(text.data, 'a'), "c"), /* the styles have no width */
                     strlen("a\033[0m") + LAYOUT_COLUMN_WIDTH + LAYOUT_COLUMN_GAP - 1 + 4);
    buffer_done(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figures_have_the_digits_that_they_are_worth),
        cmocka_unit_test(test_times_from_microseconds_to_days),
        cmocka_unit_test(test_sum_of_a_family_is_over_workers_and_labels),
        cmocka_unit_test(test_what_is_no_status_is_refused_and_changes_nothing),
        cmocka_unit_test(test_rates_need_two_looks_and_are_about_the_seconds_asked_for),
        cmocka_unit_test(test_server_that_was_started_anew_counts_from_its_first_snapshot),
        cmocka_unit_test(test_oldest_look_is_forgotten),
        cmocka_unit_test(test_quantile_is_of_what_has_been_counted_between),
        cmocka_unit_test(test_page_has_a_row_for_each_kind_of_stream),
        cmocka_unit_test(test_page_counts_an_event_once_though_each_worker_hears_it),
        cmocka_unit_test(test_page_names_what_fails),
        cmocka_unit_test(test_verdict_is_folded_to_the_window),
        cmocka_unit_test(test_page_names_slow_clients_and_troubles_without_obeying_them),
        cmocka_unit_test(test_worker_is_well_while_it_is_ready),
        cmocka_unit_test(test_page_is_made_to_fit_the_window),
        cmocka_unit_test(test_page_has_two_columns_in_a_wide_window),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
