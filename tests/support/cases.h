/* tests/support/cases.h - folders of test cases: one folder for each case, one file for each part
 * of it.
 *
 *     tests/data/events/refused/lone_surrogate/{input,error}
 *
 * A test runs all cases of a folder and names the one that failed. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"

struct test_case {
    char name[256];
    char path[1024];
};

/* Calls `run` for each folder in TEST_DATA_DIR/`folder`, ordered by name, and fails the test if
 * there are none. */
void cases_run(const char *folder, void (*run)(const struct test_case *test_case));

/* Appends the file `name` of a case to `ret_content`. If it is missing: false if `optional`,
 * otherwise the test fails. */
bool case_read(const struct test_case *test_case, const char *name, bool optional,
               struct buffer *ret_content);

/* Fails the test, naming the case and showing both texts, unless they are equal. */
void case_expect(const struct test_case *test_case, struct sl_slice actual,
                 struct sl_slice expected);
