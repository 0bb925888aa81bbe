/* The cache, read outside of the event loop: every request is answered soon, whatever the cache
 * does. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/api/cache_reader.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/memcached_server.h"
#include "tests/support/test_loop.h"

enum { TIMEOUT_MS = 250 }; /* how long tests of a stalled cache wait */

#define DATABASE "0123456789abcdef0123456789abcdef"

static struct memcached_server server;
static struct test_loop test_loop;
static struct metrics_board *board;
static struct metrics *metrics;
static struct cache_reader *reader;

struct asker {
    unsigned answers;
    int r;
    bool is_known;
    char value[64]; /* of the first item */
};

static int begin(void **state)
{
    char answer[256];

    (void)state;
    memcached_server_say(&server, "flush_all", answer);
    test_loop_init(&test_loop, NULL);
    board = metrics_board_new(1);
    metrics = metrics_slot(board, 0);
    reader = cache_reader_new(&test_loop.uv, server.url, TIMEOUT_MS, 0, metrics);
    assert_non_null(reader);
    cache_reader_set_database(reader, DATABASE);
    return 0;
}

static int end(void **state)
{
    (void)state;
    cache_reader_free(reader);
    test_loop_done(&test_loop);
    metrics_board_free(board);
    return 0;
}

static struct sl_cache_item *things(uint64_t id, const char *value)
{
    struct sl_cache_item *items = mem_zalloc(sizeof(*items));

    assert_non_null(items);
    items->kind = SL_CACHE_POST;
    items->id = id;
    if (value)
        items->value = sl_slice(mem_strndup(value, strlen(value)), strlen(value));
    return items;
}

static void on_read(void *owner, int r, struct sl_cache_item *items, size_t count)
{
    struct asker *asker = owner;

    asker->answers++;
    asker->r = r;
    if (!items)
        return;
    assert_int_equal(count, 1);
    asker->is_known = items[0].value.data;
    if (asker->is_known)
        snprintf(asker->value, sizeof(asker->value), "%.*s", SL_SLICE_ARG(items[0].value));
}

static struct asker ask(uint64_t id)
{
    struct asker asker = {0};

    assert_int_equal(cache_reader_get_take(reader, things(id, NULL), 1, on_read, &asker), 0);
    assert_int_equal(asker.answers, 0); /* later */
    RUN_UNTIL(&test_loop, asker.answers > 0);
    assert_int_equal(asker.answers, 1);
    assert_int_equal(asker.r, 0);
    return asker;
}

/* A busy machine may sometimes be too slow for a request. */
static void ask_until_known(uint64_t id, const char *value)
{
    struct asker asker;

    do {
        cache_reader_put_take(reader, things(id, value), 1, clock_wall_ms());
        asker = ask(id);
    } while (!asker.is_known);
    assert_string_equal(asker.value, value);
}

static void test_what_was_put_is_found(void **state)
{
    (void)state;
    ask_until_known(1, "one");
    ask_until_known(2, "two");
    assert_true(metric_get(metrics, METRIC_CACHE_HITS) >= 2);
    assert_true(metric_get(metrics, METRIC_CACHE_STORED) >= 2);
    assert_true(metric_get(metrics, METRIC_CACHE_READ_BYTES) >= 6);
}

static void test_what_is_dropped_is_not_found(void **state)
{
    struct asker asker;

    (void)state;
    ask_until_known(1, "one");
    do {
        cache_reader_drop_take(reader, things(1, NULL), 1);
        asker = ask(1);
    } while (asker.is_known);
    assert_true(metric_get(metrics, METRIC_CACHE_DROPPED) >= 1);
}

static void test_things_belong_to_the_database_of_the_time(void **state)
{
    (void)state;
    ask_until_known(1, "one");
    cache_reader_set_database(reader, "f123456789abcdef0123456789abcdef");
    assert_false(ask(1).is_known);
    ask_until_known(1, "other");
}

static void test_nobody_waits_for_a_cache_that_stalls(void **state)
{
    (void)state;
    ask_until_known(1, "one");
    memcached_server_stall(&server);
    do
        assert_false(ask(1).is_known);
    while (!cache_reader_is_away(reader));
    assert_false(ask(1).is_known);
    memcached_server_go_on(&server);
    ask_until_known(1, "one");
    assert_false(cache_reader_is_away(reader));
}

static void test_more_than_can_be_done_is_not_taken(void **state)
{
    static struct asker askers[CACHE_READER_JOBS_MAX + 1];
    size_t taken = 0;

    (void)state;
    memset(askers, 0, sizeof(askers));
    memcached_server_stall(&server);
    while (taken <= CACHE_READER_JOBS_MAX &&
           cache_reader_get_take(reader, things(taken, NULL), 1, on_read, &askers[taken]) == 0)
        taken++;
    assert_int_equal(taken, CACHE_READER_JOBS_MAX);
    cache_reader_put_take(reader, things(1, "one"), 1, clock_wall_ms()); /* is not stored, either */
    for (size_t i = 0; i < taken; i++)
        RUN_UNTIL(&test_loop, askers[i].answers > 0);
    memcached_server_go_on(&server);
    assert_true(metric_get(metrics, METRIC_CACHE_LATE) >= 1);
}

static void test_without_a_database_nothing_is_known(void **state)
{
    struct cache_reader *idle = cache_reader_new(&test_loop.uv, server.url, TIMEOUT_MS, 0, metrics);
    struct asker asker = {0};

    (void)state;
    assert_int_equal(cache_reader_get_take(idle, things(1, NULL), 1, on_read, &asker), -EAGAIN);
    cache_reader_put_take(idle, things(1, "one"), 1, clock_wall_ms());
    cache_reader_free(idle);
    assert_int_equal(asker.answers, 0);
}

static void test_who_waits_at_the_end_is_called(void **state)
{
    struct asker askers[3] = {{0}};

    (void)state;
    memcached_server_stall(&server);
    for (uint64_t i = 0; i < 3; i++)
        assert_int_equal(cache_reader_get_take(reader, things(i, NULL), 1, on_read, &askers[i]), 0);
    cache_reader_free(reader);
    reader = NULL;
    memcached_server_go_on(&server);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(askers[i].answers, 1);
        assert_int_equal(askers[i].r, -ECANCELED);
    }
}

static void test_running_out_of_memory_makes_no_reader(void **state)
{
    struct cache_reader *made = NULL;

    (void)state;
    for (uint64_t n = 0; !made; n++) {
        mem_fail_after(n);
        made = cache_reader_new(&test_loop.uv, server.url, TIMEOUT_MS, 0, metrics);
        mem_fail_never();
    }
    cache_reader_free(made);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        TEST(test_what_was_put_is_found),
        TEST(test_what_is_dropped_is_not_found),
        TEST(test_things_belong_to_the_database_of_the_time),
        TEST(test_nobody_waits_for_a_cache_that_stalls),
        TEST(test_more_than_can_be_done_is_not_taken),
        TEST(test_without_a_database_nothing_is_known),
        TEST(test_who_waits_at_the_end_is_called),
        TEST(test_running_out_of_memory_makes_no_reader),
    };
    int failed;

    if (!memcached_server_is_installed())
        return 0;
    memcached_server_init(&server);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    memcached_server_done(&server);
    return failed;
}
