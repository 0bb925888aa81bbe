/* The sentinels of a blocking connection: which are asked, and how later messages are handled. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "src/redis/sentinels.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/fake_sentinel.h"

static struct fake_sentinel fakes[2];
static struct sl_redis_address address;
static struct sl_sentinels *sentinels;

static int begin(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_IGN);
    address = (struct sl_redis_address){.master_name = "blue", .sentinel_count = 2};
    for (unsigned i = 0; i < 2; i++) {
        fake_sentinel_open(&fakes[i]);
        address.sentinels[i] = fakes[i].endpoint;
    }
    sentinels = sl_sentinels_new(&address, 60000);
    return sentinels ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    sl_sentinels_free(sentinels);
    for (unsigned i = 0; i < 2; i++)
        fake_sentinel_close(&fakes[i]);
    return 0;
}

/* What the fakes do while they are asked: each one in the list in turn, the last one names
 * `port`. */
struct play {
    unsigned count;
    struct {
        struct fake_sentinel *who;
        const char *says; /* NULL: names the port */
    } scenes[3];
    unsigned port;
};

static void *perform(void *context)
{
    const struct play *play = context;

    for (unsigned i = 0; i < play->count; i++) {
        struct fake_sentinel *who = play->scenes[i].who;

        if (!fake_sentinel_accept(who, true))
            return NULL;
        if (!play->scenes[i].says)
            fake_sentinel_name(who, "10.0.0.1", play->port);
        else if (*play->scenes[i].says)
            fake_sentinel_say(who, "%s", play->scenes[i].says);
        else
            fake_sentinel_hang_up(who);
    }
    return NULL;
}

static int find(const struct play *play, struct sl_redis_endpoint *ret_master)
{
    struct failure failure = {""};
    pthread_t thread;
    int r;

    assert_int_equal(pthread_create(&thread, NULL, perform, (void *)play), 0);
    r = sl_sentinels_find(sentinels, ret_master, &failure);
    pthread_join(thread, NULL);
    if (r < 0)
        assert_non_null(strstr(failure.text, "no sentinel says which Redis is the master: "));
    return r;
}

static void find_at(struct fake_sentinel *who, unsigned port)
{
    const struct play play = {.count = 1, .scenes = {{who, NULL}}, .port = port};
    struct sl_redis_endpoint master;

    assert_int_equal(find(&play, &master), 0);
    assert_int_equal(master.port, port);
}

/* Waits for a message, which may take a moment. */
static void wait_moved(uint64_t now_ms, unsigned port)
{
    const struct timespec pause = {0, 1000000};
    struct sl_redis_endpoint master;

    for (unsigned i = 0; !sl_sentinels_have_moved(sentinels, now_ms, &master); i++) {
        assert_in_range(i, 0, 30000);
        nanosleep(&pause, NULL);
    }
    assert_int_equal(master.port, port);
    assert_false(sl_sentinels_have_moved(sentinels, now_ms, &master));
    assert_int_equal(master.port, port);
}

static void test_another_one_is_asked_when_one_does_not_know(void **state)
{
    const struct play play = {
        .count = 3,
        .scenes = {{&fakes[0], "*-1\r\n"}, {&fakes[1], ""}, {&fakes[0], NULL}},
        .port = 1};
    const struct play second = {
        .count = 2, .scenes = {{&fakes[0], "-ERR no\r\n"}, {&fakes[1], NULL}}, .port = 6379};
    struct play nobody = play;
    struct sl_redis_endpoint master;
    char asked[512];

    (void)state;
    nobody.count = 2;
    assert_int_equal(find(&nobody, &master), -ECONNREFUSED);
    assert_int_equal(find(&second, &master), 0);
    assert_string_equal(master.host, "10.0.0.1");
    assert_int_equal(master.port, 6379);
    fake_sentinel_read(&fakes[1], asked, sizeof(asked));
    assert_non_null(strstr(asked, "GET-MASTER-ADDR-BY-NAME"));
    assert_non_null(strstr(asked, "blue"));
    assert_non_null(strstr(asked, "SUBSCRIBE"));
    find_at(&fakes[1], 6380); /* the one that knew is asked first */
}

static void test_new_master_is_heard_of_without_asking(void **state)
{
    struct sl_redis_endpoint master;

    (void)state;
    find_at(&fakes[0], 6379);
    assert_false(sl_sentinels_have_moved(sentinels, 1000, &master));
    assert_int_equal(master.port, 6379);
    fake_sentinel_tell(&fakes[0], "green 10.0.0.1 6379 10.0.0.2 1");
    fake_sentinel_tell(&fakes[0], "blue 10.0.0.1 6379 10.0.0.2 6380");
    wait_moved(1000, 6380);
    fake_sentinel_tell(&fakes[0], "blue 10.0.0.2 6380 10.0.0.1 6381");
    fake_sentinel_tell(&fakes[0], "blue 10.0.0.1 6381 10.0.0.1 6382");
    wait_moved(1000, 6382);
}

struct look {
    uint64_t now_ms;
    struct sl_redis_endpoint master;
    bool has_moved;
};

static void *look(void *context)
{
    struct look *look = context;
    const struct timespec pause = {0, 1000000};

    for (unsigned i = 0; i < 30000 && !look->has_moved; i++) {
        look->has_moved = sl_sentinels_have_moved(sentinels, look->now_ms, &look->master);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void test_when_the_sentinel_goes_they_are_asked_again(void **state)
{
    struct look now = {.now_ms = 1000};
    pthread_t thread;

    (void)state;
    find_at(&fakes[0], 6379);
    fake_sentinel_hang_up(&fakes[0]);
    assert_int_equal(pthread_create(&thread, NULL, look, &now), 0);
    assert_true(fake_sentinel_accept(&fakes[0], true));
    fake_sentinel_name(&fakes[0], "10.0.0.1", 6380); /* it became the master meanwhile */
    pthread_join(thread, NULL);
    assert_true(now.has_moved);
    assert_int_equal(now.master.port, 6380);
}

static void test_with_no_sentinel_left_what_is_known_stays(void **state)
{
    const struct timespec pause = {0, 1000000};
    struct sl_redis_endpoint master;

    (void)state;
    find_at(&fakes[0], 6379);
    fake_sentinel_close(&fakes[0]);
    fake_sentinel_close(&fakes[1]);
    for (unsigned i = 0; i < 50; i++) {
        assert_false(sl_sentinels_have_moved(sentinels, 1000 + i, &master));
        nanosleep(&pause, NULL);
    }
    assert_int_equal(master.port, 6379);
    fake_sentinel_open(&fakes[0]); /* on other ports */
    fake_sentinel_open(&fakes[1]);
    address.sentinels[0] = fakes[0].endpoint;
    /* ...and one that is back is not asked before its pause is over. */
    assert_false(sl_sentinels_have_moved(sentinels, 2000, &master));
    assert_false(fake_sentinel_accept(&fakes[0], false));
}

static void test_out_of_memory_is_told(void **state)
{
    (void)state;
    mem_fail_after(0);
    assert_null(sl_sentinels_new(&address, 1000));
    mem_fail_never();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_another_one_is_asked_when_one_does_not_know),
        TEST(test_new_master_is_heard_of_without_asking),
        TEST(test_when_the_sentinel_goes_they_are_asked_again),
        TEST(test_with_no_sentinel_left_what_is_known_stays),
        TEST(test_out_of_memory_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
