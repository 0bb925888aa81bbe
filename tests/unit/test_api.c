/* The API with a real Redis, without client sockets: failing allocations everywhere, owners that
 * disconnect, and shutdown. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/alloc.h"
#include "base/base64url.h"
#include "base/log.h"
#include "gateway/api/api.h"
#include "src/database/meta.h"
#include "src/redis/redis_link.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/redis_server.h"

enum { MAX_REQUESTS = 4 };

static const char secret[] = "a secret of more than thirty-two bytes";

static struct redis_server server;
static uv_loop_t loop;
static struct metrics_board *board;
static struct front_settings front;
static struct sl_redis_address address;
static struct api_settings settings;
static struct api *api;
static struct buffer authorization;

/* Number of answers, and the last one. */
static unsigned answers;
static int status;
static char code[64];
static struct buffer body;

static void on_answer(void *owner, const struct api_answer *answer)
{
    assert_ptr_equal(owner, &answers);
    answers++;
    status = answer->refusal ? answer->refusal->status : answer->status;
    snprintf(code, sizeof(code), "%s", answer->refusal ? answer->refusal->code : "");
    buffer_clear(&body);
    buffer_append_slice(&body, answer->body);
}

/* --- a server, its database and a token for everything --- */

static int begin_group(void **state)
{
    char path[] = "/tmp/sluice-test-secret-XXXXXX";
    struct token_policy *policy;
    int fd = mkstemp(path);

    (void)state;
    if (fd < 0 || write(fd, secret, strlen(secret)) != (ssize_t)strlen(secret))
        return -1;
    close(fd);
    if (token_policy_new(&(struct token_policy_settings){.secret_file = path}, &policy, NULL) < 0)
        return -1;
    unlink(path);
    front.policy = policy;
    log_set_level(LOG_LEVEL_ERROR);
    redis_server_init(&server, false);
    return 0;
}

static int end_group(void **state)
{
    (void)state;
    token_policy_free((struct token_policy *)front.policy);
    redis_server_done(&server);
    return 0;
}

/* Requests are made with a token for `subject`. */
static void sign(const char *subject)
{
    unsigned char mac[EVP_MAX_MD_SIZE];
    struct buffer jwt = BUFFER_INIT;
    unsigned mac_size;
    char claims[200];

    snprintf(claims, sizeof(claims),
             "{\"sub\":\"%s\",\"scope\":\"read write admin\",\"exp\":9000000000}", subject);
    base64url_encode(SL_SLICE("{\"alg\":\"HS256\"}"), &jwt);
    buffer_append_char(&jwt, '.');
    base64url_encode(sl_slice_str(claims), &jwt);
    HMAC(EVP_sha256(), secret, strlen(secret), (unsigned char *)jwt.data, jwt.size, mac, &mac_size);
    buffer_append_char(&jwt, '.');
    base64url_encode(sl_slice((char *)mac, mac_size), &jwt);
    buffer_clear(&authorization);
    buffer_append_str(&authorization, "Bearer ");
    buffer_append_slice(&authorization, buffer_slice(&jwt));
    buffer_done(&jwt);
}

static int begin_api(const char *method_and_path, const char *text,
                     struct api_request **ret_request)
{
    const char *path = strchr(method_and_path, ' ') + 1;
    const struct http_request http = {
        .method = method_and_path[0] == 'G'   ? HTTP_GET
                  : method_and_path[1] == 'O' ? HTTP_POST
                  : method_and_path[0] == 'P' ? HTTP_PUT
                                              : HTTP_DELETE,
        .path = sl_slice_str(path),
        .content_type = SL_SLICE("application/json"),
        .authorization = buffer_slice(&authorization),
        .body = sl_slice_str(text),
    };
    enum token_fault fault = TOKEN_OK;
    struct http_refusal refusal;
    int r;

    r = api_begin(api, &http, on_answer, &answers, ret_request, &refusal, &fault);
    assert_true(r == 0 || r == -EPROTO);
    if (r < 0) {
        status = refusal.status;
        snprintf(code, sizeof(code), "%s", refusal.code);
    }
    return r;
}

/* Returns the status of the answer. */
static int ask(const char *method_and_path, const char *text)
{
    struct api_request *request;
    unsigned before = answers;

    if (begin_api(method_and_path, text, &request) == 0) {
        while (answers == before)
            uv_run(&loop, UV_RUN_ONCE);
    }
    return status;
}

static int begin(void **state)
{
    struct sl_redis_link *link;
    struct sl_meta wanted = sl_meta_wanted(2), meta;

    (void)state;
    answers = 0;
    authorization = body = BUFFER_INIT;
    if (sl_redis_address_parse(sl_slice_str(server.url), &address, NULL) < 0)
        return -1;
    if (sl_redis_link_open(&address, &(struct sl_redis_link_options){0}, &link, NULL) < 0 ||
        sl_redis_link_meta(link, &wanted, &meta, NULL) < 0)
        return -1;
    sl_redis_link_close(link);
    uv_loop_init(&loop);
    board = metrics_board_new(1);
    settings = (struct api_settings){
        .loop = &loop,
        .commands = redis_commands_new(&loop, &address, "test", 600000),
        .front = &front,
        .metrics = metrics_slot(board, 0),
        .timeout_ms = 600000,
        .max_requests = MAX_REQUESTS,
    };
    api = api_new(&settings);
    api_redis_found(api, 2);
    return 0;
}

static int end(void **state)
{
    (void)state;
    redis_commands_free(settings.commands);
    assert_int_equal(metric_get(settings.metrics, METRIC_API_IN_FLIGHT), 0);
    api_free(api);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    metrics_board_free(board);
    buffer_done(&authorization);
    buffer_done(&body);
    return 0;
}

/* Creates a user and makes the following requests as that user. */
static void become(const char *login)
{
    char text[100], id[32];

    sign("admin");
    snprintf(text, sizeof(text), "{\"login\":\"%s\"}", login);
    assert_int_equal(ask("POST /v1/users", text), 201);
    assert_int_equal(sscanf(buffer_str(&body), "{\"id\":\"%31[0-9]", id), 1);
    sign(id);
}

/* --- */

static void test_answers_come_from_the_loop(void **state)
{
    struct api_request *request;

    (void)state;
    become("ada");
    answers = 0;
    assert_int_equal(begin_api("GET /v1/users/me", "", &request), 0);
    assert_int_equal(answers, 0);
    assert_int_equal(metric_get(settings.metrics, METRIC_API_IN_FLIGHT), 1);
    while (answers == 0)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(status, 200);
    assert_non_null(strstr(buffer_str(&body), "\"login\":\"ada\""));
    assert_int_equal(metric_get(settings.metrics, METRIC_API_IN_FLIGHT), 0);
}

static void test_who_leaves_is_not_called(void **state)
{
    struct api_request *request;

    (void)state;
    become("grace");
    assert_int_equal(ask("POST /v1/posts", "{\"text\":\"so that Redis knows the script\"}"), 201);
    answers = 0;
    assert_int_equal(begin_api("POST /v1/posts", "{\"text\":\"done all the same\"}", &request), 0);
    api_abandon(request);
    assert_int_equal(ask("GET /v1/users/me", ""), 200);
    assert_int_equal(answers, 1);
    assert_non_null(strstr(buffer_str(&body), "\"posts\":2"));
}

static void test_only_so_many_are_under_way(void **state)
{
    struct api_request *requests[MAX_REQUESTS + 1];

    (void)state;
    become("joan");
    answers = 0;
    for (size_t i = 0; i < MAX_REQUESTS; i++)
        assert_int_equal(begin_api("GET /v1/users/me", "", &requests[i]), 0);
    api_abandon(requests[0]); /* it still counts: Redis has to answer it */
    assert_int_equal(begin_api("GET /v1/users/me", "", &requests[MAX_REQUESTS]), -EPROTO);
    assert_int_equal(status, 503);
    assert_string_equal(code, "busy");
    while (answers < MAX_REQUESTS - 1)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(ask("GET /v1/users/me", ""), 200);
}

static void test_whoever_waits_at_the_end_is_answered(void **state)
{
    struct api_request *request;

    (void)state;
    become("alan");
    answers = 0;
    assert_int_equal(begin_api("GET /v1/timelines/home", "", &request), 0);
    assert_int_equal(begin_api("GET /v1/users/me", "", &request), 0);
    redis_commands_free(settings.commands);
    assert_int_equal(answers, 2);
    assert_int_equal(status, 503);
    settings.commands = NULL;
}

static void test_without_a_database_nothing_is_begun(void **state)
{
    struct api *young = api_new(&settings), *old = api;
    struct api_request *request;

    (void)state;
    sign("1");
    api = young;
    assert_int_equal(begin_api("GET /v1/users/me", "", &request), -EPROTO);
    assert_string_equal(code, "redis_away");
    api = old;
    api_free(young);
}

static void test_a_segment_of_a_path_is_decoded_once(void **state)
{
    static const char *const good[] = {"sandra", "%73andra", "SANDR%41", "@sandra", "%40sandra"};
    static const char *const bad[] = {"%2573andra", "sandra%00", "sandra%",
                                      "%4",         "%20sandra", "sandra+"};
    char path[300];

    (void)state;
    become("sandra");
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        snprintf(path, sizeof(path), "GET /v1/users/%s", good[i]);
        assert_int_equal(ask(path, ""), 200);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(path, sizeof(path), "GET /v1/users/%s", bad[i]);
        assert_int_equal(ask(path, ""), 404);
    }
    snprintf(path, sizeof(path), "GET /v1/users/%0200d", 1); /* 200 digits */
    assert_int_equal(ask(path, ""), 404);
    assert_int_equal(ask("GET /v1/users/%6De", ""), 200);
    assert_int_equal(ask("GET /v1/posts/%3", ""), 404);
}

/* Writes `form` with its # replaced by `n`. */
static void number(const char *form, int n, char *room, size_t size)
{
    int before = (int)strcspn(form, "#");

    snprintf(room, size, "%.*s%d%s", before, form, n, form[before] ? form + before + 1 : "");
    if (!form[0])
        room[0] = '\0';
}

/* Each request is tried with the first allocation failing, then the second, ..., until it succeeds;
 * a failed one is answered with 503, and nothing is lost or leaked. */
static void test_memory_may_run_out_anywhere(void **state)
{
    static const char *const requests[][2] = {
        {"POST /v1/users", "{\"login\":\"login_#\"}"},
        {"POST /v1/posts", "{\"text\":\"post #\",\"place\":{\"name\":\"here\"}}"},
        {"POST /v1/users/me/following", "{\"users\":[\"ada\",\"grace\",\"joan\",\"alan\",\"#\"]}"},
        {"GET /v1/users/me/following", ""},
        {"GET /v1/users/me/posts", ""},
        {"GET /v1/timelines/home", ""},
        {"PUT /v1/users/me/muted/ada", ""},
    };

    (void)state;
    become("margaret");
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        bool is_through = false;

        for (int n = 0; !is_through; n++) {
            char text[200];

            number(requests[i][1], n, text, sizeof(text));
            mem_fail_after((uint64_t)n);
            ask(requests[i][0], text);
            is_through = !mem_failed();
            mem_fail_never();
            if (status >= 300)
                assert_int_equal(status, 503);
        }
        assert_true(status < 300);
    }
}

static void test_an_api_needs_memory(void **state)
{
    struct api *made = NULL;

    (void)state;
    for (uint64_t n = 0; !made; n++) {
        mem_fail_after(n);
        made = api_new(&settings);
        mem_fail_never();
    }
    api_free(made);
}

#define API_TEST(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        API_TEST(test_answers_come_from_the_loop),
        API_TEST(test_who_leaves_is_not_called),
        API_TEST(test_only_so_many_are_under_way),
        API_TEST(test_whoever_waits_at_the_end_is_answered),
        API_TEST(test_without_a_database_nothing_is_begun),
        API_TEST(test_a_segment_of_a_path_is_decoded_once),
        API_TEST(test_memory_may_run_out_anywhere),
        API_TEST(test_an_api_needs_memory),
    };

    return cmocka_run_group_tests(tests, begin_group, end_group);
}
