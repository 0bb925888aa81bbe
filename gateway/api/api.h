/* gateway/api/api.h - the social core over HTTP: one request in, one answer out, later.
 *
 * Asynchronous throughout: a request is checked at once, then each of its steps is a call to Redis
 * that comes back on the loop. A Redis that is slow costs the requests their time limit; so many
 * may be under way at once, a further one is told to come back. Nothing here knows of sockets: the
 * transport hands in what was asked and is called back with the answer. docs/http-api.md is what
 * clients read; api_routes.def has a row per operation. */
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
struct api_request; /* one that is under way */

/* What takes the scope `admin`: who asked for what. */
struct api_act {
    const char *subject;
    const char *operation; /* "POST /v1/users"; NULL: it takes another scope */
};

struct api_answer {
    const struct api_act *act;          /* never NULL */
    const struct http_refusal *refusal; /* NULL: none, then */
    int status;
    struct sl_slice headers; /* lines, each with its CRLF */
    struct sl_slice body;    /* JSON; absent: none */
};

/* What `answer` points to is gone when this returns. */
typedef void (*api_answer_fn)(void *owner, const struct api_answer *answer);

struct api_settings {
    uv_loop_t *loop;
    struct redis_commands *commands;
    struct archive_reader *archive; /* NULL: there is none */
    struct cache_reader *cache;     /* the same */
    const struct front_settings *front;
    struct metrics *metrics;
    uint32_t timeout_ms; /* of a request */
    unsigned max_requests;
};

/* NULL: out of memory. */
struct api *api_new(const struct api_settings *settings);
/* Redis is there, and the database in it has so many shards; until then every request is refused.
 */
void api_redis_found(struct api *api, uint32_t shards);
/* It is not. Requests wait for it to come back as long as they have time, but when it has been away
 * for a second, further ones are refused at once. */
void api_redis_lost(struct api *api);
/* Behind the commands, the archive and the cache that it uses. */
void api_free(struct api *api);

/* The methods of a path of the API, as `Allow` lists them; NULL: it is none. */
const char *api_allow(struct sl_slice path);

/* Before the body of such a request is read: is there such an operation, and may the token have it?
 * 0; -EPROTO: *refusal is the answer. *ret_fault as for api_begin(). */
int api_check_head(struct api *api, const struct http_request *http, struct http_refusal *refusal,
                   enum token_fault *ret_fault);

/* `http` asks for a path that api_allow() knows. 0: `answered` will be called, later, and
 * *ret_request may be abandoned until then. -EPROTO: *refusal is the answer. *ret_fault is what was
 * wrong with the token, for log and metrics. */
int api_begin(struct api *api, const struct http_request *http, api_answer_fn answered, void *owner,
              struct api_request **ret_request, struct http_refusal *refusal,
              enum token_fault *ret_fault);
/* Nobody waits for the answer any more. What was sent to Redis may still be done. */
void api_abandon(struct api_request *request);
