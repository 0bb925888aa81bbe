/* test_subscriber.c - the subscriber with a real redis-server, and with servers that misbehave. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "gateway/intake/subscriber.h"
#include "gateway/metrics/metrics.h"
#include "src/model/id.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/test_loop.h"
#include "tests/support/redis_server.h"

enum { TIMEOUT_MS = 20000 }; /* for a working Redis on a slow machine */

static struct test_loop test_loop;
static struct metrics_board *board;
static struct metrics *metrics;
static struct redis_server server;
static redisContext *publisher;

/* The callbacks of the tested subscriber. */
static struct {
    struct subscriber *subscriber;
    struct buffer messages; /* "shard:id=json " */
    size_t message_count, turn_count;
    size_t unended; /* messages after the last end of a turn */
    uint64_t last_id;
    struct buffer log_ends; /* "shard:id " */
    int log_end_error;      /* returned once by on_log_end() */
    size_t subscribed_count, lost_count;
    uint32_t shards;
    char reason[256];
    bool free_on_message, free_on_lost;
} told;

static void free_subscriber(void)
{
    subscriber_free(told.subscriber);
    told.subscriber = NULL;
}

static void on_message(void *context, const struct live_message *message)
{
    assert_ptr_equal(context, &told);
    if (message->body.size < 100)
        buffer_append_format(&told.messages, "%u:%" PRIu64 "=%.*s ", message->shard, message->id,
                             SL_SLICE_ARG(message->body));
    told.message_count++;
    told.unended++;
    told.last_id = message->id;
    if (told.free_on_message)
        free_subscriber();
}

static int on_log_end(void *context, uint32_t shard, uint64_t id)
{
    int error = told.log_end_error;

    assert_ptr_equal(context, &told);
    told.log_end_error = 0;
    buffer_append_format(&told.log_ends, "%u:%" PRIu64 " ", shard, id);
    return error;
}

static void on_turn_end(void *context)
{
    (void)context;
    assert_true(told.unended > 0);
    told.unended = 0;
    told.turn_count++;
}

static void on_subscribed(void *context, uint32_t shards)
{
    (void)context;
    told.subscribed_count++;
    told.shards = shards;
}

static void on_lost(void *context, const char *reason)
{
    (void)context;
    assert_int_equal(told.unended, 0);
    told.lost_count++;
    snprintf(told.reason, sizeof(told.reason), "%s", reason);
    if (told.free_on_lost)
        free_subscriber();
}

static const struct subscriber_callbacks callbacks = {
    .log_end = on_log_end,
    .message = on_message,
    .turn_end = on_turn_end,
    .subscribed = on_subscribed,
    .lost = on_lost,
};

/* ---- an event loop with a deadline ---- */

static void complain(void)
{
    fail_msg("waited too long; messages: %.*s", SL_SLICE_ARG(buffer_slice(&told.messages)));
}

#define run_until(condition) RUN_UNTIL(&test_loop, condition)
#define run(...)             redis_server_run(publisher, __VA_ARGS__)

static int open_loop(void **state)
{
    (void)state;
    test_loop_init(&test_loop, complain);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    return 0;
}

static int close_loop(void **state)
{
    (void)state;
    subscriber_free(told.subscriber);
    test_loop_done(&test_loop);
    metrics_board_free(board);
    buffer_done(&told.messages);
    buffer_done(&told.log_ends);
    memset(&told, 0, sizeof(told));
    return 0;
}

static int start_redis(void **state)
{
    (void)state;
    redis_server_init(&server, true);
    publisher = redis_server_connect(&server);
    return open_loop(state);
}

static int stop_redis(void **state)
{
    close_loop(state);
    redisFree(publisher);
    redis_server_done(&server);
    return 0;
}

static uint32_t rest_ms;

static void subscribe_to(const char *url, uint32_t ping_ms, uint32_t timeout_ms)
{
    struct sl_redis_address address;
    struct failure failure;
    struct subscriber_settings settings = {
        .loop = &test_loop.uv,
        .address = &address,
        .metrics = metrics,
        .ping_ms = ping_ms,
        .timeout_ms = timeout_ms,
        .rest_ms = rest_ms,
    };

    if (sl_redis_address_parse(sl_slice_str(url), &address, &failure) < 0)
        fail_msg("%s: %s", url, failure.text);
    told.subscriber = subscriber_new(&settings, &callbacks, &told);
    assert_non_null(told.subscriber);
}

static void subscribe(void)
{
    subscribe_to(server.url, TIMEOUT_MS, TIMEOUT_MS);
    run_until(told.subscribed_count == 1);
}

static void publish(const char *payload)
{
    run("PUBLISH sluice:{0}:live %s", payload);
}

static void reconnect_publisher(void)
{
    redisFree(publisher);
    publisher = redis_server_connect(&server);
}

static void expect_messages(const char *expected)
{
    buffer_append_char(&told.messages, '\0');
    assert_string_equal(told.messages.data, expected);
    buffer_clear(&told.messages);
}

/* ---- on Redis ---- */

static void test_empty_redis_becomes_a_database_of_one_shard(void **state)
{
    redisReply *reply;

    (void)state;
    subscribe();
    assert_int_equal(told.shards, 1);
    assert_int_equal(subscriber_shards(told.subscriber), 1);
    assert_true(subscriber_is_subscribed(told.subscriber));
    assert_int_equal(metric_get(metrics, METRIC_SUBSCRIBED), 1);
    reply = redisCommand(publisher, "HGET sluice:{0}:meta shards");
    assert_string_equal(reply->str, "1");
    freeReplyObject(reply);
    reply = redisCommand(publisher, "CLIENT LIST TYPE PUBSUB");
    assert_non_null(strstr(reply->str, "name=sluiced"));
    freeReplyObject(reply);
}

static void test_messages_arrive_in_order(void **state)
{
    (void)state;
    subscribe();
    publish("4096 0 {\"a\":1}");
    publish("{\"plain\":1}");
    publish("4097 4096 {\"a\":2}");
    run_until(told.message_count == 3);
    expect_messages("0:4096={\"a\":1} 0:0={\"plain\":1} 0:4097={\"a\":2} ");
    run_until(told.unended == 0);
}

static void test_all_shards_of_a_database_are_heard(void **state)
{
    (void)state;
    run("HSET sluice:{0}:meta schema 1 database 0123456789abcdef0123456789abcdef shards 3 "
        "log_count 1000 log_age_ms 1000");
    subscribe();
    assert_int_equal(told.shards, 3);
    run("PUBLISH sluice:{2}:live %s", "4224 0 {}");
    run("PUBLISH sluice:{1}:live %s", "4160 0 {}");
    run("PUBLISH sluice:{3}:live %s", "4288 0 {}");
    run("PUBLISH sluice:{0}:live %s", "4096 0 {}");
    run_until(told.message_count == 3);
    expect_messages("2:4224={} 1:4160={} 0:4096={} ");
    run("EXISTS sluice:{1}:meta sluice:{2}:meta");
}

static void test_many_messages_come_in_few_turns(void **state)
{
    enum { COUNT = 20000 };
    char filler[400];
    uint64_t previous = 0;

    (void)state;
    memset(filler, 'x', sizeof(filler) - 1);
    filler[sizeof(filler) - 1] = '\0';
    subscribe();
    for (int i = 1; i <= COUNT; i++) {
        uint64_t id = (uint64_t)i * SL_ID_PER_MS;
        char payload[512];

        snprintf(payload, sizeof(payload), "%" PRIu64 " %" PRIu64 " {\"t\":\"%s\"}", id, previous,
                 filler);
        redisAppendCommand(publisher, "PUBLISH sluice:{0}:live %s", payload);
        previous = id;
    }
    for (int i = 1; i <= COUNT; i++) {
        redisReply *reply;

        assert_int_equal(redisGetReply(publisher, (void **)&reply), REDIS_OK);
        assert_int_equal(reply->type, REDIS_REPLY_INTEGER);
        freeReplyObject(reply);
    }
    run_until(told.message_count == COUNT);
    assert_int_equal(told.last_id, previous);
    assert_true(told.turn_count < COUNT / 10);
}

static void publish_many(size_t count)
{
    for (size_t n = 0; n < count; n++)
        redisAppendCommand(publisher, "PUBLISH sluice:{0}:live {}");
    for (size_t n = 0; n < count; n++) {
        redisReply *reply = NULL;

        assert_int_equal(redisGetReply(publisher, (void **)&reply), REDIS_OK);
        freeReplyObject(reply);
    }
}

/* Publishes one message; returns how long it took to arrive. */
static uint64_t heard_after_ms(void)
{
    size_t count = told.message_count;
    uint64_t began_ms = uv_now(&test_loop.uv);

    publish_many(1);
    run_until(told.message_count == count + 1);
    return uv_now(&test_loop.uv) - began_ms;
}

static void test_who_is_busy_rests(void **state)
{
    size_t count = 0;

    (void)state;
    rest_ms = 300;
    subscribe();
    rest_ms = 0;
    do {
        count += 2001;
        publish_many(2000);
        run_until(told.message_count == count - 1);
    } while (heard_after_ms() < 250);
    heard_after_ms(); /* it continues, and is not busy any more */
}

static void test_bad_headers_are_counted_and_dropped(void **state)
{
    static const char nul[] = "\0{}";

    (void)state;
    subscribe();
    publish("hello");
    publish("");
    run("PUBLISH sluice:{0}:live %b", nul, sizeof(nul) - 1);
    publish("{\"a\":1}");
    run_until(told.message_count == 1);
    assert_int_equal(metric_get(metrics, METRIC_EVENTS_BAD_HEADER), 3);
    assert_int_equal(told.lost_count, 0);
}

static void expect_log_ends(const char *expected)
{
    buffer_append_char(&told.log_ends, '\0');
    assert_string_equal(told.log_ends.data, expected);
    buffer_clear(&told.log_ends);
}

static void test_end_of_each_log_is_told_first(void **state)
{
    (void)state;
    run("HSET sluice:{0}:meta schema 1 database 0123456789abcdef0123456789abcdef shards 3 "
        "log_count 1000 log_age_ms 1000");
    run("XADD sluice:{0}:log 4096-0 p 0 e {}");
    run("XADD sluice:{2}:log 4224-0 p 0 e {}");
    run("XADD sluice:{2}:log 4225-0 p 4224 e {}");
    subscribe();
    expect_log_ends("0:4096 1:0 2:4225 ");
}

static void test_log_of_another_type_is_read_again(void **state)
{
    (void)state;
    run("SET sluice:{0}:log x");
    subscribe_to(server.url, TIMEOUT_MS, TIMEOUT_MS);
    for (int turn = 0; turn < 20; turn++)
        uv_run(&test_loop.uv, UV_RUN_ONCE);
    assert_int_equal(told.subscribed_count, 0);
    run("DEL sluice:{0}:log");
    run_until(told.subscribed_count == 1);
    expect_log_ends("0:0 ");
}

static void test_who_cannot_take_the_end_of_the_log_is_told_again(void **state)
{
    (void)state;
    told.log_end_error = -ENOMEM;
    subscribe();
    expect_log_ends("0:0 0:0 ");
    assert_int_equal(told.lost_count, 0);
}

static void test_restarted_redis_is_heard_again_and_the_end_of_its_log_told(void **state)
{
    (void)state;
    subscribe();
    expect_log_ends("0:0 ");
    run("XADD sluice:{0}:log 4096-0 p 0 e {}");
    publish("4096 0 {}");
    run_until(told.message_count == 1);
    redis_server_kill(&server);
    run_until(told.lost_count == 1);
    assert_string_equal(told.reason, "Redis closed the connection");
    assert_false(subscriber_is_subscribed(told.subscriber));
    assert_int_equal(metric_get(metrics, METRIC_SUBSCRIBED), 0);
    redis_server_restart(&server);
    run_until(told.subscribed_count == 2);
    reconnect_publisher();
    expect_log_ends("0:4096 ");
    publish("8192 4096 {}");
    run_until(told.message_count == 2);
    assert_int_equal(metric_get(metrics, METRIC_SUBSCRIPTIONS), 2);
    assert_int_equal(metric_get(metrics, METRIC_SUBSCRIPTIONS_LOST), 1);
}

static void test_killed_connection_comes_back(void **state)
{
    (void)state;
    subscribe();
    run("CLIENT KILL TYPE pubsub");
    run_until(told.subscribed_count == 2);
    publish("{\"a\":1}");
    run_until(told.message_count == 1);
    assert_int_equal(told.lost_count, 1);
}

static void test_redis_that_is_down_at_first_is_waited_for(void **state)
{
    (void)state;
    redis_server_kill(&server);
    subscribe_to(server.url, TIMEOUT_MS, TIMEOUT_MS);
    for (int turn = 0; turn < 3; turn++) /* the first attempts fail */
        uv_run(&test_loop.uv, UV_RUN_ONCE);
    redis_server_restart(&server);
    run_until(told.subscribed_count == 1);
    assert_int_equal(told.lost_count, 0);
}

static void test_silent_redis_is_given_up_and_heard_again(void **state)
{
    (void)state;
    subscribe_to(server.url, 50, 200);
    run_until(told.subscribed_count == 1);
    kill(server.pid, SIGSTOP);
    run_until(told.lost_count == 1);
    assert_string_equal(told.reason, "Redis is silent");
    kill(server.pid, SIGCONT);
    run_until(told.subscribed_count == 2);
}

static void on_expiry(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

/* A Redis that gets no time to answer is rightly given up, and the second part starts again. */
static void test_quiet_redis_answers_pings_and_stays(void **state)
{
    uv_timer_t timer;
    size_t lost;

    (void)state;
    subscribe_to(server.url, 200, TIMEOUT_MS);
    uv_timer_init(&test_loop.uv, &timer);
    for (int tries = 0; tries == 0 || told.lost_count > lost; tries++) {
        bool is_over = false;

        assert_in_range(tries, 0, 20);
        lost = told.lost_count;
        run_until(told.subscribed_count == lost + 1);
        timer.data = &is_over;
        uv_timer_start(&timer, on_expiry, 1000, 0);
        run_until(is_over);
    }
    uv_close((uv_handle_t *)&timer, NULL);
    run_until(told.subscribed_count == told.lost_count + 1);
    publish("{\"a\":1}");
    run_until(told.message_count == 1);
}

/* As if the machine had slept: the timer is late, the answers are there already. */
static void test_stopped_process_reads_before_it_gives_up(void **state)
{
    uint64_t before;

    (void)state;
    subscribe_to(server.url, 20, TIMEOUT_MS);
    run_until(told.subscribed_count == 1);
    for (int i = 0; i < 5; i++) {
        before = uv_hrtime();
        publish("{\"a\":1}");
        while (uv_hrtime() - before < UINT64_C(100) * 1000000)
            continue; /* several periods pass without the loop */
        run_until(told.message_count == (size_t)i + 1);
    }
    assert_int_equal(told.lost_count, 0);
}

/* Returns a loopback TCP port that was free just now. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* Lets the server also listen on a port, and subscribes there. */
static void subscribe_by_tcp(const char *user_and_password)
{
    char url[256];
    int port = free_port();

    run("CONFIG SET port %d", port);
    snprintf(url, sizeof(url), "redis://%s@127.0.0.1:%d", user_and_password, port);
    subscribe_to(url, TIMEOUT_MS, TIMEOUT_MS);
}

static void test_password_is_used(void **state)
{
    (void)state;
    run("CONFIG SET requirepass se@cret");
    reconnect_publisher();
    run("AUTH se@cret");
    subscribe_by_tcp(":se%40cret");
    run_until(told.subscribed_count == 1);
}

static void test_user_is_used(void **state)
{
    (void)state;
    run("ACL SETUSER listener on >secret ~* &* +@all");
    subscribe_by_tcp("listener:secret");
    run_until(told.subscribed_count == 1);
}

static void test_wrong_password_is_tried_again_until_it_is_right(void **state)
{
    char log[4096] = "";
    int log_pipe[2];
    int stderr_copy = dup(STDERR_FILENO);

    (void)state;
    run("ACL SETUSER listener on >right ~* &* +@all");
    assert_int_equal(pipe(log_pipe), 0);
    dup2(log_pipe[1], STDERR_FILENO);
    subscribe_by_tcp("listener:wrong");
    for (int turn = 0; turn < 12; turn++) /* a few attempts, but one log line */
        uv_run(&test_loop.uv, UV_RUN_ONCE);
    dup2(stderr_copy, STDERR_FILENO);
    close(stderr_copy);
    close(log_pipe[1]);
    assert_true(read(log_pipe[0], log, sizeof(log) - 1) > 0);
    close(log_pipe[0]);
    assert_non_null(strstr(log, "event=redis_unavailable"));
    assert_null(strstr(log, "wrong "));
    assert_null(strstr(strchr(log, '\n'), "event=redis_unavailable"));
    assert_int_equal(told.subscribed_count, 0);
    run("ACL SETUSER listener >wrong");
    run_until(told.subscribed_count == 1);
}

static void test_database_number_is_selected(void **state)
{
    char url[256];
    redisReply *reply;

    (void)state;
    snprintf(url, sizeof(url), "%s?db=3", server.url);
    subscribe_to(url, TIMEOUT_MS, TIMEOUT_MS);
    run_until(told.subscribed_count == 1);
    run("SELECT 3");
    reply = redisCommand(publisher, "EXISTS sluice:{0}:meta");
    assert_int_equal(reply->integer, 1);
    freeReplyObject(reply);
}

static void test_tcp_by_name(void **state)
{
    char url[64];
    int port = free_port();

    (void)state;
    snprintf(url, sizeof(url), "redis://localhost:%d", port);
    subscribe_to(url, TIMEOUT_MS, TIMEOUT_MS);
    for (int turn = 0; turn < 6; turn++) /* refused at first, on each of the name's addresses */
        uv_run(&test_loop.uv, UV_RUN_ONCE);
    run("CONFIG SET port %d", port);
    run_until(told.subscribed_count == 1);
    publish("{\"a\":1}");
    run_until(told.message_count == 1);
}

static void test_unknown_host_is_survived(void **state)
{
    (void)state;
    subscribe_to("redis://no-such-host.invalid:1", TIMEOUT_MS, TIMEOUT_MS);
    for (int turn = 0; turn < 4; turn++)
        uv_run(&test_loop.uv, UV_RUN_ONCE);
    assert_int_equal(told.subscribed_count, 0);
}

static void test_foreign_schema_is_refused(void **state)
{
    (void)state;
    run("HSET sluice:{0}:meta schema 99 database x shards 1");
    subscribe_to(server.url, TIMEOUT_MS, TIMEOUT_MS);
    for (int turn = 0; turn < 10; turn++)
        uv_run(&test_loop.uv, UV_RUN_ONCE);
    assert_int_equal(told.subscribed_count, 0);
    run("DEL sluice:{0}:meta");
    run_until(told.subscribed_count == 1);
}

/* It is freed after each number of turns, from the first to one that has subscribed. */
static void test_it_can_be_freed_at_any_time(void **state)
{
    (void)state;
    for (int turns = 0; told.subscribed_count == 0; turns++) {
        subscribe_to(server.url, TIMEOUT_MS, TIMEOUT_MS);
        for (int turn = 0; turn < turns; turn++)
            uv_run(&test_loop.uv, UV_RUN_ONCE);
        subscriber_free(told.subscriber);
        told.subscriber = NULL;
        while (uv_run(&test_loop.uv, UV_RUN_NOWAIT))
            continue;
        assert_true(turns < 1000);
    }
    subscribe_to("redis://localhost:1", TIMEOUT_MS, TIMEOUT_MS);
    uv_run(&test_loop.uv, UV_RUN_NOWAIT); /* the name is being looked up */
}

static void test_it_can_be_freed_by_its_callbacks(void **state)
{
    (void)state;
    subscribe();
    redisAppendCommand(publisher, "PUBLISH sluice:{0}:live {\"a\":1}");
    redisAppendCommand(publisher, "PUBLISH sluice:{0}:live {\"a\":2}");
    for (int i = 0; i < 2; i++) {
        redisReply *reply;

        assert_int_equal(redisGetReply(publisher, (void **)&reply), REDIS_OK);
        freeReplyObject(reply);
    }
    told.free_on_message = true;
    run_until(told.message_count == 1);
    while (uv_run(&test_loop.uv, UV_RUN_NOWAIT))
        continue;
    assert_int_equal(told.message_count, 1);

    told.subscribed_count = 0;
    told.unended = 0;
    told.free_on_lost = true;
    subscribe();
    run("CLIENT KILL TYPE pubsub");
    run_until(told.lost_count == 1);
    while (uv_run(&test_loop.uv, UV_RUN_NOWAIT))
        continue;
}

static void test_out_of_memory_delays_it_at_most(void **state)
{
    bool has_failed = true;

    (void)state;
    for (uint64_t n = 0; has_failed; n++) {
        struct sl_redis_address address;
        struct subscriber_settings settings = {.loop = &test_loop.uv,
                                               .address = &address,
                                               .metrics = metrics,
                                               .ping_ms = 5000,
                                               .timeout_ms = 5000};
        size_t before = told.subscribed_count;

        assert_int_equal(sl_redis_address_parse(sl_slice_str(server.url), &address, NULL), 0);
        mem_fail_after(n);
        told.subscriber = subscriber_new(&settings, &callbacks, &told);
        while (told.subscriber && !mem_failed() && told.subscribed_count == before)
            uv_run(&test_loop.uv, UV_RUN_ONCE);
        has_failed = mem_failed();
        mem_fail_never();
        if (!told.subscriber)
            continue;
        run_until(told.subscribed_count == before + 1);
        subscriber_free(told.subscriber);
        told.subscriber = NULL;
        while (uv_run(&test_loop.uv, UV_RUN_NOWAIT))
            continue;
    }
}

/* ---- with servers that are not Redis ---- */

static char fake_path[108];
static uv_pipe_t fake;
static struct sl_slice fake_says; /* sent to every client */
static bool fake_hangs_up;
static size_t fake_connections;
static struct buffer fake_heard;

static void on_fake_closed(uv_handle_t *handle)
{
    free(handle);
}

static void on_fake_room(uv_handle_t *handle, size_t size, uv_buf_t *ret_room)
{
    static char room[4096];

    (void)handle;
    (void)size;
    *ret_room = uv_buf_init(room, sizeof(room));
}

static void on_fake_heard(uv_stream_t *stream, ssize_t size, const uv_buf_t *room)
{
    if (size < 0)
        uv_close((uv_handle_t *)stream, on_fake_closed);
    else
        buffer_append(&fake_heard, room->base, (size_t)size);
}

static void on_fake_said(uv_write_t *write, int status)
{
    (void)status; /* the subscriber may have disconnected before it read everything */
    free(write);
}

static void on_fake_connection(uv_stream_t *listener, int status)
{
    uv_pipe_t *client = malloc(sizeof(*client));
    uv_write_t *write = malloc(sizeof(*write));
    uv_buf_t says = uv_buf_init((char *)fake_says.data, (unsigned)fake_says.size);

    assert_int_equal(status, 0);
    fake_connections++;
    uv_pipe_init(&test_loop.uv, client, 0);
    assert_int_equal(uv_accept(listener, (uv_stream_t *)client), 0);
    assert_int_equal(uv_write(write, (uv_stream_t *)client, &says, 1, on_fake_said), 0);
    if (fake_hangs_up)
        uv_close((uv_handle_t *)client, on_fake_closed);
    else
        uv_read_start((uv_stream_t *)client, on_fake_room, on_fake_heard);
}

static int open_fake(void **state)
{
    int r = open_loop(state);

    snprintf(fake_path, sizeof(fake_path), "/tmp/sluice-fake-%d.sock", (int)getpid());
    unlink(fake_path);
    uv_pipe_init(&test_loop.uv, &fake, 0);
    assert_int_equal(uv_pipe_bind(&fake, fake_path), 0);
    assert_int_equal(uv_listen((uv_stream_t *)&fake, 8, on_fake_connection), 0);
    fake_says = SL_SLICE("");
    fake_hangs_up = false;
    fake_connections = 0;
    return r;
}

static int close_fake(void **state)
{
    subscriber_free(told.subscriber);
    told.subscriber = NULL;
    if (!uv_is_closing((uv_handle_t *)&fake))
        uv_close((uv_handle_t *)&fake, NULL);
    buffer_done(&fake_heard);
    return close_loop(state);
}

static void subscribe_to_fake(uint32_t timeout_ms)
{
    char url[128];

    snprintf(url, sizeof(url), "unix://%s", fake_path);
    subscribe_to(url, TIMEOUT_MS, timeout_ms);
}

static void expect_to_come_back(void)
{
    size_t before = fake_connections;

    run_until(fake_connections >= before + 2);
    assert_int_equal(told.subscribed_count, 0);
    assert_int_equal(told.lost_count, 0);
}

static void test_server_that_says_nothing_is_left_in_time(void **state)
{
    (void)state;
    subscribe_to_fake(30);
    expect_to_come_back();
    assert_memory_equal(fake_heard.data, "*3\r\n$6\r\nCLIENT\r\n", 16);
}

static void test_server_that_hangs_up_is_tried_again(void **state)
{
    (void)state;
    fake_hangs_up = true;
    subscribe_to_fake(TIMEOUT_MS);
    expect_to_come_back();
}

static void test_server_that_speaks_another_protocol_is_left(void **state)
{
    (void)state;
    fake_says = SL_SLICE("HTTP/1.1 400 Bad Request\r\n\r\n");
    subscribe_to_fake(TIMEOUT_MS);
    expect_to_come_back();
}

static void test_server_that_answers_everything_with_an_error_is_left(void **state)
{
    (void)state;
    fake_says =
        SL_SLICE("-ERR no\r\n-ERR no\r\n-LOADING Redis is loading the dataset in memory\r\n");
    subscribe_to_fake(TIMEOUT_MS);
    expect_to_come_back();
}

#define ALONE "-ERR This instance has cluster support disabled\r\n"
#define META                                                                                       \
    "*7\r\n:0\r\n$1\r\n1\r\n$32\r\n0123456789abcdef0123456789abcdef\r\n$1\r\n1\r\n$4\r\n1000\r\n"  \
    "$4\r\n1000\r\n$0\r\n\r\n*0\r\n" /* and an empty log */
#define CONFIRMATION "*3\r\n$9\r\nsubscribe\r\n$15\r\nsluice:{0}:live\r\n:1\r\n"

static void test_error_while_hearing_ends_the_subscription(void **state)
{
    (void)state;
    fake_says = SL_SLICE("+OK\r\n" ALONE META CONFIRMATION
                         "*3\r\n$7\r\nmessage\r\n$15\r\nsluice:{0}:live\r\n$2\r\n{}\r\n"
                         "-ERR enough\r\n");
    subscribe_to_fake(TIMEOUT_MS);
    run_until(told.lost_count == 1);
    assert_int_equal(told.message_count, 1);
    assert_int_equal(told.turn_count, 1);
    assert_non_null(strstr(told.reason, "enough"));
}

static void test_odd_pushes_are_passed_over_or_end_it(void **state)
{
    (void)state;
    fake_says =
        SL_SLICE("+OK\r\n" ALONE META CONFIRMATION CONFIRMATION "*2\r\n$4\r\npong\r\n$0\r\n\r\n"
                 "*3\r\n$7\r\nmessage\r\n:1\r\n:2\r\n"
                 "*4\r\n$8\r\npmessage\r\n$1\r\n*\r\n$1\r\na\r\n$2\r\n{}\r\n"
                 "*3\r\n$7\r\nmessage\r\n$15\r\nsluice:{0}:live\r\n$2\r\n{}\r\n"
                 "*0\r\n");
    subscribe_to_fake(TIMEOUT_MS);
    run_until(told.lost_count == 1);
    assert_int_equal(told.subscribed_count, 1);
    assert_int_equal(told.message_count, 1);
}

static void test_endless_reply_ends_it(void **state)
{
    static const char beginning[] =
        "+OK\r\n" ALONE META CONFIRMATION
        "*3\r\n$7\r\nmessage\r\n$15\r\nsluice:{0}:live\r\n$500000000\r\n";
    size_t size = 66 * 1024 * 1024;
    char *endless = calloc(1, size);

    (void)state;
    memcpy(endless, beginning, sizeof(beginning) - 1);
    fake_says = sl_slice(endless, size);
    subscribe_to_fake(TIMEOUT_MS);
    run_until(told.lost_count == 1);
    assert_string_equal(told.reason, "Redis sent too long a message");
    uv_close((uv_handle_t *)&fake, NULL);
    subscriber_free(told.subscriber);
    told.subscriber = NULL;
    while (uv_run(&test_loop.uv, UV_RUN_NOWAIT))
        continue;
    free(endless);
}

int main(void)
{
#define redis_test(name) cmocka_unit_test_setup_teardown(name, start_redis, stop_redis)
#define fake_test(name)  cmocka_unit_test_setup_teardown(name, open_fake, close_fake)
    static const struct CMUnitTest tests[] = {
        redis_test(test_empty_redis_becomes_a_database_of_one_shard),
        redis_test(test_messages_arrive_in_order),
        redis_test(test_all_shards_of_a_database_are_heard),
        redis_test(test_many_messages_come_in_few_turns),
        redis_test(test_who_is_busy_rests),
        redis_test(test_bad_headers_are_counted_and_dropped),
        redis_test(test_end_of_each_log_is_told_first),
        redis_test(test_log_of_another_type_is_read_again),
        redis_test(test_who_cannot_take_the_end_of_the_log_is_told_again),
        redis_test(test_restarted_redis_is_heard_again_and_the_end_of_its_log_told),
        redis_test(test_killed_connection_comes_back),
        redis_test(test_redis_that_is_down_at_first_is_waited_for),
        redis_test(test_silent_redis_is_given_up_and_heard_again),
        redis_test(test_quiet_redis_answers_pings_and_stays),
        redis_test(test_stopped_process_reads_before_it_gives_up),
        redis_test(test_password_is_used),
        redis_test(test_user_is_used),
        redis_test(test_wrong_password_is_tried_again_until_it_is_right),
        redis_test(test_database_number_is_selected),
        redis_test(test_tcp_by_name),
        redis_test(test_foreign_schema_is_refused),
        redis_test(test_it_can_be_freed_at_any_time),
        redis_test(test_it_can_be_freed_by_its_callbacks),
        redis_test(test_out_of_memory_delays_it_at_most),
        cmocka_unit_test_setup_teardown(test_unknown_host_is_survived, open_loop, close_loop),
        fake_test(test_server_that_says_nothing_is_left_in_time),
        fake_test(test_server_that_hangs_up_is_tried_again),
        fake_test(test_server_that_speaks_another_protocol_is_left),
        fake_test(test_server_that_answers_everything_with_an_error_is_left),
        fake_test(test_error_while_hearing_ends_the_subscription),
        fake_test(test_odd_pushes_are_passed_over_or_end_it),
        fake_test(test_endless_reply_ends_it),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
