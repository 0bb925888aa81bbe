#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "gateway/process/open_files.h"

static rlim_t soft_limit(void)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    return limit.rlim_cur;
}

static void test_the_limit_is_what_is_needed_even_when_it_was_higher(void **state)
{
    (void)state;
    assert_int_equal(open_files_set(900), 900);
    assert_int_equal(soft_limit(), 900);
    assert_int_equal(open_files_set(800), 800);
    assert_int_equal(soft_limit(), 800);
}

static void test_the_limit_grows_back_within_what_the_system_allows(void **state)
{
    (void)state;
    open_files_set(800);
    assert_int_equal(open_files_set(900), 900);
    assert_int_equal(soft_limit(), 900);
}

static void test_no_more_is_taken_than_libwebsockets_has_tables_for(void **state)
{
    (void)state;
    assert_in_range(open_files_set(UINT64_MAX), 1, OPEN_FILES_MOST);
    assert_in_range(soft_limit(), 1, OPEN_FILES_MOST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_limit_is_what_is_needed_even_when_it_was_higher),
        cmocka_unit_test(test_the_limit_grows_back_within_what_the_system_allows),
        cmocka_unit_test(test_no_more_is_taken_than_libwebsockets_has_tables_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
