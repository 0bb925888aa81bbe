/* The pages in memory: which file, in which coding, and when the client has it already. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "gateway/front/site.h"

static const struct site_file files[] = {
    {"/", "text/html; charset=utf-8", "abc", true, true, "<p>", 3, "GZ", 2},
    {"/assets/a-1.js", "text/javascript; charset=utf-8", "def", false, true, "let a;", 6, "gz", 2},
};
static const struct site site = {files, 2};

struct asked {
    struct site_answer answer;
    char headers[1024];
};

static struct asked ask(const char *path, const char *accept_encoding, const char *if_none_match)
{
    const struct site_file *file = site_find(&site, sl_slice_str(path));
    struct http_request http = {.method = HTTP_GET};
    struct buffer headers = BUFFER_INIT;
    struct asked asked = {0};

    if (accept_encoding)
        http.accept_encoding.lines[0] = sl_slice_str(accept_encoding);
    if (if_none_match)
        http.if_none_match = sl_slice_str(if_none_match);
    assert_non_null(file);
    site_answer(file, &http, &headers, &asked.answer);
    assert_false(headers.failed);
    assert_true(headers.size < sizeof(asked.headers));
    memcpy(asked.headers, headers.data, headers.size);
    buffer_done(&headers);
    return asked;
}

static bool says(const struct asked *asked, const char *header)
{
    return strstr(asked->headers, header) != NULL;
}

static void test_only_whole_paths_are_found(void **state)
{
    (void)state;
    assert_ptr_equal(site_find(&site, SL_SLICE("/")), &files[0]);
    assert_ptr_equal(site_find(&site, SL_SLICE("/assets/a-1.js")), &files[1]);
    assert_null(site_find(&site, SL_SLICE("/assets/a-1.j")));
    assert_null(site_find(&site, SL_SLICE("/assets/a-1.js/")));
    assert_null(site_find(&site, SL_SLICE("")));
    assert_null(site_find(NULL, SL_SLICE("/")));
}

static void test_compressed_to_those_who_take_it(void **state)
{
    static const struct {
        const char *accept_encoding;
        bool gzip;
    } cases[] = {
        {NULL, false},
        {"", false},
        {"gzip", true},
        {"br, GZIP;q=0.5", true},
        {"deflate, gzip;q=1.0, *;q=0.5", true},
        {"*", true},
        {"gzip;q=0", false},
        {"gzip;q=0.000", false},
        {"gzip;q=0.001", true},
        {"*;q=0", false},
        {"*, gzip;q=0", false},
        {"gzip;q=1, *;q=0", true},
        {"br", false},
        {"identity", false},
        {"gzipped", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct asked asked = ask("/", cases[i].accept_encoding, NULL);

        if (cases[i].gzip != says(&asked, "Content-Encoding: gzip\r\n"))
            fail_msg("Accept-Encoding: %s", cases[i].accept_encoding);
        assert_int_equal(asked.answer.status, 200);
        assert_true(sl_slice_is(asked.answer.body, cases[i].gzip ? "GZ" : "<p>"));
        assert_true(says(&asked, cases[i].gzip ? "ETag: \"abc-gzip\"\r\n" : "ETag: \"abc\"\r\n"));
        assert_true(says(&asked, "Vary: Accept-Encoding\r\n"));
    }
}

static void test_who_has_it_gets_no_body(void **state)
{
    static const struct {
        const char *accept_encoding, *if_none_match;
        int status;
    } cases[] = {
        {NULL, "\"abc\"", 304},
        {NULL, "W/\"abc\"", 304},
        {NULL, "\"x\", \"abc\"", 304},
        {NULL, "*", 304},
        {"gzip", "\"abc-gzip\"", 304},
        {"gzip", "\"abc\"", 200},
        {NULL, "\"abc-gzip\"", 200},
        {NULL, "abc", 200},
        {NULL, "\"abd\"", 200},
        {NULL, "\"\"", 200},
        {NULL, "", 200},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct asked asked = ask("/", cases[i].accept_encoding, cases[i].if_none_match);

        if (asked.answer.status != cases[i].status)
            fail_msg("If-None-Match: %s", cases[i].if_none_match);
        assert_int_equal(asked.answer.body.size == 0, cases[i].status == 304);
        assert_true(says(&asked, "ETag: "));
    }
}

static void test_pages_carry_a_policy_and_assets_are_kept(void **state)
{
    struct asked page = ask("/", NULL, NULL), asset = ask("/assets/a-1.js", NULL, NULL);

    (void)state;
    assert_string_equal(page.answer.cache_control, "no-cache");
    assert_true(says(&page, "Content-Security-Policy: default-src 'none'; script-src 'self'; "));
    assert_false(says(&page, "unsafe"));
    assert_non_null(strstr(asset.answer.cache_control, "immutable"));
    assert_false(says(&asset, "Content-Security-Policy"));
    assert_string_equal(asset.answer.content_type, "text/javascript; charset=utf-8");
}

static void test_no_memory_shows_in_the_headers(void **state)
{
    struct http_request http = {.method = HTTP_GET};
    struct buffer headers = BUFFER_INIT;
    struct site_answer answer;

    (void)state;
    mem_fail_after(0);
    site_answer(&files[0], &http, &headers, &answer);
    mem_fail_never();
    assert_true(headers.failed);
    buffer_done(&headers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_whole_paths_are_found),
        cmocka_unit_test(test_compressed_to_those_who_take_it),
        cmocka_unit_test(test_who_has_it_gets_no_body),
        cmocka_unit_test(test_pages_carry_a_policy_and_assets_are_kept),
        cmocka_unit_test(test_no_memory_shows_in_the_headers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
