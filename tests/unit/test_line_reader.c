#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/line_reader.h"
#include "tests/support/cmocka_all.h"

enum { MAX_LINE = 8 };

/* Returns a reader of a pipe that contains `text`; its writing end stays open in *ret_write. */
static struct line_reader *reader_of(const char *text, int *ret_read, int *ret_write)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], text, strlen(text)), strlen(text));
    *ret_read = ends[0];
    *ret_write = ends[1];
    return line_reader_new(ends[0], MAX_LINE);
}

static void assert_line(struct line_reader *reader, const char *expected, size_t number)
{
    struct sl_slice line;

    assert_int_equal(line_reader_next(reader, true, &line), LINE_READ);
    if (!sl_slice_is(line, expected))
        fail_msg("line %zu is '%.*s', not '%s'", number, SL_SLICE_ARG(line), expected);
    assert_int_equal(line_reader_number(reader), number);
}

static void assert_status(struct line_reader *reader, enum line_status expected, size_t number)
{
    struct sl_slice line;

    assert_int_equal(line_reader_next(reader, true, &line), expected);
    assert_int_equal(line_reader_number(reader), number);
}

static void test_lines_end_with_lf_crlf_or_the_file(void **state)
{
    int in, out;
    struct line_reader *reader = reader_of("one\ntwo\r\n\n\r\nlast", &in, &out);

    (void)state;
    close(out);
    assert_line(reader, "one", 1);
    assert_line(reader, "two", 2);
    assert_line(reader, "", 3);
    assert_line(reader, "", 4);
    assert_line(reader, "last", 5);
    assert_status(reader, LINE_END, 5);
    assert_status(reader, LINE_END, 5);
    line_reader_free(reader);
    close(in);
}

static void test_longest_line_passes_and_longer_ones_are_skipped(void **state)
{
    int in, out;
    struct line_reader *reader = reader_of("12345678\n123456789\nok\n"
                                           "a line that is many times as long as it may be\n"
                                           "ok\n12345678",
                                           &in, &out);

    (void)state;
    close(out);
    assert_line(reader, "12345678", 1);
    assert_status(reader, LINE_TOO_LONG, 2);
    assert_line(reader, "ok", 3);
    assert_status(reader, LINE_TOO_LONG, 4);
    assert_line(reader, "ok", 5);
    assert_line(reader, "12345678", 6);
    assert_status(reader, LINE_END, 6);
    line_reader_free(reader);
    close(in);
}

static void test_long_line_may_end_the_file(void **state)
{
    static const char *const texts[] = {"123456789", "123456789\n", "123456789123456789",
                                        "12345678123"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        int in, out;
        struct line_reader *reader = reader_of(texts[i], &in, &out);

        close(out);
        assert_status(reader, LINE_TOO_LONG, 1);
        assert_status(reader, LINE_END, 1);
        line_reader_free(reader);
        close(in);
    }
}

static void test_without_waiting_nothing_yet_is_an_answer(void **state)
{
    int in, out;
    struct line_reader *reader = reader_of("one\ntw", &in, &out);
    struct sl_slice line;

    (void)state;
    assert_line(reader, "one", 1);
    assert_int_equal(line_reader_next(reader, false, &line), LINE_NONE_YET);
    assert_int_equal(write(out, "o\n", 2), 2);
    assert_int_equal(line_reader_next(reader, false, &line), LINE_READ);
    assert_true(sl_slice_is(line, "two"));
    close(out);
    assert_int_equal(line_reader_next(reader, false, &line), LINE_END);
    line_reader_free(reader);
    close(in);
}

static void test_file_can_be_read_again_and_a_pipe_cannot(void **state)
{
    FILE *file = tmpfile();
    struct line_reader *reader;
    int in, out;

    (void)state;
    fputs("one\ntwo\n", file);
    rewind(file);
    reader = line_reader_new(fileno(file), MAX_LINE);
    for (int pass = 0; pass < 3; pass++) {
        assert_line(reader, "one", 1);
        assert_line(reader, "two", 2);
        assert_status(reader, LINE_END, 2);
        assert_int_equal(line_reader_rewind(reader), 0);
    }
    line_reader_free(reader);
    fclose(file);

    reader = reader_of("", &in, &out);
    assert_true(line_reader_rewind(reader) < 0);
    line_reader_free(reader);
    close(in);
    close(out);
}

static void test_descriptor_that_cannot_be_read_fails(void **state)
{
    struct line_reader *reader = line_reader_new(-1, MAX_LINE);

    (void)state;
    assert_status(reader, LINE_FAILED, 0);
    line_reader_free(reader);
}

static void test_making_a_reader_survives_every_allocation_that_fails(void **state)
{
    struct line_reader *reader = NULL;

    (void)state;
    for (uint64_t n = 0; !reader; n++) {
        assert_true(n <= 2);
        mem_fail_after(n);
        reader = line_reader_new(0, MAX_LINE);
        mem_fail_never();
    }
    line_reader_free(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_end_with_lf_crlf_or_the_file),
        cmocka_unit_test(test_longest_line_passes_and_longer_ones_are_skipped),
        cmocka_unit_test(test_long_line_may_end_the_file),
        cmocka_unit_test(test_without_waiting_nothing_yet_is_an_answer),
        cmocka_unit_test(test_file_can_be_read_again_and_a_pipe_cannot),
        cmocka_unit_test(test_descriptor_that_cannot_be_read_fails),
        cmocka_unit_test(test_making_a_reader_survives_every_allocation_that_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
