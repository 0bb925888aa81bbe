/* api.c - the API: which requests may begin, and their first step.
 *
 * A request is parsed and checked at once (route.c, question.c); then the operation's first step
 * sends its first call. At most settings.max_requests exist at a time, of which one token subject
 * may have a quarter (question.c). None begins while Redis has been down for a second. */
#include "gateway/api/api.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "gateway/api/engine.h"
#include "gateway/api/route.h"
#include "gateway/http/accept.h"

enum { REFUSE_AFTER_MS = 1000 };

static const api_step_fn first_steps[API_ROUTE_COUNT] = {
#define ROUTE(name, method, path, scope, flags, begin) [API_ROUTE_##name] = begin,
#include "gateway/metrics/api_routes.def"
};

/* --- a request --- */

const char *api_allow(struct sl_slice path)
{
    return api_route_allow(path);
}

static int check_capacity(struct api *api, struct http_refusal *refusal)
{
    if (uv_now(api->settings.loop) >= api->refuse_at_ms)
        return api_refuse_for_now(refusal, "redis_away", "Redis does not answer now");
    if (api->requests.count < api->settings.max_requests)
        return 0;
    metric_add(api->settings.metrics, METRIC_API_BUSY, 1);
    return api_refuse_for_now(refusal, "busy", "this server has too many requests in progress");
}

static int refuse_early(struct api *api, const struct api_route *route,
                        const struct http_refusal *refusal)
{
    api_count_answer(api, route, refusal->status);
    return -EPROTO;
}

static int refuse_method(struct sl_slice path, struct http_refusal *refusal)
{
    const char *allow = api_route_allow(path);

    http_refuse(refusal, 405, "method_not_allowed", NULL, "this path takes %s", allow);
    refusal->allow = allow;
    return -EPROTO;
}

int api_check_head(struct api *api, const struct http_request *http, struct http_refusal *refusal,
                   enum token_fault *ret_fault)
{
    const struct api_route *route;
    struct sl_slice variable;
    int r;

    route = api_route_find(http->method, http->path, &variable);
    if (!route)
        r = refuse_method(http->path, refusal);
    else
        r = api_check_token(api, route, http, refusal, ret_fault);
    if (r == -ENOMEM)
        r = api_refuse_for_now(refusal, "no_memory", "out of memory");
    if (r == 0 && !(route->flags & API_TAKES_BODY))
        r = http_refuse(refusal, 400, "bad_request", NULL, "this operation must not have a body");
    return r < 0 ? refuse_early(api, route, refusal) : 0;
}

int api_begin(struct api *api, const struct http_request *http, api_answer_fn answered, void *owner,
              struct api_request **ret_request, struct http_refusal *refusal,
              enum token_fault *ret_fault)
{
    const struct api_route *route;
    struct api_request *request;
    struct sl_slice variable;
    int outcome;

    route = api_route_find(http->method, http->path, &variable);
    if (!route) {
        refuse_method(http->path, refusal);
        return refuse_early(api, NULL, refusal);
    }
    if (!accept_takes_json(&http->accept)) {
        http_refuse(refusal, 406, "not_acceptable", NULL, "answers are application/json");
        return refuse_early(api, route, refusal);
    }
    if (check_capacity(api, refusal) < 0)
        return refuse_early(api, route, refusal);
    request = api_request_new(api, route, answered, owner);
    if (!request) {
        api_refuse_for_now(refusal, "no_memory", "out of memory");
        return refuse_early(api, route, refusal);
    }
    request->begin = first_steps[api_route_name(route)];
    outcome = api_read_question(request, http, variable, ret_fault);
    if (outcome == 0)
        outcome = request->begin(request, NULL);
    if (outcome < 0) {
        *refusal = request->refusal;
        api_request_free(request);
        return refuse_early(api, route, refusal);
    }
    assert(outcome == API_WAITS);
    *ret_request = request;
    return 0;
}

/* --- creating and freeing --- */

struct api *api_new(const struct api_settings *settings)
{
    struct api *api = mem_zalloc(sizeof(*api));

    if (!api)
        return NULL;
    api->timer = mem_zalloc(sizeof(*api->timer));
    if (!api->timer) {
        mem_free(api);
        return NULL;
    }
    api->settings = *settings;
    api->reconsider = api_reconsider;
    deadline_list_init(&api->waiting, settings->timeout_ms);
    list_init(&api->requests);
    api->holder_key = hash_key_random();
    uv_timer_init(settings->loop, api->timer);
    api->timer->data = api;
    return api;
}

void api_redis_found(struct api *api, uint32_t shards)
{
    api->meta.shards = shards;
    api->refuse_at_ms = UINT64_MAX;
}

void api_redis_lost(struct api *api)
{
    api->refuse_at_ms = uv_now(api->settings.loop) + REFUSE_AFTER_MS;
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

void api_free(struct api *api)
{
    if (!api)
        return;
    assert(list_is_empty(&api->requests));
    uv_close((uv_handle_t *)api->timer, free_handle);
    mem_free(api);
}
