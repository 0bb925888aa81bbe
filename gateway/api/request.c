/* request.c - the lifetime of a request: it begins, waits for its calls, and is answered or
 * abandoned.
 *
 * All requests have the same time limit; one timer serves them all. A request that was abandoned or
 * answered exists until Redis has answered its last call. api.c limits how many exist at once. */
#include "gateway/api/engine.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/api/route.h"

/* --- the answer --- */

void api_count_answer(struct api *api, const struct api_route *route, int status)
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
    deadline_list_remove(&request->api->waiting, &request->deadline);
    metric_set(request->api->settings.metrics, METRIC_API_IN_FLIGHT,
               deadline_list_count(&request->api->waiting));
    arm_timer(request->api);
}

static void give_answer(struct api_request *request, const struct api_answer *answer)
{
    api_answer_fn answered = request->answered;
    struct api_answer whole = *answer;

    if (!answered)
        return;
    whole.act = &request->act;
    api_count_answer(request->api, request->route,
                     answer->refusal ? answer->refusal->status : answer->status);
    observe_time(request);
    detach(request);
    answered(request->owner, &whole);
}

void api_request_free(struct api_request *request)
{
    if (request->answered)
        detach(request);
    list_remove(&request->api->requests, &request->node);
    json_decref(request->body);
    mem_free(request->ids);
    if (request->free_state)
        request->free_state(request->state);
    else
        mem_free(request->state);
    api_list_done(&request->list);
    if (request->included)
        request->free_included(request->included);
    sl_archive_page_done(&request->archived);
    api_cache_done(request);
    sl_call_done(&request->call);
    sl_shard_calls_done(&request->calls);
    buffer_done(&request->headers);
    buffer_done(&request->json);
    mem_free(request);
}

bool api_request_reap(struct api_request *request)
{
    if (request->answered)
        return false;
    api_request_free(request);
    return true;
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

    if (outcome == -EPROTO && request->api->reconsider)
        outcome = request->api->reconsider(request);
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

/* --- timeouts --- */

static void on_timer(uv_timer_t *timer)
{
    struct api *api = timer->data;
    struct http_refusal refusal;
    struct deadline *due;

    api_refuse_for_now(&refusal, "timeout", "it took too long; it is unknown whether it was done");
    while ((due = deadline_list_take_due(&api->waiting, uv_now(api->settings.loop))) != NULL)
        give_answer(DEADLINE_OWNER(due, struct api_request, deadline),
                    &(struct api_answer){.refusal = &refusal});
}

static void arm_timer(struct api *api)
{
    uint64_t due_ms = deadline_list_next_due_ms(&api->waiting);
    uint64_t now_ms = uv_now(api->settings.loop);

    if (due_ms == UINT64_MAX)
        uv_timer_stop(api->timer);
    else
        uv_timer_start(api->timer, on_timer, due_ms > now_ms ? due_ms - now_ms : 0, 0);
}

/* --- creating and freeing --- */

struct api_request *api_request_new(struct api *api, const struct api_route *route,
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
    deadline_list_add(&api->waiting, &request->deadline, uv_now(api->settings.loop));
    list_append(&api->requests, &request->node);
    metric_set(api->settings.metrics, METRIC_API_IN_FLIGHT, deadline_list_count(&api->waiting));
    if (deadline_list_count(&api->waiting) == 1)
        arm_timer(api);
    return request;
}

void api_abandon(struct api_request *request)
{
    detach(request);
}
