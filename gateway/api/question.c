/* question.c - parses a request: the token first, then the path, query, headers and body.
 *
 * A client without a valid token learns nothing about the rest. Everything is checked before the
 * first call to Redis is built. What is needed later is copied to the request, because the slices
 * of the HTTP request become invalid. A page has 20 items by default, 200 at most; an
 * Idempotency-Key has up to 100 characters. */
#include "gateway/api/engine.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "gateway/api/body.h"
#include "gateway/api/route.h"
#include "gateway/front/bearer.h"
#include "gateway/http/form.h"
#include "gateway/http/http_path.h"
#include "src/model/id.h"
#include "src/model/user_name.h"

enum { INCLUDED_MAX = 1000 }; /* comments and likers on a page */
enum { PAGE_DEFAULT = 20, PAGE_MAX = 200, KEY_MAX = 100, SEGMENT_MAX = 2 * SL_LOGIN_SIZE };
/* A subject may have one of HOLDER_SHARE parts of the allowed requests, but at least
 * HOLDER_AT_LEAST. */
enum { HOLDER_SHARE = 4, HOLDER_AT_LEAST = 16 };

int api_read_user(const struct sl_meta *meta, struct sl_slice text, struct sl_user_ref *ret_user,
                  struct http_refusal *refusal)
{
    struct sl_user_ref user = {0, SL_SLICE_NONE};
    char room[SL_LOGIN_SIZE];
    struct sl_slice folded;
    bool is_user;

    is_user = utf8_is_valid(text) && sl_user_name_parse(text, &user.id, &user.login) == 0 &&
              (user.login.data ? sl_login_fold(user.login, room, &folded, NULL) == 0
                               : sl_id_shard(user.id) < meta->shards);
    if (!is_user)
        return http_refuse(refusal, 404, "not_found", NULL,
                           "there is no such user; digits are an id, @ begins a login");
    *ret_user = user;
    return 0;
}

static int read_me(struct api_request *request, struct sl_user_ref *ret_user)
{
    if (request->caller == SL_READER_NOBODY)
        return api_refuse_caller(request);
    request->acts = true;
    *ret_user = sl_user_by_id(request->caller);
    return 0;
}

/* A login is copied to `room`, because `text` becomes invalid. */
static int read_named_user(struct api_request *request, struct sl_slice text,
                           struct sl_user_ref *ret_user, char room[static SL_LOGIN_SIZE])
{
    int r;

    if (sl_slice_is(text, "me"))
        return read_me(request, ret_user);
    r = api_read_user(&request->api->meta, text, ret_user, &request->refusal);
    if (r == 0 && ret_user->login.data) {
        memcpy(room, ret_user->login.data, ret_user->login.size);
        ret_user->login.data = room;
    }
    return r;
}

/* Decodes {user} or {post} of the path, a segment as it was sent. One that cannot be decoded names
 * nobody. */
static int read_variable(struct api_request *request, struct sl_slice segment)
{
    const struct sl_meta *meta = &request->api->meta;
    struct sl_slice text = SL_SLICE("");
    char room[SEGMENT_MAX];

    if (!segment.data)
        return 0;
    http_path_decode(segment, room, sizeof(room), &text);
    if (api_route_names_post(request->route)) {
        if (sl_id_parse(text, &request->post) < 0 || sl_id_shard(request->post) >= meta->shards)
            return api_refuse(request, 404, "not_found", NULL, "there is no such post");
        return 0;
    }
    if (api_route_names_revocation(request->route)) {
        if (sl_id_parse(text, &request->revocation) < 0)
            return api_refuse(request, 404, "not_found", NULL, "there is no such revocation");
        return 0;
    }
    return read_named_user(request, text, &request->user, request->login);
}

static int read_with(struct api_request *request, struct sl_slice with)
{
    if (!(request->route->flags & API_TAKES_WITH))
        return 0;
    if (!with.data)
        return api_refuse(request, 400, "missing_parameter", "with", "with names the other user");
    return read_named_user(request, with, &request->with, request->with_login);
}

/* Removes the first item of a comma-separated list; false: there is none. */
static bool next_item(struct sl_slice *list, struct sl_slice *ret_item)
{
    const char *comma;

    if (!list->data)
        return false;
    comma = list->size > 0 ? memchr(list->data, ',', list->size) : NULL;
    *ret_item = comma ? sl_slice(list->data, (size_t)(comma - list->data)) : *list;
    *list = comma ? sl_slice_from(*list, ret_item->size + 1) : SL_SLICE_NONE;
    return true;
}

static bool has_id(const struct api_request *request, uint64_t id)
{
    for (size_t i = 0; i < request->ids_count; i++) {
        if (request->ids[i] == id)
            return true;
    }
    return false;
}

/* Parses ID,ID,...; duplicates are ignored. */
static int read_ids(struct api_request *request, struct sl_slice list)
{
    struct sl_slice item;
    uint64_t id;

    if (!(request->route->flags & API_TAKES_IDS))
        return 0;
    if (!list.data)
        return api_refuse(request, 400, "missing_parameter", "ids", "ids lists what to read");
    request->ids = mem_alloc(API_IDS_MAX * sizeof(request->ids[0]));
    if (!request->ids)
        return -ENOMEM;
    while (next_item(&list, &item)) {
        if (sl_id_parse(item, &id) < 0)
            return api_refuse(request, 400, "bad_ids", "ids", "'%.*s' is no id",
                              item.size < 64 ? (int)item.size : 64, item.data);
        if (has_id(request, id))
            continue;
        if (request->ids_count == API_IDS_MAX)
            return api_refuse(request, 400, "bad_ids", "ids", "ids has 1 to %d ids", API_IDS_MAX);
        request->ids[request->ids_count++] = id;
    }
    return 0;
}

static int read_page(struct api_request *request, struct sl_slice before, struct sl_slice after,
                     struct sl_slice limit)
{
    uint64_t number;

    request->page = (struct sl_page){.limit = PAGE_DEFAULT};
    if (before.data && sl_id_parse(before, &request->page.before) < 0)
        return api_refuse(request, 400, "bad_before", "before", "not an id");
    request->after_last_read = sl_slice_is(after, "last_read");
    if (after.data && !request->after_last_read && sl_id_parse(after, &request->after) < 0)
        return api_refuse(request, 400, "bad_after", "after", "neither an id nor last_read");
    if (limit.data) {
        if (sl_id_parse(limit, &number) < 0 || number > PAGE_MAX)
            return api_refuse(request, 400, "bad_limit", "limit", "not a number from 1 to %d",
                              PAGE_MAX);
        request->page.limit = number;
    }
    return 0;
}

/* Parses comments:N, likes:N or viewer. */
static int read_included(struct api_request *request, struct sl_slice item)
{
    const bool shows_posts = request->route->flags & API_SHOWS_POSTS;
    const struct {
        struct sl_slice name;
        size_t *count;
    } kinds[] = {{SL_SLICE("comments:"), &request->include.comments},
                 {SL_SLICE("likes:"), &request->include.likers}};
    uint64_t number;

    if (sl_slice_is(item, "viewer") && !request->includes_viewer) {
        request->includes_viewer = request->acts = true;
        return request->caller == SL_READER_NOBODY ? api_refuse_caller(request) : 0;
    }
    for (size_t i = 0; shows_posts && i < 2; i++) {
        if (!sl_slice_starts_with(item, kinds[i].name) || *kinds[i].count > 0)
            continue;
        if (sl_id_parse(sl_slice_from(item, kinds[i].name.size), &number) == 0 &&
            number <= SL_INCLUDED_MAX) {
            *kinds[i].count = number;
            return 0;
        }
    }
    if (!shows_posts)
        return api_refuse(request, 400, "bad_include", "include",
                          "only viewer can be included "
                          "with users");
    return api_refuse(request, 400, "bad_include", "include",
                      "not comments:N, likes:N (1 to %d) or viewer, each once", SL_INCLUDED_MAX);
}

static int read_include(struct api_request *request, struct sl_slice list)
{
    const bool is_page = request->route->flags & API_TAKES_PAGE;
    const size_t page = is_page ? request->page.limit : request->ids ? request->ids_count : 1;
    struct sl_slice item;
    int r = 0;

    while (r == 0 && next_item(&list, &item))
        r = read_included(request, item);
    if (r == 0 && (request->include.comments + request->include.likers) * page > INCLUDED_MAX)
        return api_refuse(request, 400, "bad_include", "include",
                          "%zu posts with this many each are more than %d in all", page,
                          INCLUDED_MAX);
    return r;
}

/* A request id consists of the user and the key, so that users cannot use each other's. */
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
                              "the key must consist of printable ASCII");
    }
    /* Tokens without a user belong to administrators, who share one space of keys. */
    length =
        snprintf(room, API_REQUEST_ID_SIZE, "%" PRIu64 ":%.*s", request->caller, SL_SLICE_ARG(key));
    request->request_id = sl_slice(room, (size_t)length);
    return 0;
}

/* SL_READER_NOBODY: the token's subject is not a user of this database. */
static uint64_t caller_of(const struct api *api, const struct token *token)
{
    uint64_t id;

    if (sl_id_parse(sl_slice_str(token->subject), &id) < 0 || sl_id_shard(id) >= api->meta.shards)
        return SL_READER_NOBODY;
    return id;
}

static int check_scope(const struct api_route *route, const struct token *token,
                       struct http_refusal *refusal)
{
    if (token->scopes & route->scope->scope)
        return 0;
    http_refuse(refusal, 403, "insufficient_scope", NULL,
                "the token's scope does not cover this operation");
    refusal->www_authenticate = route->scope->insufficient;
    return -EPROTO;
}

static int take_caller(struct api_request *request, const struct token *token)
{
    const struct api_route *route = request->route;

    memcpy(request->subject, token->subject, sizeof(request->subject));
    request->caller = caller_of(request->api, token);
    request->acts = route->flags & API_NEEDS_CALLER;
    if (request->acts && request->caller == SL_READER_NOBODY)
        return api_refuse_caller(request);
    return 0;
}

static int read_body(struct api_request *request, const struct http_request *http)
{
    if (request->route->flags & API_TAKES_BODY)
        return api_body_read(http, &request->body, &request->refusal);
    if (http->body.size > 0)
        return api_refuse(request, 400, "bad_request", NULL, "this operation must not have a body");
    return 0;
}

/* access_token is the first one, which every operation takes; of the others each takes those in its
 * flags. */
enum parameter {
    PARAMETER_ACCESS_TOKEN,
    PARAMETER_BEFORE,
    PARAMETER_LIMIT,
    PARAMETER_AFTER,
    PARAMETER_IDS,
    PARAMETER_WITH,
    PARAMETER_INCLUDE,
    PARAMETER_COUNT
};

static const struct {
    const char *name;
    unsigned flag; /* of the operations that take it; 0: all */
} parameters[PARAMETER_COUNT] = {
    [PARAMETER_ACCESS_TOKEN] = {"access_token", 0},
    [PARAMETER_BEFORE] = {"before", API_TAKES_PAGE},
    [PARAMETER_LIMIT] = {"limit", API_TAKES_PAGE},
    [PARAMETER_AFTER] = {"after", API_TAKES_AFTER},
    [PARAMETER_IDS] = {"ids", API_TAKES_IDS},
    [PARAMETER_WITH] = {"with", API_TAKES_WITH},
    [PARAMETER_INCLUDE] = {"include", API_SHOWS_POSTS | API_SHOWS_USERS},
};

/* The parameters of the query; those that the operation does not take stay absent. */
struct query {
    struct sl_slice values[PARAMETER_COUNT];
    struct form form;
};

/* Errors as in form_read(). */
static int read_query(struct query *query, const struct api_route *route,
                      const struct http_request *http, struct http_refusal *refusal)
{
    const char *names[PARAMETER_COUNT];
    struct sl_slice values[PARAMETER_COUNT];
    enum parameter taken[PARAMETER_COUNT];
    unsigned count = 0;
    int r;

    for (unsigned i = 0; i < PARAMETER_COUNT; i++) {
        query->values[i] = SL_SLICE_NONE;
        if (parameters[i].flag && !(route->flags & parameters[i].flag))
            continue;
        names[count] = parameters[i].name;
        values[count] = SL_SLICE_NONE;
        taken[count++] = i;
    }
    query->form = (struct form){names, count, values, NULL};
    r = form_read(&query->form, &http->query, 1, refusal);
    for (unsigned i = 0; i < count; i++)
        query->values[taken[i]] = values[i];
    return r;
}

/* Limits the number of requests of one subject, so that it cannot exclude others. */
static int check_share(struct api_request *request, const struct token *token)
{
    struct api *api = request->api;
    size_t share = api->settings.max_requests / HOLDER_SHARE, own = 0;

    if (share < HOLDER_AT_LEAST)
        share = HOLDER_AT_LEAST;
    request->holder = hash_slice(api->holder_key, sl_slice_str(token->holder));
    if (api->requests.count <= share)
        return 0;
    LIST_EACH(&api->requests, node)
    own += LIST_OWNER(node, struct api_request, node)->holder == request->holder;
    if (own <= share)
        return 0;
    metric_add(api->settings.metrics, METRIC_API_BUSY, 1);
    return api_refuse_for_now(&request->refusal, "busy",
                              "this token's subject has too many requests in progress");
}

static void note_act(struct api_request *request)
{
    if (request->route->scope->scope == TOKEN_SCOPE_ADMIN)
        request->act = (struct api_act){request->subject, api_route_label(request->route)};
}

/* Parses everything, the token first: a client without one learns nothing about the rest. */
static int understand(struct api_request *request, const struct http_request *http,
                      struct sl_slice variable, struct query *query, enum token_fault *ret_fault)
{
    const struct sl_slice *values = query->values;
    struct http_refusal form_refusal;
    struct token token;
    int form_r, r;

    form_r = read_query(query, request->route, http, &form_refusal);
    if (form_r == -ENOMEM)
        return form_r;
    r = bearer_check(request->api->settings.front->policy, http, values[PARAMETER_ACCESS_TOKEN],
                     clock_wall_ms(), &token, &request->refusal, ret_fault);
    if (r == 0)
        r = check_scope(request->route, &token, &request->refusal);
    if (r == 0)
        note_act(request);
    if (r == 0)
        r = check_share(request, &token);
    if (r == 0)
        r = take_caller(request, &token);
    if (r == 0 && form_r < 0) {
        request->refusal = form_refusal;
        return form_r;
    }
    if (r == 0)
        r = read_variable(request, variable);
    if (r == 0)
        r = read_page(request, values[PARAMETER_BEFORE], values[PARAMETER_AFTER],
                      values[PARAMETER_LIMIT]);
    if (r == 0)
        r = read_ids(request, values[PARAMETER_IDS]);
    if (r == 0)
        r = read_with(request, values[PARAMETER_WITH]);
    if (r == 0)
        r = read_include(request, values[PARAMETER_INCLUDE]);
    if (r == 0)
        r = read_idempotency_key(request, http);
    return r == 0 ? read_body(request, http) : r;
}

int api_check_token(const struct api *api, const struct api_route *route,
                    const struct http_request *http, struct http_refusal *refusal,
                    enum token_fault *ret_fault)
{
    struct sl_slice values[] = {SL_SLICE_NONE};
    const char *const names[] = {parameters[PARAMETER_ACCESS_TOKEN].name};
    struct form form = {names, 1, values, NULL};
    struct http_refusal ignored;
    struct token token;
    int r;

    r = form_read(&form, &http->query, 1, &ignored);
    if (r != -ENOMEM)
        r = bearer_check(api->settings.front->policy, http, values[PARAMETER_ACCESS_TOKEN],
                         clock_wall_ms(), &token, refusal, ret_fault);
    form_done(&form);
    return r == 0 ? check_scope(route, &token, refusal) : r;
}

int api_read_question(struct api_request *request, const struct http_request *http,
                      struct sl_slice variable, enum token_fault *ret_fault)
{
    struct query query;
    int r;

    r = understand(request, http, variable, &query, ret_fault);
    form_done(&query.form);
    return r == -ENOMEM ? api_fail_for_memory(request) : r;
}
