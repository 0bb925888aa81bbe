#include <errno.h>

#include "gateway/http/http_path.h"
#include "tests/support/cmocka_all.h"

static const struct {
    const char *path;
    bool is_plain;
} paths[] = {
    {"/", true},
    {"/a", true},
    {"/a/", true},
    {"/v1/users/@ada", true},
    {"/a.b/..c/d../...", true},
    {"/.a/a./.../..../.%2e.", true},
    {"/%2e%2e%2e/a", true},
    {"/caf\xc3\xa9/%C3%A9", true},
    {"/%40ada", true},
    {"/a%20b", true},
    {"/a%3Fb%25%23", true},
    {"/%252e/%252f", true},
    {"//", false},
    {"//a", false},
    {"/a//", false},
    {"/a//b", false},
    {"/.", false},
    {"/./", false},
    {"/./a", false},
    {"/a/.", false},
    {"/..", false},
    {"/../a", false},
    {"/a/..", false},
    {"/a/../b", false},
    {"/%2e", false},
    {"/%2E/a", false},
    {"/.%2e/a", false},
    {"/%2e./a", false},
    {"/a/%2e%2E", false},
    {"/a/%2e%2e/b", false},
    {"/%2f", false},
    {"/%2Fa", false},
    {"/a%2fb", false},
    {"/a%2f..%2fb", false},
    {"/a%0db", false},
    {"/a%0a", false},
    {"/%00", false},
    {"/a%1F", false},
    {"/%7f", false},
    /* malformed paths are compared unchanged; the head parser refuses them */
    {"/%", true},
    {"/%2", true},
    {"/%2g", true},
    {"/%%2e", true},
};

static void test_a_path_with_another_name_is_not_plain(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        if (http_path_is_plain(sl_slice_str(paths[i].path)) != paths[i].is_plain)
            fail_msg("'%s' should%s be plain", paths[i].path, paths[i].is_plain ? "" : " not");
    }
}

static void test_a_segment_is_decoded_once(void **state)
{
    static const struct {
        const char *segment, *decoded;
    } cases[] = {
        {"", ""},
        {"ada", "ada"},
        {"%40ada", "@ada"},
        {"%61d%61", "ada"},
        {"caf%c3%A9", "caf\xc3\xa9"},
        {"a+b%20c", "a+b c"},
        {"%2540", "%40"},
    };
    char room[8];
    struct sl_slice decoded;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(
            http_path_decode(sl_slice_str(cases[i].segment), room, sizeof(room), &decoded), 0);
        assert_true(sl_slice_is(decoded, cases[i].decoded));
    }
}

static void test_a_segment_that_cannot_be_decoded(void **state)
{
    static const char *const malformed[] = {"%", "a%", "a%4", "%4g", "%g4", "a%00b"};
    char room[4];
    struct sl_slice decoded;

    (void)state;
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++)
        assert_int_equal(http_path_decode(sl_slice_str(malformed[i]), room, sizeof(room), &decoded),
                         -EINVAL);
    assert_int_equal(http_path_decode(SL_SLICE("%61%62%63%64"), room, sizeof(room), &decoded), 0);
    assert_int_equal(http_path_decode(SL_SLICE("%61%62%63%64e"), room, sizeof(room), &decoded),
                     -ENOSPC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_path_with_another_name_is_not_plain),
        cmocka_unit_test(test_a_segment_is_decoded_once),
        cmocka_unit_test(test_a_segment_that_cannot_be_decoded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
