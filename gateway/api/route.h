/* gateway/api/route.h - inside the API: which operation is meant? */
#pragma once

#include "gateway/api/request.h"

enum api_route_name {
#define ROUTE(name, method, path, scope, flags, begin) API_ROUTE_##name,
#include "gateway/metrics/api_routes.def"
    API_ROUTE_COUNT
};

struct api_scope {
    enum token_scope scope;
    const char *insufficient; /* WWW-Authenticate when it is missing */
};

struct api_route {
    enum http_method method;
    const char *path;
    const struct api_scope *scope;
    unsigned flags;
};

/* The methods of `path`; NULL: none. */
const char *api_route_allow(struct sl_slice path);

/* NULL: this path does not take this method. *ret_variable is what stands in place of {user} or
 * {post}; absent: neither. */
const struct api_route *api_route_find(enum http_method method, struct sl_slice path,
                                       struct sl_slice *ret_variable);

/* "POST /v1/users" */
const char *api_route_label(const struct api_route *route);
enum api_route_name api_route_name(const struct api_route *route);
/* {user} or {post} stands in its path. */
bool api_route_names_user(const struct api_route *route);
bool api_route_names_revocation(const struct api_route *route);
bool api_route_names_post(const struct api_route *route);
