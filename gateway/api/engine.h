/* gateway/api/engine.h - inside the API: what the files that make requests run share.
 *
 * Operations (one file per resource) know request.h only. Here are those who drive them: api.c has
 * the requests under way, question.c reads what is asked, steps.c sends calls, errors.c refuses,
 * subject.c doubts who asks. */
#pragma once

#include "base/log.h"
#include "gateway/api/request.h"

struct api {
    struct api_settings settings;
    struct sl_meta meta;   /* the shards, known once Redis was there */
    uint64_t refuse_at_ms; /* clock of the loop: Redis has been away for too long then */
    struct list waiting;   /* requests whose owner waits, by deadline */
    size_t count;          /* of all requests that live */
    uv_timer_t *timer;
    struct log_rate failed_rate;
};

/* --- api.c --- */

/* What a step came to: nothing while it waits, the answer, or the refusal. */
void api_settle(struct api_request *request, int outcome);
/* Nobody is told. */
void api_request_free(struct api_request *request);

/* --- cached.c --- */

/* The end of the request's dealings with the cache, which gets what it is to have. */
void api_cached_done(struct api_request *request);

/* --- question.c --- */

/* Reads what `http` asks into `request`. 0; negative: refused. `variable` is what stands for {user}
 * or {post} in the path. *ret_fault is what was wrong with the token. */
int api_read_question(struct api_request *request, const struct http_request *http,
                      struct sl_slice variable, enum token_fault *ret_fault);

/* --- subject.c --- */

/* Is something missing or not the subject's, and may there be no such subject? */
bool api_doubts_subject(const struct api_request *request);
/* 403: the subject is no user. */
int api_refuse_subject(struct api_request *request);

/* --- errors.c --- */

/* 503, with when to come back. -EPROTO */
int api_refuse_for_now(struct http_refusal *refusal, const char *code, const char *message);
