/* gateway/api/engine.h - inside the API: what the files that make requests run share.
 *
 * Operations (one file per resource) know request.h only. Here are those who drive them, each
 * calling those below it and none above:
 *
 *     api.c          which requests may begin, and with which step
 *     question.c     what is asked
 *     caller.c      doubts who asks
 *     list.c         pages of rows, of wherever they are (list_rows.c: the rows)
 *     steps.c        sends calls to Redis and to the archive; cache_ask.c asks the cache
 *     request.c      the life of a request
 *     cache_keep.c   what the cache is given
 *     errors.c       refuses
 *     route.c        which operation is meant */
#pragma once

#include "base/hash.h"
#include "base/list.h"
#include "base/log.h"
#include "gateway/api/request.h"

struct api {
    struct api_settings settings;
    struct sl_meta meta;          /* the shards, known once Redis was there */
    uint64_t refuse_at_ms;        /* clock of the loop: Redis has been away for too long then */
    struct deadline_list waiting; /* requests whose owner waits */
    struct list requests;         /* all that live */
    struct hash_key holder_key;
    /* A request is to be refused: -EPROTO, or what it comes to instead. */
    int (*reconsider)(struct api_request *request);
    uv_timer_t *timer;
    struct log_rate failed_rate;
};

/* --- request.c --- */

/* It waits from now on. NULL: out of memory. */
struct api_request *api_request_new(struct api *api, const struct api_route *route,
                                    api_answer_fn answered, void *owner);
/* What a step came to: nothing while it waits, the answer, or the refusal. */
void api_settle(struct api_request *request, int outcome);
/* Nobody is told. */
void api_request_free(struct api_request *request);
/* The last that it waited for has come. true: nobody waits for its answer any more, and it is gone.
 */
bool api_request_reap(struct api_request *request);
/* `route`: NULL for none that there is. */
void api_count_answer(struct api *api, const struct api_route *route, int status);

/* --- cache_keep.c --- */

/* The end of the request's dealings with the cache, which gets what it is to have. */
void api_cache_done(struct api_request *request);

/* --- question.c --- */

/* Reads what `http` asks into `request`. 0; negative: refused. `variable` is what stands for {user}
 * or {post} in the path. *ret_fault is what was wrong with the token. */
int api_read_question(struct api_request *request, const struct http_request *http,
                      struct sl_slice variable, enum token_fault *ret_fault);

/* May whoever shows this token have the operation? 0; -EPROTO: *refusal; -ENOMEM. */
int api_check_token(const struct api *api, const struct api_route *route,
                    const struct http_request *http, struct http_refusal *refusal,
                    enum token_fault *ret_fault);

/* --- caller.c --- */

/* Something is missing or not the caller's, and there may be no such user: that is asked then.
 * -EPROTO: there is no doubt. */
int api_reconsider(struct api_request *request);
/* 403: the caller is no user. */
int api_refuse_caller(struct api_request *request);

/* --- errors.c --- */

/* 503, with when to come back. -EPROTO */
int api_refuse_for_now(struct http_refusal *refusal, const char *code, const char *message);
