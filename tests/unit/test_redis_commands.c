/* test_redis_commands.c - commands to a server with prepared answers. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/redis/redis_commands.h"
#include "src/call/reply.h"
#include "src/social/users.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/test_loop.h"

#define DONE   "*2\r\n:0\r\n$1\r\n7\r\n"
#define HANGUP NULL /* disconnects instead of an answer */
#define SILENT ""   /* sends no answer */

enum { TIMEOUT_MS = 20000 }; /* for a working Redis on a slow machine */

static struct test_loop test_loop;

/* The server: the next answer for each command on any connection; then it is silent. */
static struct {
    uv_pipe_t listener;
    char path[108];
    const char *const *answers;
    size_t count, used;
    size_t connections, greeted;
    bool ignores_greeting;
    struct buffer heard; /* the first word of each command but HELLO and its like */
} server;

struct client {
    uv_pipe_t pipe;
    redisReader *reader;
};

struct told {
    size_t count;
    int error; /* as in sl_reply_check(); -EPIPE: no reply */
    char text[FAILURE_TEXT_SIZE];
};

static struct redis_commands *commands;

static void run_until_told(const struct told *told)
{
    RUN_UNTIL(&test_loop, told->count > 0);
}

/* ---- the server ---- */

static void on_client_closed(uv_handle_t *handle)
{
    struct client *client = handle->data;

    redisReaderFree(client->reader);
    free(client);
}

static void hang_up(struct client *client)
{
    if (!uv_is_closing((uv_handle_t *)&client->pipe))
        uv_close((uv_handle_t *)&client->pipe, on_client_closed);
}

static void on_room(uv_handle_t *handle, size_t size, uv_buf_t *ret_room)
{
    static char room[65536];

    (void)handle;
    (void)size;
    *ret_room = uv_buf_init(room, sizeof(room));
}

static void on_said(uv_write_t *write, int status)
{
    (void)status;
    free(write);
}

static void say(struct client *client, const char *answer)
{
    uv_write_t *write = malloc(sizeof(*write));
    uv_buf_t bytes = uv_buf_init((char *)answer, (unsigned)strlen(answer));

    assert_int_equal(uv_write(write, (uv_stream_t *)&client->pipe, &bytes, 1, on_said), 0);
}

static void answer(struct client *client, const redisReply *command)
{
    const char *text = SILENT;

    if (strcmp(command->element[0]->str, "CLIENT") == 0) { /* at the beginning of a connection */
        server.greeted++;
        if (!server.ignores_greeting)
            say(client, "+OK\r\n");
        return;
    }
    buffer_append_format(&server.heard, "%s ", command->element[0]->str);
    if (server.used < server.count)
        text = server.answers[server.used++];
    if (text == HANGUP)
        hang_up(client);
    else if (*text)
        say(client, text);
}

static void on_heard(uv_stream_t *stream, ssize_t size, const uv_buf_t *room)
{
    struct client *client = stream->data;
    void *command = NULL;

    if (size < 0) {
        hang_up(client);
        return;
    }
    redisReaderFeed(client->reader, room->base, (size_t)size);
    while (redisReaderGetReply(client->reader, &command) == REDIS_OK && command) {
        if (!uv_is_closing((uv_handle_t *)stream))
            answer(client, command);
        freeReplyObject(command);
    }
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct client *client = calloc(1, sizeof(*client));

    assert_int_equal(status, 0);
    server.connections++;
    client->reader = redisReaderCreate();
    uv_pipe_init(&test_loop.uv, &client->pipe, 0);
    client->pipe.data = client;
    assert_int_equal(uv_accept(listener, (uv_stream_t *)&client->pipe), 0);
    uv_read_start((uv_stream_t *)&client->pipe, on_room, on_heard);
}

static void start_server(void)
{
    uv_pipe_init(&test_loop.uv, &server.listener, 0);
    assert_int_equal(uv_pipe_bind(&server.listener, server.path), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&server.listener, 8, on_connection), 0);
}

#define ANSWERS(...)                                                                               \
    do {                                                                                           \
        static const char *const answers[] = {__VA_ARGS__};                                        \
        server.answers = answers;                                                                  \
        server.count = sizeof(answers) / sizeof(answers[0]);                                       \
    } while (0)

static void expect_heard(const char *expected)
{
    assert_string_equal(buffer_str(&server.heard), expected);
}

/* ---- the commands ---- */

static void on_reply(void *owner, const redisReply *reply, const char *why)
{
    struct told *told = owner;
    struct failure failure = {""};

    told->count++;
    told->error = sl_reply_check(reply, &failure);
    snprintf(told->text, sizeof(told->text), "%s", reply ? failure.text : why);
}

static void make_commands(uint32_t timeout_ms, uint32_t sentinels)
{
    struct sl_redis_address address = {.sentinel_count = sentinels};

    if (sentinels == 0)
        memcpy(address.path, server.path, sizeof(address.path));
    commands = redis_commands_new(&test_loop.uv, &address, "test", timeout_ms);
    assert_non_null(commands);
}

/* A write, which may be repeated if it has a request id. */
static void run_write(struct told *told, struct sl_slice request_id)
{
    const struct sl_meta meta = {.shards = 1};
    struct sl_call call = SL_CALL_INIT;

    *told = (struct told){.count = 0};
    assert_int_equal(
        sl_user_create_call(&call, &meta, request_id, SL_SLICE("ada"), SL_SLICE_NONE, NULL), 0);
    assert_int_equal(redis_commands_run_take(commands, &call, on_reply, told), 0);
}

static int open_all(void **state)
{
    (void)state;
    test_loop_init(&test_loop, NULL);
    memset(&server, 0, sizeof(server));
    snprintf(server.path, sizeof(server.path), "/tmp/sluice-commands-%d.sock", (int)getpid());
    unlink(server.path);
    start_server();
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    redis_commands_free(commands);
    uv_close((uv_handle_t *)&server.listener, NULL);
    test_loop_done(&test_loop);
    buffer_done(&server.heard);
    unlink(server.path);
    return 0;
}

/* ---- tests ---- */

static void test_what_was_not_done_is_tried_again(void **state)
{
    struct told told;

    (void)state;
    make_commands(TIMEOUT_MS, 0);
    ANSWERS("-LOADING Redis is loading the dataset in memory\r\n", "-BUSY Redis is busy\r\n",
            "-NOREPLICAS Not enough good replicas to write.\r\n", "-TRYAGAIN later\r\n", DONE);
    run_write(&told, SL_SLICE_NONE);
    run_until_told(&told);
    assert_int_equal(told.error, 0);
    expect_heard("EVALSHA EVALSHA EVALSHA EVALSHA EVALSHA ");
    assert_int_equal(server.connections, 1);
}

static void test_script_that_is_missing_is_sent_on_the_spot(void **state)
{
    struct told told;

    (void)state;
    make_commands(TIMEOUT_MS, 0);
    ANSWERS("-NOSCRIPT No matching script.\r\n", DONE);
    run_write(&told, SL_SLICE_NONE);
    run_until_told(&told);
    assert_int_equal(told.error, 0);
    expect_heard("EVALSHA EVAL ");
}

static void test_lost_answer_is_asked_for_again_if_that_is_safe(void **state)
{
    struct told safe, unsafe;

    (void)state;
    make_commands(TIMEOUT_MS, 0);
    ANSWERS(DONE, HANGUP, DONE);
    run_write(&safe, SL_SLICE_NONE); /* so that there is a connection */
    run_until_told(&safe);
    run_write(&safe, SL_SLICE("r1"));
    run_write(&unsafe, SL_SLICE_NONE);
    run_until_told(&unsafe);
    assert_int_equal(unsafe.error, -EPIPE);
    assert_non_null(strstr(unsafe.text, "connection lost"));
    run_until_told(&safe);
    assert_int_equal(safe.error, 0);
    assert_int_equal(server.connections, 2);
}

static void test_refusals_are_the_callers(void **state)
{
    static const struct {
        const char *answer;
        int error;
    } cases[] = {
        {"-OOM command not allowed when used memory > 'maxmemory'.\r\n", -ENOSPC},
        {"-READONLY You can't write against a read only replica.\r\n", -EROFS},
        {"-MISCONF Redis is configured to save RDB snapshots\r\n", -EROFS},
        {"-NOAUTH Authentication required.\r\n", -EACCES},
        {"-WRONGTYPE Operation against a key\r\n", -EBADMSG},
        {"-ERR unknown command\r\n", -EIO},
    };

    (void)state;
    make_commands(TIMEOUT_MS, 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct told told;

        server.answers = &cases[i].answer;
        server.count = 1;
        server.used = 0;
        run_write(&told, SL_SLICE("r1"));
        run_until_told(&told);
        assert_int_equal(told.error, cases[i].error);
        expect_heard("EVALSHA ");
        buffer_clear(&server.heard);
    }
}

static void test_time_ends_every_try(void **state)
{
    struct told busy, silent;

    (void)state;
    make_commands(1000, 0);
    ANSWERS("-BUSY 1\r\n", "-BUSY 2\r\n", "-BUSY 3\r\n", "-BUSY 4\r\n", "-BUSY 5\r\n",
            "-BUSY 6\r\n", "-BUSY 7\r\n");
    run_write(&busy, SL_SLICE("r1"));
    run_until_told(&busy);
    if (busy.error != -EPIPE) /* on a slow machine the time may expire within a try */
        assert_int_equal(busy.error, -EAGAIN);
    server.used = server.count;
    run_write(&silent, SL_SLICE("r1"));
    run_until_told(&silent);
    assert_int_equal(silent.error, -EPIPE);
    assert_string_equal(silent.text, "Redis did not answer in time");
}

static void test_redis_that_comes_late_gets_what_waits(void **state)
{
    struct told one, two;

    (void)state;
    uv_close((uv_handle_t *)&server.listener, NULL);
    uv_run(&test_loop.uv, UV_RUN_NOWAIT);
    make_commands(TIMEOUT_MS, 0);
    ANSWERS(DONE, "-OOM no\r\n");
    run_write(&one, SL_SLICE_NONE); /* never sent: safe without a request id */
    run_write(&two, SL_SLICE_NONE);
    uv_run(&test_loop.uv, UV_RUN_ONCE);
    start_server();
    run_until_told(&one);
    run_until_told(&two);
    assert_int_equal(one.error, 0);
    assert_int_equal(two.error, -ENOSPC);
}

static void test_redis_that_does_not_come_is_told(void **state)
{
    struct told told;

    (void)state;
    uv_close((uv_handle_t *)&server.listener, NULL);
    uv_run(&test_loop.uv, UV_RUN_NOWAIT);
    make_commands(50, 0);
    run_write(&told, SL_SLICE("r1"));
    run_until_told(&told);
    assert_int_equal(told.error, -EPIPE);
    assert_non_null(strstr(told.text, "cannot connect"));
    start_server();
}

/* However long the pause has become after many failures. */
static void test_word_that_redis_is_back_ends_a_pause(void **state)
{
    struct told told;
    uint64_t begun_ms;

    (void)state;
    uv_close((uv_handle_t *)&server.listener, NULL);
    make_commands(TIMEOUT_MS, 0);
    ANSWERS(DONE);
    run_write(&told, SL_SLICE_NONE);
    begun_ms = uv_now(&test_loop.uv);
    RUN_UNTIL(&test_loop, uv_now(&test_loop.uv) >= begun_ms + 1500);
    start_server();
    begun_ms = uv_now(&test_loop.uv);
    redis_commands_try_now(commands);
    run_until_told(&told);
    assert_int_equal(told.error, 0);
    assert_in_range(uv_now(&test_loop.uv) - begun_ms, 0, 200);
}

/* It accepts the connection and is silent: what it would do with a write is unknown. */
static void test_redis_that_does_not_greet_is_given_nothing(void **state)
{
    struct told told;

    (void)state;
    server.ignores_greeting = true;
    make_commands(200, 0);
    ANSWERS(DONE);
    run_write(&told, SL_SLICE_NONE);
    run_until_told(&told);
    assert_int_equal(told.error, -EPIPE);
    assert_true(server.greeted > 0);
    assert_int_equal(server.used, 0);
    server.ignores_greeting = false;
    run_write(&told, SL_SLICE_NONE);
    run_until_told(&told);
    assert_int_equal(told.error, 0);
}

static void free_on_reply(void *owner, const redisReply *reply, const char *why)
{
    on_reply(owner, reply, why);
    redis_commands_free(commands);
    commands = NULL;
}

/* The last answer may be what a server that is shutting down waits for. */
static void test_they_can_be_freed_by_who_is_answered(void **state)
{
    static const char *const ends[] = {DONE, HANGUP};

    (void)state;
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct told freeing = {.count = 0}, sent, waiting;
        const struct sl_meta meta = {.shards = 1};
        const char *answers[] = {"-BUSY 1\r\n", ends[i], SILENT};
        struct sl_call call = SL_CALL_INIT;

        server.answers = answers;
        server.count = 3;
        server.used = 0;
        make_commands(TIMEOUT_MS, 0);
        run_write(&waiting, SL_SLICE("r1"));
        RUN_UNTIL(&test_loop, server.used == 1);
        assert_int_equal(
            sl_user_create_call(&call, &meta, SL_SLICE_NONE, SL_SLICE("ada"), SL_SLICE_NONE, NULL),
            0);
        assert_int_equal(redis_commands_run_take(commands, &call, free_on_reply, &freeing), 0);
        run_write(&sent, SL_SLICE("r2"));
        run_until_told(&freeing);
        assert_int_equal(freeing.error, ends[i] ? 0 : -EPIPE);
        assert_int_equal(freeing.count, 1);
        assert_int_equal(sent.count, 1);
        assert_int_equal(waiting.count, 1);
        assert_string_equal(waiting.text, "the server is stopping");
    }
}

static void test_master_that_nobody_knows_is_waited_for(void **state)
{
    const struct sl_redis_endpoint nowhere = {"127.0.0.1", 1};
    struct told told;

    (void)state;
    make_commands(1000, 1);
    run_write(&told, SL_SLICE("r1"));
    run_until_told(&told);
    assert_non_null(strstr(told.text, "sentinels have not named"));
    redis_commands_set_endpoint(commands, &nowhere);
    run_write(&told, SL_SLICE("r1"));
    run_until_told(&told);
    assert_non_null(strstr(told.text, "cannot connect"));
}

static void test_all_are_answered_at_the_end(void **state)
{
    struct told sent, paused;

    (void)state;
    make_commands(TIMEOUT_MS, 0);
    ANSWERS("-BUSY 1\r\n", SILENT);
    run_write(&paused, SL_SLICE("r1"));
    run_write(&sent, SL_SLICE("r2"));
    RUN_UNTIL(&test_loop, server.used == 2);
    assert_int_equal(paused.count + sent.count, 0);
    redis_commands_free(commands);
    commands = NULL;
    assert_int_equal(paused.count, 1);
    assert_int_equal(sent.count, 1);
    assert_string_equal(paused.text, "the server is stopping");
    assert_string_equal(sent.text, "the server is stopping");
}

static void test_memory_that_runs_out_costs_the_caller_alone(void **state)
{
    const struct sl_meta meta = {.shards = 1};
    struct told told = {.count = 0};
    struct sl_call call;
    int r;

    (void)state;
    make_commands(TIMEOUT_MS, 0);
    ANSWERS(DONE);
    for (uint64_t n = 0;; n++) {
        call = SL_CALL_INIT;
        assert_int_equal(
            sl_user_create_call(&call, &meta, SL_SLICE_NONE, SL_SLICE("ada"), SL_SLICE_NONE, NULL),
            0);
        mem_fail_after(n);
        r = redis_commands_run_take(commands, &call, on_reply, &told);
        mem_fail_never();
        if (r == 0)
            break;
        assert_int_equal(r, -ENOMEM);
    }
    run_until_told(&told);
    assert_int_equal(told.error, 0);
    assert_int_equal(told.count, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)
    const struct CMUnitTest tests[] = {
        TEST(test_what_was_not_done_is_tried_again),
        TEST(test_script_that_is_missing_is_sent_on_the_spot),
        TEST(test_lost_answer_is_asked_for_again_if_that_is_safe),
        TEST(test_refusals_are_the_callers),
        TEST(test_time_ends_every_try),
        TEST(test_redis_that_comes_late_gets_what_waits),
        TEST(test_redis_that_does_not_come_is_told),
        TEST(test_word_that_redis_is_back_ends_a_pause),
        TEST(test_redis_that_does_not_greet_is_given_nothing),
        TEST(test_they_can_be_freed_by_who_is_answered),
        TEST(test_master_that_nobody_knows_is_waited_for),
        TEST(test_all_are_answered_at_the_end),
        TEST(test_memory_that_runs_out_costs_the_caller_alone),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
