#include "tests/support/cases.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka_all.h"

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

void cases_run(const char *folder, void (*run)(const struct test_case *test_case))
{
    struct dirent **entries;
    char path[512];
    int count;

    snprintf(path, sizeof(path), "%s/%s", TEST_DATA_DIR, folder);
    count = scandir(path, &entries, is_visible, alphasort);
    if (count <= 0)
        fail_msg("no cases in '%s'", path);
    for (int i = 0; i < count; i++) {
        struct test_case test_case;

        snprintf(test_case.name, sizeof(test_case.name), "%s", entries[i]->d_name);
        snprintf(test_case.path, sizeof(test_case.path), "%s/%s", path, entries[i]->d_name);
        free(entries[i]);
        run(&test_case);
    }
    free(entries);
}

bool case_read(const struct test_case *test_case, const char *name, bool optional,
               struct buffer *ret_content)
{
    char path[1200];
    char chunk[4096];
    FILE *file;
    size_t got;

    snprintf(path, sizeof(path), "%s/%s", test_case->path, name);
    file = fopen(path, "rb");
    if (!file) {
        if (!optional)
            fail_msg("cannot read '%s'", path);
        return false;
    }
    while ((got = fread(chunk, 1, sizeof(chunk), file)) > 0)
        buffer_append(ret_content, chunk, got);
    fclose(file);
    return true;
}

void case_expect(const struct test_case *test_case, struct sl_slice actual,
                 struct sl_slice expected)
{
    if (!sl_slice_equal(actual, expected))
        fail_msg("case %s:\n--- got\n%.*s\n--- expected\n%.*s", test_case->name,
                 SL_SLICE_ARG(actual), SL_SLICE_ARG(expected));
}
