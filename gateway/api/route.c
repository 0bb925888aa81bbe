/* route.c - the table of operations, searched in order.
 *
 * A path is compared with each pattern; there are a few dozen, most of which differ early. */
#include "gateway/api/route.h"

#include <string.h>

#define INSUFFICIENT(scope) "Bearer error=\"insufficient_scope\", scope=\"" scope "\""

static const struct api_scope scope_READ = {TOKEN_SCOPE_READ, INSUFFICIENT("read")};
static const struct api_scope scope_WRITE = {TOKEN_SCOPE_WRITE, INSUFFICIENT("write")};
static const struct api_scope scope_ADMIN = {TOKEN_SCOPE_ADMIN, INSUFFICIENT("admin")};

static const struct api_route routes[API_ROUTE_COUNT] = {
#define ROUTE(name, method, path, scope, flags, begin)                                             \
    [API_ROUTE_##name] = {HTTP_##method, path, &scope_##scope, flags},
#include "gateway/metrics/api_routes.def"
};

/* Compares character by character, so that most patterns fail at the first difference. A variable
 * matches any segment that is not empty. */
static bool path_matches(const char *pattern, struct sl_slice path, struct sl_slice *ret_variable)
{
    const char *at = path.data, *end = path.data + path.size, *segment;

    *ret_variable = SL_SLICE_NONE;
    while (*pattern) {
        if (*pattern == '{') {
            for (segment = at; at < end && *at != '/';)
                at++;
            if (at == segment)
                return false;
            *ret_variable = sl_slice(segment, (size_t)(at - segment));
            pattern = strchr(pattern, '}') + 1;
        } else if (at < end && *at == *pattern) {
            at++;
            pattern++;
        } else {
            return false;
        }
    }
    return at == end;
}

/* HEAD is GET without the body. */
const char *api_route_allow(struct sl_slice path)
{
    enum { TAKES_GET = 1, TAKES_POST = 2, TAKES_PUT = 4, TAKES_DELETE = 8, TAKES_PATCH = 16 };
    static const char *const lists[32] = {
        [TAKES_GET] = "GET, HEAD, OPTIONS",
        [TAKES_POST] = "POST, OPTIONS",
        [TAKES_GET | TAKES_POST] = "GET, HEAD, POST, OPTIONS",
        [TAKES_DELETE] = "DELETE, OPTIONS",
        [TAKES_PUT | TAKES_DELETE] = "PUT, DELETE, OPTIONS",
        [TAKES_GET | TAKES_PUT] = "GET, HEAD, PUT, OPTIONS",
        [TAKES_GET | TAKES_PATCH] = "GET, HEAD, PATCH, OPTIONS",
        [TAKES_GET | TAKES_DELETE] = "GET, HEAD, DELETE, OPTIONS",
    };
    unsigned methods = 0;

    for (size_t i = 0; i < API_ROUTE_COUNT; i++) {
        enum http_method method = routes[i].method;
        struct sl_slice variable;

        if (path_matches(routes[i].path, path, &variable))
            methods |= method == HTTP_GET     ? TAKES_GET
                       : method == HTTP_POST  ? TAKES_POST
                       : method == HTTP_PUT   ? TAKES_PUT
                       : method == HTTP_PATCH ? TAKES_PATCH
                                              : TAKES_DELETE;
    }
    return lists[methods];
}

const struct api_route *api_route_find(enum http_method method, struct sl_slice path,
                                       struct sl_slice *ret_variable)
{
    if (method == HTTP_HEAD)
        method = HTTP_GET;
    for (size_t i = 0; i < API_ROUTE_COUNT; i++) {
        if (routes[i].method == method && path_matches(routes[i].path, path, ret_variable))
            return &routes[i];
    }
    return NULL;
}

const char *api_route_label(const struct api_route *route)
{
    static const char *const labels[API_ROUTE_COUNT] = {
#define ROUTE(name, method, path, scope, flags, begin) [API_ROUTE_##name] = #method " " path,
#include "gateway/metrics/api_routes.def"
    };

    return labels[route - routes];
}

enum api_route_name api_route_name(const struct api_route *route)
{
    return (enum api_route_name)(route - routes);
}

bool api_route_names_user(const struct api_route *route)
{
    return strstr(route->path, "{user}") != NULL;
}

bool api_route_names_revocation(const struct api_route *route)
{
    return strstr(route->path, "{revocation}") != NULL;
}

bool api_route_names_post(const struct api_route *route)
{
    return strstr(route->path, "{post}") != NULL;
}
