/* gateway/api/route.h - internal to the API: finds the operation of a request. */
#pragma once

#include "gateway/api/request.h"

enum api_route_name {
#define ROUTE(name, method, path, scope, flags, begin) API_ROUTE_##name,
#include "gateway/metrics/api_routes.def"
    API_ROUTE_COUNT
};

struct api_scope {
    enum token_scope scope;
    const char *insufficient; /* WWW-Authenticate if the scope is missing */
};

struct api_route {
    enum http_method method;
    const char *path;
    const struct api_scope *scope;
    unsigned flags;
};

/* The methods of `path`; NULL: an unknown path. */
const char *api_route_allow(struct sl_slice path);

/* NULL: this path does not have this method. *ret_variable is the segment for {user} or {post};
 * absent: the path has none. */
const struct api_route *api_route_find(enum http_method method, struct sl_slice path,
                                       struct sl_slice *ret_variable);

/* Such as "POST /v1/users". */
const char *api_route_label(const struct api_route *route);
enum api_route_name api_route_name(const struct api_route *route);
/* Whether the path contains {user} or {post}. */
bool api_route_names_user(const struct api_route *route);
bool api_route_names_revocation(const struct api_route *route);
bool api_route_names_post(const struct api_route *route);
