/* tests/support/cases.h - folders of cases: one folder a case, one file a thing it consists of.
 *
 *     tests/data/events/refused/lone_surrogate/{input,error}
 *
 * A test walks the cases of a folder and names the one that failed. */
#pragma once

#include <stdbool.h>

#include "base/buffer.h"

struct test_case {
    char name[256];
    char path[1024];
};

/* Calls `run` for each folder in TEST_DATA_DIR/`folder`, in the order of their names, and fails
 * the test when there are none. */
void cases_run(const char *folder, void (*run)(const struct test_case *test_case));

/* Appends the file `name` of a case to `ret_content`. A missing file: false when `optional`, else
 * the test fails. */
bool case_read(const struct test_case *test_case, const char *name, bool optional,
               struct buffer *ret_content);

/* Fails the test, naming the case and showing both texts, unless they are equal. */
void case_expect(const struct test_case *test_case, struct sl_slice actual,
                 struct sl_slice expected);
