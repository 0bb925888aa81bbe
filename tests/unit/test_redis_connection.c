/* A blocking connection to a real Redis, and to a peer that answers when a test tells it to. */
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/clock.h"
#include "src/redis/redis_connection.h"
#include "src/redis/redis_format.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/interruptions.h"
#include "tests/support/redis_server.h"

enum { LONG_MS = 60000, SHORT_MS = 100 };

static struct redis_server server;

static int start_server(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    redis_server_init(&server, false);
    return 0;
}

static int stop_server(void **state)
{
    (void)state;
    redis_server_done(&server);
    return 0;
}

static struct sl_redis_connection *open_unix(const char *path, uint32_t answer_ms)
{
    struct sl_redis_connection *connection = NULL;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct failure failure;

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (sl_redis_connection_open_take((struct sockaddr *)&address, sizeof(address), NULL,
                                      clock_monotonic_ms() + LONG_MS, answer_ms, &connection,
                                      &failure) < 0)
        fail_msg("%s", failure.text);
    return connection;
}

static void append(struct sl_redis_connection *connection, const char *first, const char *second)
{
    const char *const argv[] = {first, second};

    assert_int_equal(sl_redis_connection_append(connection, second ? 2 : 1, argv, NULL, NULL), 0);
}

static redisReply *read_reply(struct sl_redis_connection *connection)
{
    struct failure failure;
    redisReply *reply = NULL;

    if (sl_redis_connection_read(connection, &reply, &failure) < 0)
        fail_msg("%s", failure.text);
    assert_non_null(reply);
    return reply;
}

static void read_string(struct sl_redis_connection *connection, const char *expected, size_t size)
{
    redisReply *reply = read_reply(connection);

    assert_int_equal(reply->len, size);
    assert_memory_equal(reply->str, expected, size);
    freeReplyObject(reply);
}

/* ---- what is sent ---- */

static void test_command_is_formatted_as_hiredis_does(void **state)
{
    static const char *const argv[] = {"SET", "", "a\0b", "0123456789"};
    static const size_t sizes[] = {3, 0, 3, 10};
    struct buffer ours = BUFFER_INIT;
    char *theirs = NULL;
    int size;

    (void)state;
    buffer_append_str(&ours, "before");
    assert_int_equal(sl_redis_format(&ours, 4, argv, sizes), 0);
    size = redisFormatCommandArgv(&theirs, 4, (const char **)argv, sizes);
    assert_int_equal(ours.size, 6 + (size_t)size);
    assert_memory_equal(ours.data + 6, theirs, (size_t)size);
    free(theirs);
    buffer_clear(&ours);
    assert_int_equal(sl_redis_format(&ours, 2, argv, NULL), 0);
    assert_true(sl_slice_is(buffer_slice(&ours), "*2\r\n$3\r\nSET\r\n$0\r\n\r\n"));
    buffer_done(&ours);
}

static void test_command_without_room_leaves_the_others_whole(void **state)
{
    static const char *const argv[] = {"PING"};
    struct buffer out = {.limit = 64};

    (void)state;
    assert_int_equal(sl_redis_format(&out, 1, argv, NULL), 0);
    assert_int_equal(sl_redis_format(&out, 1, argv, NULL), -ENOMEM);
    assert_false(out.failed);
    assert_true(sl_slice_is(buffer_slice(&out), "*1\r\n$4\r\nPING\r\n"));
    buffer_done(&out);
}

/* ---- a real server ---- */

static void test_commands_that_were_gathered_are_answered_in_order(void **state)
{
    struct sl_redis_connection *connection = open_unix(server.socket, LONG_MS);
    char word[16];

    (void)state;
    for (int i = 0; i < 1000; i++) {
        snprintf(word, sizeof(word), "word%d", i);
        append(connection, "ECHO", word);
    }
    for (int i = 0; i < 1000; i++) {
        snprintf(word, sizeof(word), "word%d", i);
        read_string(connection, word, strlen(word));
    }
    sl_redis_connection_close(connection);
}

static void test_large_value_comes_and_goes_under_interruptions(void **state)
{
    enum { SIZE = 32 * 1024 * 1024 };
    struct sl_redis_connection *connection = open_unix(server.socket, LONG_MS);
    const char *const argv[] = {"ECHO", malloc(SIZE)};
    const size_t sizes[] = {4, SIZE};

    (void)state;
    assert_non_null(argv[1]);
    memset((char *)argv[1], 'x', SIZE);
    interruptions_begin(NULL);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sl_redis_connection_append(connection, 2, argv, sizes, NULL), 0);
        read_string(connection, argv[1], SIZE);
    }
    interruptions_end();
    free((char *)argv[1]);
    sl_redis_connection_close(connection);
}

static void test_polling_waits_for_nothing(void **state)
{
    struct sl_redis_connection *connection = open_unix(server.socket, LONG_MS);
    redisReply *reply = NULL;

    (void)state;
    assert_int_equal(sl_redis_connection_poll(connection, &reply, NULL), 0);
    assert_null(reply);
    append(connection, "ECHO", "a");
    append(connection, "ECHO", "b");
    assert_int_equal(sl_redis_connection_flush(connection, NULL), 0);
    read_string(connection, "a", 1);
    do
        assert_int_equal(sl_redis_connection_poll(connection, &reply, NULL), 0);
    while (!reply);
    assert_string_equal(reply->str, "b");
    freeReplyObject(reply);
    sl_redis_connection_close(connection);
}

static void test_server_that_dies_is_noticed_by_reading_and_by_polling(void **state)
{
    struct sl_redis_connection *reading = open_unix(server.socket, LONG_MS);
    struct sl_redis_connection *polling = open_unix(server.socket, LONG_MS);
    struct failure failure;
    redisReply *reply = NULL;

    (void)state;
    append(reading, "ECHO", "here");
    read_string(reading, "here", 4);
    append(polling, "ECHO", "here");
    read_string(polling, "here", 4);
    redis_server_kill(&server);
    assert_int_equal(sl_redis_connection_poll(polling, &reply, &failure), -EIO);
    assert_string_equal(failure.text, "Redis closed the connection");
    append(reading, "PING", NULL);
    assert_int_equal(sl_redis_connection_read(reading, &reply, &failure), -EIO);
    assert_null(reply);
    sl_redis_connection_close(reading);
    sl_redis_connection_close(polling);
    redis_server_restart(&server);
}

/* ---- time ---- */

/* Returns a listening socket with a `backlog` of connections that nobody accepts. */
static int listen_at(struct sockaddr_in *address, int backlog)
{
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof(*address);

    *address = (struct sockaddr_in){.sin_family = AF_INET};
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(listener, (struct sockaddr *)address, size), 0);
    if (backlog >= 0)
        assert_int_equal(listen(listener, backlog), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)address, &size), 0);
    return listener;
}

static int open_tcp(const struct sockaddr_in *address, uint32_t connect_ms, uint32_t answer_ms,
                    struct sl_redis_connection **ret_connection, struct failure *failure)
{
    return sl_redis_connection_open_take((const struct sockaddr *)address, sizeof(*address), NULL,
                                         clock_monotonic_ms() + connect_ms, answer_ms,
                                         ret_connection, failure);
}

static void test_answer_that_does_not_come_ends_the_wait(void **state)
{
    struct sl_redis_connection *connection = NULL;
    struct sockaddr_in address;
    struct failure failure;
    redisReply *reply = NULL;
    int listener = listen_at(&address, 8);
    uint64_t start_ms;

    (void)state;
    assert_int_equal(open_tcp(&address, LONG_MS, SHORT_MS, &connection, &failure), 0);
    append(connection, "PING", NULL);
    start_ms = clock_monotonic_ms();
    assert_int_equal(sl_redis_connection_read(connection, &reply, &failure), -EIO);
    assert_string_equal(failure.text, "Redis did not answer in time");
    assert_true(clock_monotonic_ms() - start_ms >= SHORT_MS - 10);
    sl_redis_connection_close(connection);
    close(listener);
}

static void test_peer_that_does_not_read_ends_the_sending(void **state)
{
    enum { SIZE = 16 * 1024 * 1024 };
    struct sl_redis_connection *connection = NULL;
    char *large = calloc(1, SIZE);
    struct sockaddr_in address;
    struct failure failure;
    int listener = listen_at(&address, 8);

    (void)state;
    assert_int_equal(open_tcp(&address, LONG_MS, SHORT_MS, &connection, &failure), 0);
    assert_int_equal(sl_redis_connection_append(connection, 1, (const char *const[]){large},
                                                (size_t[]){SIZE}, NULL),
                     0);
    assert_int_equal(sl_redis_connection_flush(connection, &failure), -EIO);
    assert_string_equal(failure.text, "Redis did not read in time");
    sl_redis_connection_close(connection);
    close(listener);
    free(large);
}

static void test_peer_that_does_not_accept_ends_the_connecting(void **state)
{
    struct sl_redis_connection *waiting[8] = {NULL};
    struct sockaddr_in address;
    struct failure failure;
    int listener = listen_at(&address, 0);
    int r = 0;

    (void)state;
    interruptions_begin(NULL);
    for (size_t i = 0; r == 0 && i < 8; i++) /* the kernel accepts the first of them */
        r = open_tcp(&address, 3 * SHORT_MS, LONG_MS, &waiting[i], &failure);
    interruptions_end();
    assert_int_equal(r, -ECONNREFUSED);
    assert_string_equal(failure.text, "Connection timed out");
    for (size_t i = 0; i < 8; i++)
        sl_redis_connection_close(waiting[i]);
    close(listener);
}

static void test_port_where_nobody_is_refuses(void **state)
{
    struct sl_redis_connection *connection = NULL;
    struct sockaddr_in address;
    struct failure failure;
    int bound = listen_at(&address, -1);

    (void)state;
    assert_int_equal(open_tcp(&address, LONG_MS, LONG_MS, &connection, &failure), -ECONNREFUSED);
    assert_string_equal(failure.text, "Connection refused");
    assert_null(connection);
    close(bound);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_is_formatted_as_hiredis_does),
        cmocka_unit_test(test_command_without_room_leaves_the_others_whole),
        cmocka_unit_test(test_commands_that_were_gathered_are_answered_in_order),
        cmocka_unit_test(test_large_value_comes_and_goes_under_interruptions),
        cmocka_unit_test(test_polling_waits_for_nothing),
        cmocka_unit_test(test_server_that_dies_is_noticed_by_reading_and_by_polling),
        cmocka_unit_test(test_answer_that_does_not_come_ends_the_wait),
        cmocka_unit_test(test_peer_that_does_not_read_ends_the_sending),
        cmocka_unit_test(test_peer_that_does_not_accept_ends_the_connecting),
        cmocka_unit_test(test_port_where_nobody_is_refuses),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
