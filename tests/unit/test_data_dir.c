#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/model/data_dir.h"
#include "tests/support/cmocka_all.h"

static int no_variables(void **state)
{
    (void)state;
    unsetenv("SLUICE_DATA_DIR");
    unsetenv("XDG_STATE_HOME");
    setenv("HOME", "/home/ada", 1);
    return 0;
}

static void test_own_variable_comes_first(void **state)
{
    char path[SL_DATA_DIR_SIZE];

    (void)state;
    setenv("SLUICE_DATA_DIR", "/data", 1);
    setenv("XDG_STATE_HOME", "/state", 1);
    assert_int_equal(sl_data_dir(path, NULL), 0);
    assert_string_equal(path, "/data");
}

static void test_state_home_comes_second(void **state)
{
    char path[SL_DATA_DIR_SIZE];

    (void)state;
    setenv("SLUICE_DATA_DIR", "", 1);
    setenv("XDG_STATE_HOME", "/state", 1);
    assert_int_equal(sl_data_dir(path, NULL), 0);
    assert_string_equal(path, "/state/sluice");
}

static void test_without_variables_root_and_users_differ(void **state)
{
    char path[SL_DATA_DIR_SIZE];

    (void)state;
    assert_int_equal(sl_data_dir(path, NULL), 0);
    assert_string_equal(path, geteuid() == 0 ? "/var/lib/sluice" : "/home/ada/.local/state/sluice");
}

static void test_relative_state_home_is_ignored(void **state)
{
    char path[SL_DATA_DIR_SIZE], without[SL_DATA_DIR_SIZE];

    (void)state;
    assert_int_equal(sl_data_dir(without, NULL), 0);
    setenv("XDG_STATE_HOME", "state", 1);
    assert_int_equal(sl_data_dir(path, NULL), 0);
    assert_string_equal(path, without);
}

static void test_relative_and_too_long_paths_are_refused(void **state)
{
    char path[SL_DATA_DIR_SIZE] = "untouched";
    char deep[SL_DATA_DIR_SIZE + 1];
    struct failure failure;

    (void)state;
    setenv("SLUICE_DATA_DIR", "data", 1);
    assert_int_equal(sl_data_dir(path, &failure), -EINVAL);
    assert_string_equal(failure.text, "SLUICE_DATA_DIR is not an absolute path: 'data'");

    memset(deep, '/', sizeof(deep));
    deep[SL_DATA_DIR_SIZE] = '\0';
    setenv("SLUICE_DATA_DIR", deep, 1);
    assert_int_equal(sl_data_dir(path, &failure), -EINVAL);
    assert_string_equal(path, "untouched");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_own_variable_comes_first, no_variables),
        cmocka_unit_test_setup(test_state_home_comes_second, no_variables),
        cmocka_unit_test_setup(test_without_variables_root_and_users_differ, no_variables),
        cmocka_unit_test_setup(test_relative_state_home_is_ignored, no_variables),
        cmocka_unit_test_setup(test_relative_and_too_long_paths_are_refused, no_variables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
