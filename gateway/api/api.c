/* api.c - the API as a whole: which requests are under way, until when, and how each one ends.
 *
 * Every request has the same time limit, so a list in order of arrival is one in order of deadline,
 * and one timer will do. A request whose owner is gone or has been answered lives on until Redis
 * has answered its last call. */
#include "gateway/api/api.h"

#include <assert.h>
#include <errno.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/api/engine.h"
#include "gateway/api/route.h"
#include "gateway/http/accept.h"

enum { PATIENCE_MS = 1000 };

/* --- the answer --- */

static void count_answer(struct api *api, const struct api_route *route, int status)
{
    unsigned row = route ? (unsigned)api_route_name(route) + 1 : 0;
    unsigned class = status < 400 ? 0 : status < 500 ? 1 : 2;

    metric_add(api->settings.metrics, metric_at(METRIC_API_UNKNOWN_2xx, row * 3 + class), 1);
}

static void observe_time(const struct api_request *request)
{
    metric_observe(request->api->settings.metrics, METRIC_HISTOGRAM_API_TIME,
                   (uv_hrtime() - request->began_ns) / 1000, 1);
}

static void arm_timer(struct api *api);

/* Nobody waits for it from now on. */
static void detach(struct api_request *request)
{
    request->answered = NULL;
    list_remove(&request->api->waiting, &request->node);
    metric_set(request->api->settings.metrics, METRIC_API_IN_FLIGHT, request->api->waiting.count);
    arm_timer(request->api);
}

static void give_answer(struct api_request *request, const struct api_answer *answer)
{
    api_answer_fn answered = request->answered;

    if (!answered)
        return;
    count_answer(request->api, request->route,
                 answer->refusal ? answer->refusal->status : answer->status);
    observe_time(request);
    detach(request);
    answered(request->owner, answer);
}

void api_request_free(struct api_request *request)
{
    if (request->answered)
        detach(request);
    request->api->count--;
    json_decref(request->body);
    if (request->free_state)
        request->free_state(request->state);
    else
        mem_free(request->state);
    api_list_done(&request->list);
    sl_archive_page_done(&request->archived);
    api_cached_done(request);
    sl_call_done(&request->call);
    sl_shard_calls_done(&request->calls);
    buffer_done(&request->headers);
    buffer_done(&request->json);
    mem_free(request);
}

int api_answer(struct api_request *request, int status)
{
    request->status = status;
    buffer_append_char(&request->json, '\n');
    if (!request->headers.failed && !request->json.failed)
        return API_ANSWERED;
    return api_fail_for_memory(request);
}

void api_settle(struct api_request *request, int outcome)
{
    struct api_answer answer = {0};

    if (outcome == -EPROTO && api_doubts_subject(request))
        outcome = api_check_subject(request);
    if (outcome == API_WAITS)
        return;
    if (outcome == API_ANSWERED) {
        answer.status = request->status;
        answer.headers = buffer_slice(&request->headers);
        answer.body = request->status == 204 ? SL_SLICE_NONE : buffer_slice(&request->json);
    } else {
        answer.refusal = &request->refusal;
    }
    give_answer(request, &answer);
    api_request_free(request);
}

/* --- time --- */

static struct api_request *first_waiting(const struct api *api)
{
    struct list_node *node = list_first(&api->waiting);

    return node ? LIST_OWNER(node, struct api_request, node) : NULL;
}

static void on_timer(uv_timer_t *timer)
{
    struct api *api = timer->data;
    struct http_refusal refusal;
    struct api_request *first;

    api_refuse_for_now(&refusal, "timeout", "it took too long; whether it was done is not known");
    while ((first = first_waiting(api)) && first->deadline_ms <= uv_now(api->settings.loop))
        give_answer(first, &(struct api_answer){.refusal = &refusal});
}

static void arm_timer(struct api *api)
{
    struct api_request *first = first_waiting(api);
    uint64_t now = uv_now(api->settings.loop);

    if (!first)
        uv_timer_stop(api->timer);
    else
        uv_timer_start(api->timer, on_timer,
                       first->deadline_ms > now ? first->deadline_ms - now : 0, 0);
}

/* --- one request --- */

const char *api_allow(struct sl_slice path)
{
    return api_route_allow(path);
}

static int check_capacity(struct api *api, struct http_refusal *refusal)
{
    if (uv_now(api->settings.loop) >= api->refuse_at_ms)
        return api_refuse_for_now(refusal, "redis_away", "Redis does not answer now");
    if (api->count < api->settings.max_requests)
        return 0;
    metric_add(api->settings.metrics, METRIC_API_BUSY, 1);
    return api_refuse_for_now(refusal, "busy",
                              "this server has as many requests under way as it may");
}

static struct api_request *request_new(struct api *api, const struct api_route *route,
                                       api_answer_fn answered, void *owner)
{
    struct api_request *request = mem_zalloc(sizeof(*request));

    if (!request)
        return NULL;
    request->api = api;
    request->route = route;
    request->answered = answered;
    request->owner = owner;
    request->began_ns = uv_hrtime();
    request->began_wall_ms = clock_wall_ms();
    request->deadline_ms = uv_now(api->settings.loop) + api->settings.timeout_ms;
    list_append(&api->waiting, &request->node);
    api->count++;
    metric_set(api->settings.metrics, METRIC_API_IN_FLIGHT, api->waiting.count);
    if (api->waiting.count == 1)
        arm_timer(api);
    return request;
}

static int refuse_early(struct api *api, const struct api_route *route,
                        const struct http_refusal *refusal)
{
    count_answer(api, route, refusal->status);
    return -EPROTO;
}

static int refuse_method(struct sl_slice path, struct http_refusal *refusal)
{
    const char *allow = api_route_allow(path);

    http_refuse(refusal, 405, "method_not_allowed", NULL, "this path takes %s", allow);
    refusal->allow = allow;
    return -EPROTO;
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
    request = request_new(api, route, answered, owner);
    if (!request) {
        api_refuse_for_now(refusal, "no_memory", "out of memory");
        return refuse_early(api, route, refusal);
    }
    outcome = api_read_question(request, http, variable, ret_fault);
    if (outcome == 0)
        outcome = route->begin(request, NULL);
    if (outcome < 0) {
        *refusal = request->refusal;
        api_request_free(request);
        return refuse_early(api, route, refusal);
    }
    assert(outcome == API_WAITS);
    *ret_request = request;
    return 0;
}

void api_abandon(struct api_request *request)
{
    detach(request);
}

/* --- life --- */

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
    list_init(&api->waiting);
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
    api->refuse_at_ms = uv_now(api->settings.loop) + PATIENCE_MS;
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

void api_free(struct api *api)
{
    if (!api)
        return;
    assert(api->count == 0);
    uv_close((uv_handle_t *)api->timer, free_handle);
    mem_free(api);
}
