#include "gateway/front/origin.h"
#include "tests/support/cmocka_all.h"

static const char *const allowed[] = {"https://app.example", "http://localhost:3000"};
static const struct origin_policy strict = {.allowed = allowed, .allowed_count = 2};

static bool is_allowed(const struct origin_policy *policy, const char *origin, const char *host)
{
    return origin_is_allowed(policy, sl_slice_str(origin), sl_slice_str(host));
}

static void test_pages_on_the_list_are_allowed(void **state)
{
    (void)state;
    assert_true(is_allowed(&strict, "https://app.example", "sluice.example"));
    assert_true(is_allowed(&strict, "HTTPS://App.Example", "sluice.example"));
    assert_true(is_allowed(&strict, "http://localhost:3000", NULL));
}

static void test_other_pages_are_not(void **state)
{
    static const char *const others[] = {
        "",
        "null",
        "https://evil.example",
        "http://app.example",
        "https://app.example:8443",
        "https://app.example.evil.example",
        "https://evil.example/https://app.example",
        "https://app.exampl",
        "https://app.example ",
        "sluice.example",
        "ftp://sluice.example",
        "http://sluice.example:81",
        "http://",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (is_allowed(&strict, others[i], "sluice.example"))
            fail_msg("'%s' is allowed", others[i]);
    }
    assert_false(is_allowed(&strict, "http://", NULL));
    assert_false(is_allowed(&(struct origin_policy){0}, "https://app.example", NULL));
}

static void test_pages_of_the_server_itself_are_allowed(void **state)
{
    (void)state;
    assert_true(is_allowed(&strict, "http://sluice.example:8080", "sluice.example:8080"));
    assert_true(is_allowed(&strict, "https://sluice.example", "SLUICE.example"));
}

static void test_programs_need_no_permission(void **state)
{
    (void)state;
    assert_true(is_allowed(&strict, NULL, "sluice.example"));
}

static void test_development_mode_allows_every_page(void **state)
{
    const struct origin_policy open = {.any = true};

    (void)state;
    assert_true(is_allowed(&open, "null", "x"));
    assert_true(is_allowed(&open, "https://any.example", "x"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_on_the_list_are_allowed),
        cmocka_unit_test(test_other_pages_are_not),
        cmocka_unit_test(test_pages_of_the_server_itself_are_allowed),
        cmocka_unit_test(test_programs_need_no_permission),
        cmocka_unit_test(test_development_mode_allows_every_page),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
