#include "gateway/http/http_date.h"
#include "tests/support/cmocka_all.h"

static void expect(struct http_date *date, uint64_t unix_ms, const char *expected)
{
    struct sl_slice line = http_date_line(date, unix_ms);

    assert_int_equal(line.size, strlen(expected));
    assert_memory_equal(line.data, expected, line.size);
}

static void test_the_line_is_that_of_the_second(void **state)
{
    struct http_date date = {0};

    (void)state;
    expect(&date, 784111777000, "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    expect(&date, 784111777999, "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
    expect(&date, 784111778000, "Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n");
    expect(&date, 784111777000, "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"); /* set back */
    expect(&date, 951782399000, "Date: Mon, 28 Feb 2000 23:59:59 GMT\r\n");
    expect(&date, 951782400000, "Date: Tue, 29 Feb 2000 00:00:00 GMT\r\n");
}

static void test_also_in_the_second_0(void **state)
{
    (void)state;
    expect(&(struct http_date){0}, 0, "Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_line_is_that_of_the_second),
        cmocka_unit_test(test_also_in_the_second_0),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
