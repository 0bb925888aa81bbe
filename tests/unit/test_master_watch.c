/* What the gateway learns from its sentinels. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "gateway/redis/master_watch.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/fake_sentinel.h"
#include "tests/support/test_loop.h"

static struct test_loop test_loop;
static struct metrics_board *board;
static struct fake_sentinel fakes[2];
static struct sl_redis_address address;
static struct master_watch *watch;

static struct {
    unsigned named, news;
    struct sl_redis_endpoint master;
    struct sl_sentinel_news last;
    bool frees;
} told;

static void on_named(void *context, const struct sl_redis_endpoint *master)
{
    assert_ptr_equal(context, &told);
    told.named++;
    told.master = *master;
}

static void on_news(void *context, const struct sl_sentinel_news *news)
{
    assert_ptr_equal(context, &told);
    told.news++;
    told.last = *news;
    if (told.frees) {
        master_watch_free(watch);
        watch = NULL;
    }
}

static const struct master_watch_callbacks callbacks = {.news = on_news, .named = on_named};

#define run_until(condition) RUN_UNTIL(&test_loop, condition)

static struct master_watch *make_watch(void)
{
    return master_watch_new(&test_loop.uv, &address, metrics_slot(board, 0), &callbacks, &told);
}

static int begin(void **state)
{
    (void)state;
    memset(&told, 0, sizeof(told));
    test_loop_init(&test_loop, NULL);
    board = metrics_board_new(1);
    address = (struct sl_redis_address){.master_name = "blue", .sentinel_count = 2};
    for (unsigned i = 0; i < 2; i++) {
        fake_sentinel_open(&fakes[i]);
        address.sentinels[i] = fakes[i].endpoint;
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    master_watch_free(watch);
    watch = NULL;
    test_loop_done(&test_loop);
    metrics_board_free(board);
    for (unsigned i = 0; i < 2; i++)
        fake_sentinel_close(&fakes[i]);
    return 0;
}

static uint64_t heard(void)
{
    return metric_get(metrics_slot(board, 0), METRIC_SENTINELS_HEARD);
}

/* Waits until both have answered. */
static void start(void)
{
    watch = make_watch();
    for (unsigned i = 0; i < 2; i++) {
        run_until(fake_sentinel_accept(&fakes[i], false));
        fake_sentinel_name(&fakes[i], "10.0.0.1", 6379);
    }
    run_until(told.named == 2);
    assert_int_equal(heard(), 2);
}

static void test_every_sentinel_is_listened_to(void **state)
{
    (void)state;
    start();
    assert_string_equal(told.master.host, "10.0.0.1");
    assert_int_equal(told.master.port, 6379);
    for (unsigned i = 0; i < 2; i++) {
        fake_sentinel_tell(&fakes[i], "green 10.0.0.1 1 10.0.0.2 2");
        fake_sentinel_tell(&fakes[i], "blue 10.0.0.1 6379 10.0.0.2 6380");
        run_until(told.news == i + 1);
    }
    assert_int_equal(told.last.old_master.port, 6379);
    assert_int_equal(told.last.new_master.port, 6380);
}

static void test_sentinel_that_is_lost_is_tried_again(void **state)
{
    (void)state;
    start();
    fake_sentinel_hang_up(&fakes[1]);
    run_until(fake_sentinel_accept(&fakes[1], false));
    assert_int_equal(heard(), 1);
    fake_sentinel_say(&fakes[1], "*-1\r\n"); /* it does not know the master */
    run_until(fake_sentinel_accept(&fakes[1], false));
    fake_sentinel_say(&fakes[1], "nonsense\r\n");
    run_until(fake_sentinel_accept(&fakes[1], false));
    assert_int_equal(told.named, 2);
    fake_sentinel_name(&fakes[1], "10.0.0.1", 6380);
    run_until(told.named == 3);
    assert_int_equal(told.master.port, 6380);
    assert_int_equal(heard(), 2);
    fake_sentinel_tell(&fakes[1], "blue gone"); /* malformed */
    run_until(fake_sentinel_accept(&fakes[1], false));
    assert_int_equal(told.news, 0);
}

static void test_sentinels_are_logged_in_to(void **state)
{
    static const char expected[] = "*3\r\n$4\r\nAUTH\r\n$4\r\nwhom\r\n$4\r\nword\r\n*3\r\n";
    char said[512];

    (void)state;
    strcpy(address.sentinel_login.user, "whom");
    strcpy(address.sentinel_login.password, "word");
    watch = make_watch();
    run_until(fake_sentinel_accept(&fakes[0], false));
    fake_sentinel_say(&fakes[0], "-WRONGPASS no\r\n");
    run_until(fake_sentinel_accept(&fakes[0], false));
    fake_sentinel_say(&fakes[0], "+OK\r\n");
    fake_sentinel_name(&fakes[0], "10.0.0.1", 6379);
    run_until(told.named == 1);
    uv_run(&test_loop.uv, UV_RUN_NOWAIT); /* the answer arrived before the question was sent */
    fake_sentinel_read(&fakes[0], said, sizeof(said));
    said[strlen(expected)] = '\0';
    assert_string_equal(said, expected);
}

static void test_it_may_be_freed_by_whom_it_calls(void **state)
{
    (void)state;
    start();
    told.frees = true;
    fake_sentinel_tell(&fakes[0], "blue 10.0.0.1 6379 10.0.0.2 6380");
    fake_sentinel_tell(&fakes[0], "blue 10.0.0.2 6380 10.0.0.1 6379");
    run_until(told.news == 1);
    assert_int_equal(heard(), 0);
}

static void test_out_of_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    for (int n = 0; !watch; n++) {
        mem_fail_after(n);
        watch = make_watch();
        mem_fail_never();
        uv_run(&test_loop.uv, UV_RUN_NOWAIT); /* closes handles */
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_every_sentinel_is_listened_to),
        TEST(test_sentinel_that_is_lost_is_tried_again),
        TEST(test_sentinels_are_logged_in_to),
        TEST(test_it_may_be_freed_by_whom_it_calls),
        TEST(test_out_of_memory_leaves_nothing_behind),
    };

    log_set_level(LOG_LEVEL_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
