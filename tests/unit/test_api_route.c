#include "gateway/api/route.h"
#include "tests/support/cmocka_all.h"

static enum api_route_name find(enum http_method method, const char *path, const char *variable)
{
    struct sl_slice found;
    const struct api_route *route = api_route_find(method, sl_slice_str(path), &found);

    if (!route)
        return API_ROUTE_COUNT;
    if (variable)
        assert_true(sl_slice_is(found, variable));
    else
        assert_null(found.data);
    return api_route_name(route);
}

static void test_operations_are_found_by_method_and_path(void **state)
{
    (void)state;
    assert_int_equal(find(HTTP_POST, "/v1/users", NULL), API_ROUTE_CREATE_USER);
    assert_int_equal(find(HTTP_GET, "/v1/users/ada", "ada"), API_ROUTE_READ_USER);
    assert_int_equal(find(HTTP_HEAD, "/v1/users/me", "me"), API_ROUTE_READ_USER);
    assert_int_equal(find(HTTP_GET, "/v1/posts/1/likes", "1"), API_ROUTE_LIST_LIKES);
    assert_int_equal(find(HTTP_PUT, "/v1/posts/1/like", "1"), API_ROUTE_LIKE);
    assert_int_equal(find(HTTP_DELETE, "/v1/posts/1/like", "1"), API_ROUTE_UNLIKE);
}

static void test_one_path_may_be_two_patterns(void **state)
{
    (void)state;
    assert_int_equal(find(HTTP_GET, "/v1/users/me/following", "me"), API_ROUTE_LIST_FOLLOWING);
    assert_int_equal(find(HTTP_POST, "/v1/users/me/following", NULL), API_ROUTE_FOLLOW_MANY);
    assert_int_equal(find(HTTP_POST, "/v1/users/ada/following", NULL), API_ROUTE_COUNT);
    assert_string_equal(api_route_allow(SL_SLICE("/v1/users/me/following")),
                        "GET, HEAD, POST, OPTIONS");
    assert_string_equal(api_route_allow(SL_SLICE("/v1/users/ada/following")), "GET, HEAD, OPTIONS");
}

static void test_paths_that_are_none(void **state)
{
    static const char *const paths[] = {"",
                                        "/",
                                        "/v1",
                                        "/v1/",
                                        "/v1/user",
                                        "/v1/users/",
                                        "/v1/users//posts",
                                        "/v1/users/ada/",
                                        "/v1/users/ada/post",
                                        "/v1/users/ada/posts/1",
                                        "/v1/users/ada/muted/bob",
                                        "/V1/users",
                                        "v1/users",
                                        "//v1/users",
                                        "/v1/posts/1/like/2"};

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        assert_null(api_route_allow(sl_slice_str(paths[i])));
        assert_int_equal(find(HTTP_GET, paths[i], NULL), API_ROUTE_COUNT);
    }
}

/* Every path allows the methods that it lists, and no others. */
static void test_every_operation_is_allowed_where_it_is(void **state)
{
    static const struct {
        enum http_method method;
        const char *path, *name;
    } rows[] = {
#define ROUTE(name, method, path, scope, flags, begin) {HTTP_##method, path, #method},
#include "gateway/metrics/api_routes.def"
    };

    (void)state;
    for (size_t i = 0; i < API_ROUTE_COUNT; i++) {
        struct sl_slice variable;
        const struct api_route *route =
            api_route_find(rows[i].method, sl_slice_str(rows[i].path), &variable);

        assert_int_equal(api_route_name(route), i);
        assert_non_null(strstr(api_route_allow(sl_slice_str(rows[i].path)), rows[i].name));
        assert_int_equal(api_route_names_user(route) + api_route_names_post(route) +
                             api_route_names_revocation(route),
                         variable.data ? 1 : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operations_are_found_by_method_and_path),
        cmocka_unit_test(test_one_path_may_be_two_patterns),
        cmocka_unit_test(test_paths_that_are_none),
        cmocka_unit_test(test_every_operation_is_allowed_where_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
