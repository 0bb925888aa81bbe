/* api.c - what all operations share: who may, what is well formed, steps, time, the answer.
 *
 * Every request has the same time limit, so a list in order of arrival is one in order of deadline,
 * and one timer will do. A request whose owner is gone or has been answered lives on until Redis
 * has answered its last call. */
#include "gateway/api/api.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"
#include "gateway/api/body.h"
#include "gateway/api/route.h"
#include "gateway/front/accept.h"
#include "gateway/front/bearer.h"
#include "gateway/front/form.h"
#include "src/id.h"

enum { RETRY_AFTER_S = 2, PAGE_DEFAULT = 20, PAGE_MAX = 200, KEY_MAX = 100, PATIENCE_MS = 1000 };

struct api {
    struct api_settings settings;
    struct sl_meta meta;   /* the shards, known once Redis was there */
    uint64_t refuse_at_ms; /* clock of the loop: Redis has been away for too long then */
    struct list waiting;   /* requests whose owner waits, by deadline */
    size_t count;          /* of all requests that live */
    uv_timer_t *timer;
    struct log_rate failed_rate;
};

/* --- refusing --- */

static const struct {
    int error; /* of src */
    int status;
    const char *code;
    unsigned retry_after_s;
} errors[] = {
    {-EINVAL, 400, "bad_request", 0},
    {-EPERM, 403, "not_yours", 0},
    {-ENOENT, 404, "not_found", 0},
    {-EEXIST, 409, "login_taken", 0},
    {-EDQUOT, 409, "too_many_followed", 0},
    {-EALREADY, 422, "idempotency_key_reused", 0},
    {-ENOMEM, 503, "no_memory", RETRY_AFTER_S},
    {-EPIPE, 503, "redis_away", RETRY_AFTER_S},
    {-EAGAIN, 503, "redis_away", RETRY_AFTER_S},
    {-ENODATA, 503, "redis_away", RETRY_AFTER_S},
    {-ESTALE, 503, "redis_away", RETRY_AFTER_S},
    {-EACCES, 503, "redis_away", RETRY_AFTER_S},
    {-EROFS, 503, "redis_away", RETRY_AFTER_S},
    {-ENOSPC, 503, "redis_full", RETRY_AFTER_S},
    {-EBADMSG, 500, "internal", 0},
};

/* What our own side did not get right is for the log; clients read what they can do about it. */
static const char *message_of(const char *code, const char *why)
{
    static const char *const texts[][2] = {
        {"internal", "something that should not be is in the database"},
        {"no_memory", "out of memory"},
        {"redis_away", "Redis does not answer now; whether it was done is not known"},
        {"redis_full", "Redis has no room"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(texts[i][0], code) == 0)
            return texts[i][1];
    }
    return why;
}

/* -EIO and what else Redis may say are the last row's. */
static size_t find_error(int r)
{
    size_t i = 0;

    while (i + 1 < sizeof(errors) / sizeof(errors[0]) && errors[i].error != r)
        i++;
    return i;
}

void api_error_json(struct buffer *json, int r, const struct failure *failure)
{
    const char *code = errors[find_error(r)].code;

    buffer_append_str(json, "{\"code\":");
    buffer_append_json_string(json, sl_slice_str(code));
    buffer_append_str(json, ",\"message\":");
    buffer_append_json_string(json, sl_slice_str(message_of(code, failure->text)));
    buffer_append_char(json, '}');
}

int api_fail(struct api_request *request, int r, const struct failure *failure)
{
    struct api *api = request->api;
    size_t row = find_error(r);
    char room[LOG_QUOTE_SIZE];
    uint64_t held_back;

    http_refuse(&request->refusal, errors[row].status, errors[row].code, NULL, "%s",
                message_of(errors[row].code, failure->text));
    request->refusal.retry_after_s = errors[row].retry_after_s;
    if (errors[row].status >= 500 &&
        log_rate_allows(&api->failed_rate, uv_now(api->settings.loop), &held_back))
        log_warn("api_failed", "route=\"%s\" why=%s held_back=%" PRIu64, request->route->path,
                 log_quote(sl_slice_str(failure->text), room), held_back);
    return -EPROTO;
}

int api_fail_member(struct api_request *request, int r, const struct failure *failure,
                    const char *member)
{
    r = api_fail(request, r, failure);
    snprintf(request->refusal.param, sizeof(request->refusal.param), "%s", member);
    return r;
}

static int fail_for_memory(struct api_request *request)
{
    return api_fail(request, -ENOMEM, &(struct failure){"out of memory"});
}

int api_refuse(struct api_request *request, int status, const char *code, const char *param,
               const char *format, ...)
{
    char message[HTTP_MESSAGE_SIZE];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return http_refuse(&request->refusal, status, code, param, "%s", message);
}

static int refuse_for_now(struct http_refusal *refusal, const char *code, const char *message)
{
    http_refuse(refusal, 503, code, NULL, "%s", message);
    refusal->retry_after_s = RETRY_AFTER_S;
    return -EPROTO;
}

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

static void request_free(struct api_request *request)
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
    return fail_for_memory(request);
}

/* What a step came to. */
static void settle(struct api_request *request, int outcome)
{
    struct api_answer answer = {0};

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
    request_free(request);
}

/* --- steps --- */

static void on_reply(void *owner, const redisReply *reply, const char *why)
{
    struct api_request *request = owner;
    struct failure failure;

    if (!request->answered)
        request_free(request);
    else if (reply)
        settle(request, request->next(request, reply));
    else
        settle(request, api_fail(request, failure_set(&failure, -EPIPE, "%s", why), &failure));
}

struct sl_meta api_meta(const struct api_request *request)
{
    return request->api->meta;
}

int api_send(struct api_request *request, int r, const struct failure *failure, api_step_fn next)
{
    if (r < 0)
        return api_fail(request, r, failure);
    request->next = next;
    if (redis_commands_run_take(request->api->settings.commands, &request->call, on_reply,
                                request) < 0)
        return fail_for_memory(request);
    return API_WAITS;
}

int api_send_only(struct api_request *request, int r, const struct failure *failure,
                  api_step_fn next)
{
    if (r == 0) {
        assert(request->calls.count == 1);
        sl_call_done(&request->call);
        request->call = request->calls.calls[0];
        request->calls.calls[0] = SL_CALL_INIT;
    }
    return api_send(request, r, failure, next);
}

/* --- several calls at once --- */

struct part {
    struct api_request *request;
    size_t number;
};

/* All are back. `request->refusal` holds the first refusal. */
static void finish_parts(struct api_request *request)
{
    if (!request->answered)
        request_free(request);
    else if (request->refusal.status)
        settle(request, -EPROTO);
    else
        settle(request, request->next(request, NULL));
}

static void on_part(void *owner, const redisReply *reply, const char *why)
{
    struct part *part = owner;
    struct api_request *request = part->request;
    struct failure failure;

    if (request->answered && !request->refusal.status) {
        if (reply)
            request->part(request, part->number, reply);
        else
            api_fail(request, failure_set(&failure, -EPIPE, "%s", why), &failure);
    }
    mem_free(part);
    if (--request->parts_left == 0)
        finish_parts(request);
}

static int send_part(struct api_request *request, struct sl_call *call, size_t number)
{
    struct part *part = mem_alloc(sizeof(*part));

    if (!part)
        return -ENOMEM;
    *part = (struct part){request, number};
    if (redis_commands_run_take(request->api->settings.commands, call, on_part, part) < 0) {
        mem_free(part);
        return -ENOMEM;
    }
    request->parts_left++;
    return 0;
}

int api_send_many(struct api_request *request, struct sl_call *calls, size_t count,
                  api_part_fn part, api_step_fn next)
{
    int r = 0;

    request->part = part;
    request->next = next;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = send_part(request, &calls[i], i);
    if (r < 0)
        r = fail_for_memory(request); /* what was sent is waited for */
    if (request->parts_left > 0)
        return API_WAITS;
    return r < 0 ? r : next(request, NULL);
}

int api_send_all(struct api_request *request, int r, const struct failure *failure,
                 api_part_fn part, api_step_fn next)
{
    if (r < 0)
        return api_fail(request, r, failure);
    return api_send_many(request, request->calls.calls, request->calls.count, part, next);
}

/* --- the archive --- */

bool api_has_archive(const struct api_request *request)
{
    return request->api->settings.archive;
}

static void on_archived(void *owner, int r, struct sl_archive_page *page,
                        const struct failure *failure)
{
    struct api_request *request = owner;

    if (!request->answered) {
        request_free(request);
    } else if (r < 0) {
        settle(request, api_fail(request,
                                 r == -ENOMEM      ? r
                                 : r == -ECANCELED ? -EAGAIN
                                                   : -EIO,
                                 failure));
    } else {
        sl_archive_page_done(&request->archived);
        request->archived = *page;
        *page = SL_ARCHIVE_PAGE_INIT;
        settle(request, request->next(request, NULL));
    }
}

int api_find_archived(struct api_request *request, const uint64_t *posts, size_t count,
                      api_step_fn next)
{
    request->next = next;
    if (archive_reader_find(request->api->settings.archive, posts, count, on_archived, request) < 0)
        return fail_for_memory(request);
    return API_WAITS;
}

int api_list_archived(struct api_request *request, uint64_t user, uint64_t before, size_t limit,
                      api_step_fn next)
{
    request->next = next;
    if (archive_reader_list(request->api->settings.archive, user, before, limit, on_archived,
                            request) < 0)
        return fail_for_memory(request);
    return API_WAITS;
}

void api_say_replayed(struct api_request *request)
{
    buffer_append_str(&request->headers, "Idempotency-Replayed: true\r\n");
}

int api_take_written(struct api_request *request, const redisReply *reply)
{
    struct sl_written written;
    struct failure failure;
    int r;

    r = sl_write_reply(reply, &written, &failure);
    if (r < 0)
        return api_fail(request, r, &failure);
    request->id = written.id;
    if (written.is_repeated)
        api_say_replayed(request);
    return 0;
}

int api_answer_written(struct api_request *request, const redisReply *reply)
{
    int r = api_take_written(request, reply);

    return r < 0 ? r : api_answer(request, 204);
}

/* --- what is asked --- */

int api_read_user(const struct sl_meta *meta, struct sl_slice text, struct sl_user_ref *ret_user,
                  struct http_refusal *refusal)
{
    char room[SL_LOGIN_SIZE];
    struct sl_slice folded;
    uint64_t id;

    if (sl_id_parse(text, &id) == 0) {
        *ret_user = sl_user_by_id(id);
        if (sl_id_shard(id) < meta->shards)
            return 0;
    } else if (text.size > 0 && utf8_is_valid(text)) {
        *ret_user = sl_user_by_login(text.data[0] == '@' ? sl_slice_from(text, 1) : text);
        if (sl_login_fold(ret_user->login, room, &folded, NULL) == 0)
            return 0;
    }
    return http_refuse(refusal, 404, "not_found", NULL, "there is no such user");
}

static int read_me(struct api_request *request)
{
    if (request->subject == SL_READER_NOBODY)
        return api_refuse(request, 403, "no_subject", NULL,
                          "the token's sub is no user of this database: who is me?");
    request->user = sl_user_by_id(request->subject);
    return 0;
}

/* {user} and {post} of the path. */
static int read_variable(struct api_request *request, struct sl_slice text)
{
    const struct sl_meta *meta = &request->api->meta;
    int r;

    if (!text.data)
        return 0;
    if (api_route_names_post(request->route)) {
        if (sl_id_parse(text, &request->post) < 0 || sl_id_shard(request->post) >= meta->shards)
            return api_refuse(request, 404, "not_found", NULL, "there is no such post");
        return 0;
    }
    if (sl_slice_is(text, "me"))
        return read_me(request);
    r = api_read_user(meta, text, &request->user, &request->refusal);
    if (r == 0 && request->user.login.data) { /* the path is gone soon */
        memcpy(request->login, request->user.login.data, request->user.login.size);
        request->user.login.data = request->login;
    }
    return r;
}

static int read_page(struct api_request *request, struct sl_slice before, struct sl_slice after,
                     struct sl_slice limit)
{
    uint64_t number;

    request->page = (struct sl_page){.limit = PAGE_DEFAULT};
    if (before.data && sl_id_parse(before, &request->page.before) < 0)
        return api_refuse(request, 400, "bad_before", "before", "not an id");
    if (after.data && sl_id_parse(after, &request->after) < 0)
        return api_refuse(request, 400, "bad_after", "after", "not an id");
    if (limit.data) {
        if (sl_id_parse(limit, &number) < 0 || number > PAGE_MAX)
            return api_refuse(request, 400, "bad_limit", "limit", "not a number from 1 to %d",
                              PAGE_MAX);
        request->page.limit = number;
    }
    return 0;
}

/* A request id is the writer's and the key, so that nobody meets another's. */
static int read_idempotency_key(struct api_request *request, const struct http_request *http)
{
    struct sl_slice key = http_trim(http->idempotency_key);
    char *room = request->request_id_room;
    int length;

    if (http->method != HTTP_POST || !http->idempotency_key.data)
        return 0;
    if (key.size == 0 || key.size > KEY_MAX)
        return api_refuse(request, 400, "bad_idempotency_key", "Idempotency-Key",
                          "the key has 1 to %d characters", KEY_MAX);
    for (size_t i = 0; i < key.size; i++) {
        if (key.data[i] <= ' ' || key.data[i] > '~')
            return api_refuse(request, 400, "bad_idempotency_key", "Idempotency-Key",
                              "the key holds something else than printable ASCII");
    }
    /* Tokens without a user are administrators': they share one space of keys. */
    length = snprintf(room, API_REQUEST_ID_SIZE, "%" PRIu64 ":%.*s", request->subject,
                      SL_SLICE_ARG(key));
    request->request_id = sl_slice(room, (size_t)length);
    return 0;
}

/* SL_READER_NOBODY: the token's subject is no user of this database. */
static uint64_t subject_of(const struct api *api, const struct token *token)
{
    uint64_t id;

    if (sl_id_parse(sl_slice_str(token->subject), &id) < 0 || sl_id_shard(id) >= api->meta.shards)
        return SL_READER_NOBODY;
    return id;
}

static int check_scope(struct api_request *request, const struct token *token)
{
    const struct api_route *route = request->route;
    int r;

    if (!(token->scopes & route->scope->scope)) {
        r = api_refuse(request, 403, "insufficient_scope", NULL,
                       "the token's scope does not cover this operation");
        request->refusal.www_authenticate = route->scope->insufficient;
        return r;
    }
    request->subject = subject_of(request->api, token);
    if ((route->flags & API_NEEDS_SUBJECT) && request->subject == SL_READER_NOBODY)
        return api_refuse(request, 403, "no_subject", NULL,
                          "the token's sub is no user of this database");
    return 0;
}

static int read_body(struct api_request *request, const struct http_request *http)
{
    if (request->route->flags & API_TAKES_BODY)
        return api_body_read(http, &request->body, &request->refusal);
    if (http->body.size > 0)
        return api_refuse(request, 400, "bad_request", NULL, "this operation takes no body");
    return 0;
}

/* In this order an operation takes more and more of them. */
enum parameter {
    PARAMETER_ACCESS_TOKEN,
    PARAMETER_BEFORE,
    PARAMETER_LIMIT,
    PARAMETER_AFTER,
    PARAMETER_COUNT
};

static const char *const parameter_names[PARAMETER_COUNT] = {"access_token", "before", "limit",
                                                             "after"};

/* The token first: whoever has none learns nothing about the rest. */
static int understand(struct api_request *request, const struct http_request *http,
                      struct sl_slice variable, struct form *form, enum token_fault *ret_fault)
{
    struct http_refusal form_refusal;
    struct token token;
    int form_r, r;

    form_r = form_read(form, &http->query, 1, &form_refusal);
    if (form_r == -ENOMEM)
        return form_r;
    r = bearer_check(request->api->settings.front->policy, http,
                     form->values[PARAMETER_ACCESS_TOKEN], clock_wall_ms(), &token,
                     &request->refusal, ret_fault);
    if (r == 0)
        r = check_scope(request, &token);
    if (r == 0 && form_r < 0) {
        request->refusal = form_refusal;
        return form_r;
    }
    if (r == 0)
        r = read_variable(request, variable);
    if (r == 0)
        r = read_page(request, form->values[PARAMETER_BEFORE], form->values[PARAMETER_AFTER],
                      form->values[PARAMETER_LIMIT]);
    if (r == 0)
        r = read_idempotency_key(request, http);
    return r == 0 ? read_body(request, http) : r;
}

static int read_request(struct api_request *request, const struct http_request *http,
                        struct sl_slice variable, enum token_fault *ret_fault)
{
    struct sl_slice values[PARAMETER_COUNT];
    unsigned known = request->route->flags & API_TAKES_AFTER  ? PARAMETER_COUNT
                     : request->route->flags & API_TAKES_PAGE ? PARAMETER_AFTER
                                                              : PARAMETER_BEFORE;
    struct form form = {parameter_names, known, values, NULL};
    int r;

    for (size_t i = 0; i < PARAMETER_COUNT; i++)
        values[i] = SL_SLICE_NONE;
    r = understand(request, http, variable, &form, ret_fault);
    form_done(&form);
    return r == -ENOMEM ? fail_for_memory(request) : r;
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

    refuse_for_now(&refusal, "timeout", "it took too long; whether it was done is not known");
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
        return refuse_for_now(refusal, "redis_away", "Redis does not answer now");
    if (api->count < api->settings.max_requests)
        return 0;
    metric_add(api->settings.metrics, METRIC_API_BUSY, 1);
    return refuse_for_now(refusal, "busy", "this server has as many requests under way as it may");
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
    if (!accept_takes_json(http->accept)) {
        http_refuse(refusal, 406, "not_acceptable", NULL, "answers are application/json");
        return refuse_early(api, route, refusal);
    }
    if (check_capacity(api, refusal) < 0)
        return refuse_early(api, route, refusal);
    request = request_new(api, route, answered, owner);
    if (!request) {
        refuse_for_now(refusal, "no_memory", "out of memory");
        return refuse_early(api, route, refusal);
    }
    outcome = read_request(request, http, variable, ret_fault);
    if (outcome == 0)
        outcome = route->begin(request, NULL);
    if (outcome < 0) {
        *refusal = request->refusal;
        request_free(request);
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
