/* The blocking connection with a server that does what real ones rarely do. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "src/database/meta.h"
#include "src/redis/redis_connection.h"
#include "src/redis/redis_link.h"
#include "src/social/follows.h"
#include "src/social/users.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/redis_server.h"

/* Handles one connection after the other: each has a list of answers (terminated by NULL), for as
 * many requests, and is then closed. The last connection stays open until the end. */
struct fake {
    const char *const (*connections)[4];
    size_t count;
    struct sockaddr_un address;
    int listener;
    pthread_t thread;
    char seen[8192]; /* the commands of all connections, the first word of each */
};

/* Reads one request and records its first word, "EVALSHA" for example. false: closed. */
static bool read_request(struct fake *fake, redisReader *reader, int connection)
{
    char bytes[65536];
    void *request = NULL;

    while (redisReaderGetReply(reader, &request) == REDIS_OK && !request) {
        ssize_t count = read(connection, bytes, sizeof(bytes));

        if (count <= 0)
            return false;
        redisReaderFeed(reader, bytes, (size_t)count);
    }
    snprintf(fake->seen + strlen(fake->seen), sizeof(fake->seen) - strlen(fake->seen), "%s ",
             ((redisReply *)request)->element[0]->str);
    freeReplyObject(request);
    return true;
}

static void serve(struct fake *fake, int connection, const char *const *answers)
{
    redisReader *reader = redisReaderCreate();

    for (; *answers; answers++) {
        if (!read_request(fake, reader, connection) ||
            write(connection, *answers, strlen(*answers)) < 0)
            break;
    }
    redisReaderFree(reader);
}

static void *serve_all(void *context)
{
    struct fake *fake = context;

    for (size_t i = 0; i < fake->count; i++) {
        int connection = accept(fake->listener, NULL, NULL);

        if (connection < 0)
            break;
        serve(fake, connection, fake->connections[i]);
        if (i + 1 == fake->count)
            recv(connection, &(char){0}, 1, 0); /* until the other side closes */
        close(connection);
    }
    return NULL;
}

static void fake_start(struct fake *fake, const char *const (*connections)[4], size_t count)
{
    *fake = (struct fake){.connections = connections, .count = count};
    fake->address.sun_family = AF_UNIX;
    snprintf(fake->address.sun_path, sizeof(fake->address.sun_path), "/tmp/sluice-fake-%ld.sock",
             (long)getpid());
    unlink(fake->address.sun_path);
    fake->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fake->listener, (struct sockaddr *)&fake->address, sizeof(fake->address)),
                     0);
    assert_int_equal(listen(fake->listener, 8), 0);
    assert_int_equal(pthread_create(&fake->thread, NULL, serve_all, fake), 0);
}

static void fake_stop(struct fake *fake)
{
    shutdown(fake->listener, SHUT_RDWR);
    pthread_join(fake->thread, NULL);
    close(fake->listener);
    unlink(fake->address.sun_path);
}

static struct sl_redis_link *open_link(const char *path, uint32_t retry_ms)
{
    const struct sl_redis_link_options options = {.answer_ms = 5000, .retry_ms = retry_ms};
    struct sl_redis_address address = {.db = 0};
    struct sl_redis_link *link = NULL;
    struct failure failure;

    snprintf(address.path, sizeof(address.path), "%s", path);
    if (sl_redis_link_open(&address, &options, &link, &failure) < 0)
        fail_msg("%s", failure.text);
    return link;
}

static const struct sl_meta meta = {.shards = 1};

static void build_create(struct sl_call *call, struct sl_slice request_id)
{
    assert_int_equal(
        sl_user_create_call(call, &meta, request_id, SL_SLICE("ada"), SL_SLICE_NONE, NULL), 0);
}

/* Creates a user on the fake server; returns the result. On success the answer must contain id
 * 7. */
static int create_on(struct fake *fake, struct sl_slice request_id, uint32_t retry_ms,
                     struct failure *failure)
{
    struct sl_redis_link *link = open_link(fake->address.sun_path, retry_ms);
    struct sl_call call = SL_CALL_INIT;
    struct sl_written written;
    redisReply *reply = NULL;
    int r;

    build_create(&call, request_id);
    r = sl_redis_link_run(link, &call, &reply, failure);
    if (r == 0) {
        assert_int_equal(sl_write_reply(reply, &written, failure), 0);
        assert_int_equal(written.id, 7);
    } else {
        assert_null(reply);
    }
    assert_int_equal(call.argvlen[0], strlen("EVALSHA"));
    freeReplyObject(reply);
    sl_call_done(&call);
    sl_redis_link_close(link);
    fake_stop(fake);
    return r;
}

#define DONE "*2\r\n:0\r\n$1\r\n7\r\n"

static void test_script_is_sent_when_the_server_lacks_it(void **state)
{
    static const char *const connections[][4] = {{"-NOSCRIPT No matching script.\r\n", DONE}};
    struct failure failure;
    struct fake fake;

    (void)state;
    fake_start(&fake, connections, 1);
    assert_int_equal(create_on(&fake, SL_SLICE_NONE, 0, &failure), 0);
    assert_string_equal(fake.seen, "EVALSHA EVAL ");
}

static void test_lost_answer_of_a_repeatable_call_is_asked_for_again(void **state)
{
    static const char *const connections[][4] = {{"*2\r\n:0\r\n$1"}, {DONE}};
    struct failure failure;
    struct fake fake;

    (void)state;
    fake_start(&fake, connections, 2);
    assert_int_equal(create_on(&fake, SL_SLICE("r"), 5000, &failure), 0);
    assert_string_equal(fake.seen, "EVALSHA EVALSHA ");
}

static void test_lost_answer_of_another_call_is_an_error(void **state)
{
    static const char *const connections[][4] = {{"*2\r\n:0\r\n$1"}, {DONE}};
    struct failure failure;
    struct fake fake;

    (void)state;
    fake_start(&fake, connections, 2);
    assert_int_equal(create_on(&fake, SL_SLICE_NONE, 5000, &failure), -EIO);
    assert_non_null(strstr(failure.text, "broke before it answered"));
    assert_string_equal(fake.seen, "EVALSHA ");
}

static void test_without_time_to_retry_a_lost_answer_is_an_error(void **state)
{
    static const char *const connections[][4] = {{""}, {DONE}};
    struct failure failure;
    struct fake fake;

    (void)state;
    fake_start(&fake, connections, 2);
    assert_int_equal(create_on(&fake, SL_SLICE("r"), 0, &failure), -EIO);
    assert_string_equal(fake.seen, "EVALSHA ");
}

static void test_server_that_is_busy_is_asked_again(void **state)
{
    static const char *const connections[][4] = {
        {"-LOADING Redis is loading\r\n", "-BUSY Redis is busy\r\n", DONE}};
    struct failure failure;
    struct fake fake;

    (void)state;
    fake_start(&fake, connections, 1);
    assert_int_equal(create_on(&fake, SL_SLICE_NONE, 5000, &failure), 0);
    assert_string_equal(fake.seen, "EVALSHA EVALSHA EVALSHA ");
}

static void test_busy_is_told_when_there_is_no_time(void **state)
{
    static const char *const connections[][4] = {{"-BUSY Redis is busy\r\n"}};
    struct sl_call call = SL_CALL_INIT;
    struct sl_redis_link *link;
    redisReply *reply = NULL;
    struct sl_written written;
    struct fake fake;

    (void)state;
    fake_start(&fake, connections, 1);
    link = open_link(fake.address.sun_path, 0);
    build_create(&call, SL_SLICE_NONE);
    assert_int_equal(sl_redis_link_run(link, &call, &reply, NULL), 0);
    assert_int_equal(sl_write_reply(reply, &written, NULL), -EAGAIN);
    freeReplyObject(reply);
    sl_call_done(&call);
    sl_redis_link_close(link);
    fake_stop(&fake);
}

static void test_broken_protocol_is_a_lost_answer(void **state)
{
    static const char *const connections[][4] = {{"?what\r\n"}};
    struct failure failure;
    struct fake fake;

    (void)state;
    fake_start(&fake, connections, 1);
    assert_int_equal(create_on(&fake, SL_SLICE_NONE, 0, &failure), -EIO);
}

static void test_half_a_batch_that_was_answered_is_not_sent_again(void **state)
{
    static const char *const connections[][4] = {{"*0\r\n", "*1\r\n$1\r\n1\r\n"},
                                                 {"*2\r\n$1\r\n2\r\n$1\r\n3\r\n"}};
    struct sl_call calls[3] = {SL_CALL_INIT, SL_CALL_INIT, SL_CALL_INIT};
    redisReply *replies[3];
    struct sl_redis_link *link;
    struct fake fake;

    (void)state;
    fake_start(&fake, connections, 2);
    link = open_link(fake.address.sun_path, 5000);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(sl_following_call(&calls[i], 4096 + i, NULL), 0);
    assert_int_equal(sl_redis_link_run_many(link, calls, 3, replies, NULL), 0);
    assert_string_equal(fake.seen, "ZRANGE ZRANGE ZRANGE ");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(replies[i]->elements, i);
        freeReplyObject(replies[i]);
        sl_call_done(&calls[i]);
    }
    sl_redis_link_close(link);
    fake_stop(&fake);
}

static void test_failed_connection_says_where_and_why_without_the_password(void **state)
{
    const struct sl_redis_link_options options = {.retry_ms = 0};
    struct sl_redis_address address = {.path = "/nonexistent/redis.sock",
                                       .login.password = "secret"};
    struct sl_redis_link *link = NULL;
    struct failure failure;

    (void)state;
    assert_int_equal(sl_redis_link_open(&address, &options, &link, &failure), -ECONNREFUSED);
    assert_null(link);
    assert_string_equal(
        failure.text,
        "cannot connect to unix:///nonexistent/redis.sock: No such file or directory");
}

static void test_opening_survives_every_allocation_that_fails(void **state)
{
    static const char *const connections[][4] = {{NULL}};
    struct sl_redis_address address = {.db = 0};
    const struct sl_redis_link_options options = {.retry_ms = 0};
    struct sl_redis_link *link = NULL;
    struct failure failure;
    struct fake fake;

    (void)state;
    fake_start(&fake, connections, 1);
    memcpy(address.path, fake.address.sun_path, sizeof(address.path));
    mem_fail_after(0);
    assert_int_equal(sl_redis_link_open(&address, &options, &link, &failure), -ENOMEM);
    mem_fail_after(1);
    assert_int_equal(sl_redis_link_open(&address, &options, &link, &failure), -ENOMEM);
    mem_fail_after(2);
    assert_int_equal(sl_redis_link_open(&address, &options, &link, &failure), 0);
    mem_fail_never();
    sl_redis_link_close(link);
    fake_stop(&fake);
}

/* ---- a connection with failing allocations ---- */

static int appends_until_failure = -1; /* negative: none fails */

int __real_sl_redis_connection_append(struct sl_redis_connection *connection, int argc,
                                      const char *const *argv, const size_t *argvlen,
                                      struct failure *reterr);
int __wrap_sl_redis_connection_append(struct sl_redis_connection *connection, int argc,
                                      const char *const *argv, const size_t *argvlen,
                                      struct failure *reterr);

int __wrap_sl_redis_connection_append(struct sl_redis_connection *connection, int argc,
                                      const char *const *argv, const size_t *argvlen,
                                      struct failure *reterr)
{
    if (appends_until_failure >= 0 && appends_until_failure-- == 0)
        return failure_set(reterr, -ENOMEM, "out of memory");
    return __real_sl_redis_connection_append(connection, argc, argv, argvlen, reterr);
}

/* ---- a real server ---- */

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

static void test_link_outlives_a_restart_of_the_server(void **state)
{
    struct sl_redis_link *link = open_link(server.socket, 5000);
    struct sl_meta found, wanted = sl_meta_wanted(3);
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    size_t count;

    (void)state;
    assert_int_equal(sl_redis_link_meta(link, &wanted, &found, NULL), 0);
    assert_true(found.is_new);
    redis_server_restart(&server);
    assert_int_equal(sl_following_call(&call, 4096, NULL), 0);
    assert_int_equal(sl_redis_link_run(link, &call, &reply, NULL), 0);
    assert_int_equal(sl_following_reply(reply, &count, NULL), 0);
    freeReplyObject(reply);
    sl_call_done(&call);
    sl_redis_link_close(link);
}

/* Runs the script once, so that no later call fails because Redis does not know it. */
static void teach_script(struct sl_redis_link *link)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;

    build_create(&call, SL_SLICE_NONE);
    assert_int_equal(sl_redis_link_run(link, &call, &reply, NULL), 0);
    freeReplyObject(reply);
    sl_call_done(&call);
}

/* In a batch, the script's text goes first. Whichever cannot be sent: no call gets the answer of
 * another. */
static void test_what_could_not_be_sent_has_no_answer(void **state)
{
    static const char *const logins[] = {"first", "second"};
    const struct sl_redis_link_options options = {.answer_ms = 1000, .retry_ms = 5000};
    struct sl_redis_address address = {.db = 0};
    struct sl_meta found, wanted = sl_meta_wanted(1);
    redisContext *admin = redis_server_connect(&server);
    struct sl_redis_link *link;

    (void)state;
    memcpy(address.path, server.socket, sizeof(server.socket));
    for (int n = 0; n < 3; n++) {
        struct sl_call calls[2] = {SL_CALL_INIT, SL_CALL_INIT};
        redisReply *replies[2], *login;
        struct failure failure = {""};
        char ids[2][8];

        freeReplyObject(redisCommand(admin, "FLUSHALL"));
        assert_int_equal(sl_redis_link_open(&address, &options, &link, NULL), 0);
        assert_int_equal(sl_redis_link_meta(link, &wanted, &found, NULL), 0);
        teach_script(link);
        for (int i = 0; i < 2; i++) {
            snprintf(ids[i], sizeof(ids[i]), "r%d", i);
            assert_int_equal(sl_user_create_call(&calls[i], &found, sl_slice_str(ids[i]),
                                                 sl_slice_str(logins[i]), SL_SLICE_NONE, NULL),
                             0);
        }
        appends_until_failure = n;
        assert_int_equal(sl_redis_link_run_many(link, calls, 2, replies, &failure), 0);
        assert_int_equal(appends_until_failure, -1);
        for (int i = 0; i < 2; i++) {
            struct sl_written written;

            assert_int_equal(sl_write_reply(replies[i], &written, NULL), 0);
            assert_false(written.is_repeated); /* sent once */
            login = redisCommand(admin, "HGET sluice:{0}:logins %s", logins[i]);
            assert_int_equal(strtoull(login->str, NULL, 10), written.id);
            freeReplyObject(login);
            freeReplyObject(replies[i]);
            sl_call_done(&calls[i]);
        }
        sl_redis_link_close(link);
    }
    redisFree(admin);
}

static void test_password_user_and_database_are_used(void **state)
{
    redisContext *admin = redis_server_connect(&server);
    const struct sl_redis_link_options options = {.retry_ms = 0};
    struct sl_redis_address address = {.db = 3};
    struct sl_meta found, wanted = sl_meta_wanted(1);
    struct sl_redis_link *link;
    struct failure failure;
    redisReply *reply;

    (void)state;
    memcpy(address.path, server.socket, sizeof(server.socket));
    freeReplyObject(redisCommand(admin, "FLUSHALL"));
    freeReplyObject(redisCommand(admin, "ACL SETUSER ada on >secret ~* &* +@all"));
    strcpy(address.login.user, "ada");
    strcpy(address.login.password, "wrong");
    assert_int_equal(sl_redis_link_open(&address, &options, &link, &failure), -EACCES);
    assert_non_null(strstr(failure.text, "WRONGPASS"));
    assert_null(strstr(failure.text, "wrong "));
    strcpy(address.login.password, "secret");
    assert_int_equal(sl_redis_link_open(&address, &options, &link, &failure), 0);
    assert_int_equal(sl_redis_link_meta(link, &wanted, &found, NULL), 0);
    freeReplyObject(redisCommand(admin, "SELECT 3"));
    reply = redisCommand(admin, "EXISTS sluice:{0}:meta");
    assert_int_equal(reply->integer, 1);
    freeReplyObject(reply);
    address.db = 99;
    sl_redis_link_close(link);
    assert_int_equal(sl_redis_link_open(&address, &options, &link, &failure), -EIO);
    assert_non_null(strstr(failure.text, "DB index is out of range"));
    redisFree(admin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_script_is_sent_when_the_server_lacks_it),
        cmocka_unit_test(test_lost_answer_of_a_repeatable_call_is_asked_for_again),
        cmocka_unit_test(test_lost_answer_of_another_call_is_an_error),
        cmocka_unit_test(test_without_time_to_retry_a_lost_answer_is_an_error),
        cmocka_unit_test(test_server_that_is_busy_is_asked_again),
        cmocka_unit_test(test_busy_is_told_when_there_is_no_time),
        cmocka_unit_test(test_broken_protocol_is_a_lost_answer),
        cmocka_unit_test(test_half_a_batch_that_was_answered_is_not_sent_again),
        cmocka_unit_test(test_failed_connection_says_where_and_why_without_the_password),
        cmocka_unit_test(test_opening_survives_every_allocation_that_fails),
        cmocka_unit_test(test_link_outlives_a_restart_of_the_server),
        cmocka_unit_test(test_what_could_not_be_sent_has_no_answer),
        cmocka_unit_test(test_password_user_and_database_are_used),
    };

    return cmocka_run_group_tests(tests, start_server, stop_server);
}
