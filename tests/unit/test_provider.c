#include "base/alloc.h"
#include "gateway/provider/cache_age.h"
#include "gateway/provider/discovery.h"
#include "gateway/provider/set_file.h"
#include "tests/support/cmocka_all.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { USUAL_MS = 600000, LEAST_MS = 60000, MOST_MS = 86400000 };

static uint64_t left_ms(const char *control, const char *age)
{
    struct cache_age read = {0};

    if (control)
        cache_age_read(&read, SL_SLICE("cache-control"), sl_slice_str(control));
    if (age)
        cache_age_read(&read, SL_SLICE("AGE"), sl_slice_str(age));
    cache_age_read(&read, SL_SLICE("Expires"), SL_SLICE("0"));
    return cache_age_left_ms(&read, USUAL_MS, LEAST_MS, MOST_MS);
}

static void test_an_answer_is_good_for_as_long_as_it_says_within_bounds(void **state)
{
    static const struct {
        const char *control, *age;
        uint64_t ms;
    } cases[] = {
        {NULL, NULL, USUAL_MS},
        {"", NULL, USUAL_MS},
        {"public", "70", USUAL_MS},
        {"max-age=300", NULL, 300000},
        {"public, Max-Age=300, must-revalidate", NULL, 300000},
        {"max-age=\"300\"", NULL, 300000},
        {"max-age=300", "100", 200000},
        {"max-age=300", "270", LEAST_MS},
        {"max-age=300", "400", LEAST_MS},
        {"max-age=300", "-400", 300000},
        {"max-age=300", "soon", 300000},
        {"max-age=0", NULL, LEAST_MS},
        {"max-age=300, no-cache", NULL, LEAST_MS},
        {"no-store", NULL, LEAST_MS},
        {"max-age=99999999999999999999999", NULL, MOST_MS},
        {"max-age=99999999999999999999999", "99999999999999999999999", LEAST_MS},
        {"max-age=-1", NULL, USUAL_MS},
        {"max-age=", NULL, USUAL_MS},
        {"max-age=\"", NULL, USUAL_MS},
        {"max-age=3 00", NULL, USUAL_MS},
        {"s-maxage=300", NULL, USUAL_MS},
        {",,=,max-age=120,", NULL, 120000},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (left_ms(cases[i].control, cases[i].age) != cases[i].ms)
            fail_msg("%s, %s: %llu ms", cases[i].control, cases[i].age,
                     (unsigned long long)left_ms(cases[i].control, cases[i].age));
    }
}

static enum fetch_result discover(const char *document, const char *issuer)
{
    struct failure failure = {""};
    char *url = NULL;
    enum fetch_result result = discovery_read(sl_slice_str(document), issuer, &url, &failure);

    assert_int_equal(result == FETCH_GOOD, url != NULL);
    assert_int_equal(result == FETCH_GOOD, failure.text[0] == '\0');
    mem_free(url);
    return result;
}

static void test_a_discovery_document_is_of_the_issuer_that_was_asked(void **state)
{
    static const struct {
        const char *document;
        enum fetch_result result;
    } cases[] = {
        {"{\"issuer\":\"https://a\",\"jwks_uri\":\"https://b/keys\",\"x\":[1]}", FETCH_GOOD},
        {"{\"issuer\":\"https://a/\",\"jwks_uri\":\"https://b/keys\"}", FETCH_WRONG_ISSUER},
        {"{\"issuer\":\"https://A\",\"jwks_uri\":\"https://b/keys\"}", FETCH_WRONG_ISSUER},
        {"{\"issuer\":\"https://a\\u0000\",\"jwks_uri\":\"https://b/keys\"}", FETCH_NOT_JSON},
        {"{\"issuer\":[\"https://a\"],\"jwks_uri\":\"https://b/keys\"}", FETCH_WRONG_ISSUER},
        {"{\"jwks_uri\":\"https://b/keys\"}", FETCH_WRONG_ISSUER},
        {"{\"issuer\":\"https://a\"}", FETCH_BAD_URL},
        {"{\"issuer\":\"https://a\",\"jwks_uri\":7}", FETCH_BAD_URL},
        {"{\"issuer\":\"https://a\",\"jwks_uri\":\"http://b/keys\"}", FETCH_BAD_URL},
        {"{\"issuer\":\"https://a\",\"jwks_uri\":\"http://127.0.0.1/keys\"}", FETCH_BAD_URL},
        {"{\"issuer\":\"https://a\",\"issuer\":\"https://a\",\"jwks_uri\":\"https://b/keys\"}",
         FETCH_NOT_JSON},
        {"[]", FETCH_NOT_JSON},
        {"<html>", FETCH_NOT_JSON},
        {"", FETCH_NOT_JSON},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (discover(cases[i].document, "https://a") != cases[i].result)
            fail_msg("%s", cases[i].document);
    }
    assert_int_equal(discover("{\"issuer\":\"http://localhost:1\","
                              "\"jwks_uri\":\"http://localhost:1/keys\"}",
                              "http://localhost:1"),
                     FETCH_GOOD);
}

static void test_a_file_is_there_whole_or_as_before(void **state)
{
    char folder[] = "/tmp/sluice-test-XXXXXX", path[64], nowhere[64];
    struct buffer content = BUFFER_INIT;
    struct failure failure = {""};
    struct stat info;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/set", folder);
    snprintf(nowhere, sizeof(nowhere), "%s/no/set", folder);
    assert_int_equal(set_file_read(path, &content), -ENOENT);
    assert_int_equal(set_file_write(path, SL_SLICE("first, and long"), &failure), 0);
    assert_int_equal(set_file_write(path, SL_SLICE("second"), &failure), 0);
    assert_int_equal(set_file_write(nowhere, SL_SLICE("third"), &failure), -ENOENT);
    assert_non_null(strstr(failure.text, nowhere));
    assert_int_equal(set_file_read(path, &content), 0);
    assert_true(sl_slice_is(buffer_slice(&content), "second"));
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
    buffer_done(&content);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0); /* nothing else is left */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer_is_good_for_as_long_as_it_says_within_bounds),
        cmocka_unit_test(test_a_discovery_document_is_of_the_issuer_that_was_asked),
        cmocka_unit_test(test_a_file_is_there_whole_or_as_before),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
