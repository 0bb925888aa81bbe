/* gateway/api/api.h - the social core over HTTP: a request in, an answer later.
 *
 * Everything is asynchronous: a request is checked at once, then each of its steps is a call to
 * Redis, whose reply arrives on the loop. A slow Redis costs the requests their time limit. The
 * number of requests is limited; beyond it clients are told to retry. This module knows nothing of
 * sockets: the transport passes in the request and is called back with the answer. docs/http-api.md
 * is the documentation for clients; api_routes.def has a row for each operation. */
#pragma once

#include <stdint.h>
#include <uv.h>

#include "gateway/api/archive_reader.h"
#include "gateway/api/cache_reader.h"
#include "gateway/front/stream_request.h"
#include "gateway/http/http.h"
#include "gateway/metrics/metrics.h"
#include "gateway/redis/redis_commands.h"

struct api;
struct api_request; /* a request being processed */

/* Describes a request that needs the scope `admin`, for the audit log. */
struct api_act {
    const char *subject;
    const char *operation; /* "POST /v1/users"; NULL: it needs another scope */
};

struct api_answer {
    const struct api_act *act;          /* never NULL */
    const struct http_refusal *refusal; /* NULL: a success */
    int status;
    struct sl_slice headers; /* header lines, each with its CRLF */
    struct sl_slice body;    /* JSON; absent: none */
};

/* Everything that `answer` points to is valid during the call. */
typedef void (*api_answer_fn)(void *owner, const struct api_answer *answer);

struct api_settings {
    uv_loop_t *loop;
    struct redis_commands *commands;
    struct archive_reader *archive; /* NULL: there is none */
    struct cache_reader *cache;     /* NULL: there is none */
    const struct front_settings *front;
    struct metrics *metrics;
    uint32_t timeout_ms; /* of a request */
    unsigned max_requests;
};

/* NULL: out of memory. */
struct api *api_new(const struct api_settings *settings);
/* Redis has been reached, and its database has this many shards. Until then all requests are
 * refused. */
void api_redis_found(struct api *api, uint32_t shards);
/* Redis is down. Requests wait for it within their time limit, but once it has been down for a
 * second, new ones are refused at once. */
void api_redis_lost(struct api *api);
/* Must be called after freeing the commands, the archive and the cache. */
void api_free(struct api *api);

/* The methods of a path of the API, in the form of `Allow`; NULL: not such a path. */
const char *api_allow(struct sl_slice path);

/* For use before the body of a request is read: checks that the operation exists and the token
 * permits it. 0; -EPROTO: respond with *refusal. *ret_fault as for api_begin(). */
int api_check_head(struct api *api, const struct http_request *http, struct http_refusal *refusal,
                   enum token_fault *ret_fault);

/* `http` must have a path that api_allow() knows. 0: `answered` will be called, later; until then
 * *ret_request may be abandoned. -EPROTO: respond with *refusal. *ret_fault is what was wrong with
 * the token, for log and metrics. */
int api_begin(struct api *api, const struct http_request *http, api_answer_fn answered, void *owner,
              struct api_request **ret_request, struct http_refusal *refusal,
              enum token_fault *ret_fault);
/* The answer is no longer wanted. What was sent to Redis may still be executed. */
void api_abandon(struct api_request *request);
