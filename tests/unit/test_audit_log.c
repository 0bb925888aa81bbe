/* The audit file on a disk that is full, or slow, and while it is reopened. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gateway/access/audit_log.h"
#include "tests/support/cmocka_all.h"

static uv_loop_t loop;
static struct metrics_board *board;
static struct metrics *metrics;
static struct audit_log *audit;
static char folder[32], path[64], other[64];
static char text[4 << 20];

static int begin(void **state)
{
    struct failure failure;

    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    strcpy(folder, "/tmp/sluice-audit-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/audit", folder);
    snprintf(other, sizeof(other), "%s/other", folder);
    uv_loop_init(&loop);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    audit = audit_log_new(&loop, metrics);
    assert_non_null(audit);
    assert_int_equal(audit_log_open(audit, path, &failure), 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    uv_run(&loop, UV_RUN_DEFAULT);
    audit_log_free(audit);
    assert_int_equal(uv_loop_close(&loop), 0);
    metrics_board_free(board);
    unlink(path);
    unlink(other);
    assert_int_equal(rmdir(folder), 0);
    return 0;
}

static void write_line(unsigned number)
{
    struct buffer json;

    assert_true(audit_begin(audit, "test", &json));
    audit_number(&json, "number", number);
    audit_text(&json, "text", SL_SLICE("tea \"black\"\n"));
    audit_end_take(audit, &json);
}

static void write_lines(unsigned from, unsigned to)
{
    for (unsigned number = from; number < to; number++)
        write_line(number);
}

static size_t read_file(const char *name)
{
    FILE *file = fopen(name, "re");
    size_t size;

    assert_non_null(file);
    size = fread(text, 1, sizeof(text) - 1, file);
    text[size] = '\0';
    fclose(file);
    return size;
}

/* Counts lines, which must be complete. */
static unsigned lines_of(const char *name)
{
    unsigned count = 0;

    read_file(name);
    for (const char *at = text; (at = strstr(at, "\\n\"}\n")); at++)
        count++;
    return count;
}

static uint64_t lost(void)
{
    return metrics_sum(board, METRIC_AUDIT_LINES_LOST);
}

static void limit_size(rlim_t size)
{
    struct rlimit limit = {size, RLIM_INFINITY};

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void test_lines_are_whole_and_in_order(void **state)
{
    struct stat status;

    (void)state;
    write_lines(0, 500);
    uv_run(&loop, UV_RUN_DEFAULT);
    write_lines(500, 1000);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(lines_of(path), 1000);
    assert_int_equal(metrics_sum(board, METRIC_AUDIT_LINES), 1000);
    assert_int_equal(lost(), 0);
    assert_true(strstr(text, "\"number\":499,") < strstr(text, "\"number\":500,"));
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
}

static void test_a_full_disk_costs_lines_which_are_counted(void **state)
{
    (void)state;
    write_line(0);
    uv_run(&loop, UV_RUN_DEFAULT);
    limit_size((rlim_t)read_file(path) + 1500); /* room for some lines and a part of one */
    write_lines(1, 200);
    uv_run(&loop, UV_RUN_DEFAULT);
    limit_size(RLIM_INFINITY);
    assert_true(lost() > 150 && lost() < 199);
    assert_int_equal(lines_of(path) + lost(), 200);
    assert_int_equal(metrics_sum(board, METRIC_AUDIT_LINES), lines_of(path));
    assert_int_not_equal(text[strlen(text) - 1], '\n');

    write_lines(200, 300); /* there is room again */
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(lines_of(path) + lost(), 300);
    assert_non_null(strstr(text, "\"number\":200,"));
    assert_true(strstr(text, "\n{\"at\":") < strstr(text, "\"number\":200,"));
    assert_int_equal(metrics_sum(board, METRIC_AUDIT_LINES), lines_of(path));
}

/* Cuts the file within a line. */
static void cut_a_line(void)
{
    write_line(0);
    uv_run(&loop, UV_RUN_DEFAULT);
    limit_size((rlim_t)read_file(path) + 20);
    write_line(1);
    uv_run(&loop, UV_RUN_DEFAULT);
    limit_size(RLIM_INFINITY);
    assert_int_equal(lost(), 1);
    assert_int_not_equal(text[read_file(path) - 1], '\n');
}

static void assert_line_stands_alone(const char *number)
{
    const char *line;

    read_file(path);
    line = strstr(text, number);
    assert_non_null(line);
    while (line > text && line[-1] != '\n')
        line--;
    assert_null(memmem(line + 1, (size_t)(strchr(line, '\n') - line), "{\"at\"", 5));
    assert_int_equal(lines_of(path), 2);
}

static void test_a_line_that_was_cut_spoils_none_of_another_worker(void **state)
{
    struct audit_log *first = audit;
    struct failure failure;

    (void)state;
    audit = audit_log_new(&loop, metrics);
    assert_int_equal(audit_log_open(audit, path, &failure), 0);
    cut_a_line();
    audit_log_free(audit);
    audit = first;
    write_line(2);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_line_stands_alone("\"number\":2,");
}

static void test_a_line_that_was_cut_spoils_none_when_the_file_is_opened_anew(void **state)
{
    struct failure failure;

    (void)state;
    cut_a_line();
    assert_int_equal(audit_log_open(audit, path, &failure), 0);
    write_line(2);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_line_stands_alone("\"number\":2,");
}

static void test_what_waits_for_a_slow_disk_is_bounded(void **state)
{
    (void)state;
    write_lines(0, 30000); /* nothing is written before the loop runs */
    assert_true(lost() > 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(lines_of(path) + lost(), 30000);
    assert_true(read_file(path) <= AUDIT_WAITING_MAX + 200);
}

static void test_a_file_is_opened_anew_between_two_writes(void **state)
{
    struct failure failure;

    (void)state;
    write_line(0); /* is being written */
    write_line(1); /* waits */
    assert_int_equal(audit_log_open(audit, other, &failure), 0);
    write_line(2);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(lines_of(path), 1);
    assert_int_equal(lines_of(other), 2);
    assert_int_equal(audit_log_open(audit, "/nonexistent/file", &failure), -ENOENT);
    write_line(3);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(lines_of(other), 3);
    assert_int_equal(lost(), 0);
}

static void test_it_may_be_off(void **state)
{
    struct buffer json;

    (void)state;
    assert_int_equal(audit_log_open(audit, NULL, NULL), 0);
    assert_false(audit_begin(audit, "test", &json));
    assert_false(audit_begin(NULL, "test", &json));
}

static void test_refusals_have_a_rate(void **state)
{
    struct buffer json;
    unsigned written = 0;

    (void)state;
    for (unsigned i = 0; i < 5 * AUDIT_REFUSED_PER_S; i++) { /* the loop's clock stands still */
        if (!audit_begin_refused(audit, "refused", &json))
            continue;
        written++;
        audit_end_take(audit, &json);
    }
    assert_int_equal(written, AUDIT_REFUSED_PER_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_lines_are_whole_and_in_order, begin, end),
        cmocka_unit_test_setup_teardown(test_a_line_that_was_cut_spoils_none_of_another_worker,
                                        begin, end),
        cmocka_unit_test_setup_teardown(
            test_a_line_that_was_cut_spoils_none_when_the_file_is_opened_anew, begin, end),
        cmocka_unit_test_setup_teardown(test_a_full_disk_costs_lines_which_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(test_what_waits_for_a_slow_disk_is_bounded, begin, end),
        cmocka_unit_test_setup_teardown(test_a_file_is_opened_anew_between_two_writes, begin, end),
        cmocka_unit_test_setup_teardown(test_it_may_be_off, begin, end),
        cmocka_unit_test_setup_teardown(test_refusals_have_a_rate, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
