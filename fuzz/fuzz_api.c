/* fuzz_api.c - is every request to the API, from path to body, either refused with a reason or sent
 * on?
 *
 * The input is a byte that chooses the method, then, each terminated by a newline, target,
 * Content-Type, Accept and Idempotency-Key, then the body. There is no Redis: a request that is
 * sent on is answered with that error. */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "fuzz/front.h"
#include "gateway/api/api.h"

static struct token_policy *policy;
static struct buffer authorization;
static struct metrics_board *board;
static uv_loop_t loop;

static void set_up(void)
{
    static const char claims[] =
        "{\"sub\":\"4096\",\"scope\":\"read write admin\",\"exp\":9000000000}";

    policy = front_policy((struct token_policy_settings){0});
    buffer_append_str(&authorization, "Bearer ");
    front_sign(SL_SLICE("{\"alg\":\"HS256\"}"), SL_SLICE(claims), &authorization);
    log_set_level(LOG_LEVEL_ERROR);
    board = metrics_board_new(1);
    must(board && uv_loop_init(&loop) == 0);
}

static void check_refusal(const struct http_refusal *refusal)
{
    must(refusal->status >= 400 && refusal->status <= 503);
    must((refusal->status == 405) == (refusal->allow != NULL));
    must((refusal->status == 503) == (refusal->retry_after_s > 0));
    front_check_body(refusal);
}

static void on_answer(void *owner, const struct api_answer *answer)
{
    unsigned *answers = owner;

    ++*answers;
    must(answer->refusal != NULL);
    check_refusal(answer->refusal);
}

/* A copy that ends where the field ends. */
static struct sl_slice next_field(const char **at, size_t *left, char end)
{
    const char *stop = end && *left > 0 ? memchr(*at, end, *left) : NULL;
    size_t size = stop ? (size_t)(stop - *at) : *left;
    char *copy = mem_alloc(size + 1);

    must(copy != NULL);
    memcpy(copy, *at, size);
    copy[size] = '\0';
    *at += size + (stop ? 1 : 0);
    *left -= size + (stop ? 1 : 0);
    return sl_slice(copy, size);
}

static void ask(const struct http_request *http)
{
    struct front_settings front = {.policy = policy};
    struct api_settings settings = {
        .loop = &loop,
        .front = &front,
        .metrics = metrics_slot(board, 0),
        .timeout_ms = 1000,
        .max_requests = 10,
    };
    struct sl_redis_address address = {.path = "/nonexistent/redis.sock"};
    struct api_request *request = NULL;
    struct http_refusal refusal;
    enum token_fault fault = TOKEN_OK;
    unsigned answers = 0;
    struct api *api;
    int r;

    settings.commands = redis_commands_new(&loop, &address, "fuzz", 1000);
    api = api_new(&settings);
    must(settings.commands && api);
    api_redis_found(api, 8);
    r = api_begin(api, http, on_answer, &answers, &request, &refusal, &fault);
    must(r == 0 || r == -EPROTO);
    must((r == 0) == (request != NULL) && fault == TOKEN_OK);
    if (r < 0)
        check_refusal(&refusal);
    redis_commands_free(settings.commands);
    must(answers == (r == 0));
    api_free(api);
    uv_run(&loop, UV_RUN_NOWAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum http_method methods[] = {HTTP_GET,    HTTP_HEAD,  HTTP_POST, HTTP_PUT,
                                               HTTP_DELETE, HTTP_PATCH, HTTP_POST, HTTP_POST};
    const char *at = (const char *)data;
    size_t left = size;
    struct http_request http = {0};
    struct sl_slice target, content_type, accept, key, body;
    const char *question;

    if (size == 0)
        return 0;
    if (!policy)
        set_up();
    at++;
    left--;
    target = next_field(&at, &left, '\n');
    content_type = next_field(&at, &left, '\n');
    accept = next_field(&at, &left, '\n');
    key = next_field(&at, &left, '\n');
    body = next_field(&at, &left, '\0');
    question = target.size > 0 ? memchr(target.data, '?', target.size) : NULL;

    http.method = methods[data[0] % 8];
    http.path = sl_slice(target.data, question ? (size_t)(question - target.data) : target.size);
    if (question)
        http.query = sl_slice_from(target, http.path.size + 1);
    http.authorization = buffer_slice(&authorization);
    http.content_type = content_type.size ? content_type : SL_SLICE("application/json");
    http.accept.lines[0] = accept.size ? accept : SL_SLICE_NONE;
    http.idempotency_key = key.size ? key : SL_SLICE_NONE;
    http.body = body;
    if (api_allow(http.path))
        ask(&http);
    mem_free((char *)target.data);
    mem_free((char *)content_type.data);
    mem_free((char *)accept.data);
    mem_free((char *)key.data);
    mem_free((char *)body.data);
    return 0;
}
