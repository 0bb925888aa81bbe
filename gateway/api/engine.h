/* gateway/api/engine.h - internal to the API: shared by the files that process requests.
 *
 * Operations (one file for each resource) use only request.h. These files drive them; each calls
 * only those below it:
 *
 *     api.c          which requests may begin, and with which step
 *     question.c     parses the request
 *     caller.c       checks that the caller is a user
 *     list.c         pages of rows from all sources (list_rows.c: the rows)
 *     steps.c        sends calls to Redis and to the archive; cache_ask.c asks the cache
 *     request.c      the lifetime of a request
 *     cache_keep.c   what the cache should store
 *     errors.c       refusals
 *     route.c        finds the operation */
#pragma once

#include "base/hash.h"
#include "base/list.h"
#include "base/log.h"
#include "gateway/api/request.h"

struct api {
    struct api_settings settings;
    struct sl_meta meta;          /* the number of shards, once Redis was reached */
    uint64_t refuse_at_ms;        /* by the loop's clock: Redis has been down for too long at this
                                     time */
    struct deadline_list waiting; /* requests whose owner waits */
    struct list requests;         /* all requests */
    struct hash_key holder_key;
    /* Called before a request is refused. -EPROTO: refuse it, or another outcome. */
    int (*reconsider)(struct api_request *request);
    uv_timer_t *timer;
    struct log_rate failed_rate;
};

/* --- request.c --- */

/* Creates a request, which waits from now on. NULL: out of memory. */
struct api_request *api_request_new(struct api *api, const struct api_route *route,
                                    api_answer_fn answered, void *owner);
/* Handles the outcome of a step: nothing if it waits, the answer, or the refusal. */
void api_settle(struct api_request *request, int outcome);
/* Does not call the owner. */
void api_request_free(struct api_request *request);
/* The last outstanding reply has arrived. true: the request was answered or abandoned before, and
 * has been freed. */
bool api_request_reap(struct api_request *request);
/* `route`: NULL for an unknown operation. */
void api_count_answer(struct api *api, const struct api_route *route, int status);

/* --- cache_keep.c --- */

/* Ends the request's use of the cache, and passes to the cache what it should store. */
void api_cache_done(struct api_request *request);

/* --- question.c --- */

/* Parses `http` into `request`. 0; negative: refused. `variable` is the segment of the path for
 * {user} or {post}. *ret_fault is what was wrong with the token. */
int api_read_question(struct api_request *request, const struct http_request *http,
                      struct sl_slice variable, enum token_fault *ret_fault);

/* Whether the token permits the operation. 0; -EPROTO: *refusal; -ENOMEM. */
int api_check_token(const struct api *api, const struct api_route *route,
                    const struct http_request *http, struct http_refusal *refusal,
                    enum token_fault *ret_fault);

/* --- caller.c --- */

/* Something is missing or belongs to another user, maybe because the caller is not a user: asks for
 * the user. -EPROTO: the caller was already checked. */
int api_reconsider(struct api_request *request);
/* 403: the caller is not a user. */
int api_refuse_caller(struct api_request *request);

/* --- errors.c --- */

/* 503 with Retry-After. Returns -EPROTO. */
int api_refuse_for_now(struct http_refusal *refusal, const char *code, const char *message);
