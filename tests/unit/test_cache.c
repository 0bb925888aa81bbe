/* A cache returns what was stored, or nothing, whatever its servers do. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "src/cache/cache.h"
#include "src/cache/cache_memcached.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/memcached_server.h"

#define DATABASE "0123456789abcdef0123456789abcdef"

static struct memcached_server server;
static struct sl_cache *cache;
static struct failure failure;

/* The last answer of the cache. */
static struct {
    unsigned failed, back;
    char why[256];
} told;

static void on_told(void *context, const char *name, const char *why)
{
    (void)context;
    assert_true(name[0]);
    if (why) {
        told.failed++;
        snprintf(told.why, sizeof(told.why), "%s", why);
    } else {
        told.back++;
    }
}

enum {
    LONG_TIMEOUT_MS = 30000, /* for a working server, on a slow machine */
    HOUR_MS = 3600000
};

static struct sl_cache *open_with(const char *url, const char *database,
                                  struct sl_cache_options options)
{
    struct sl_cache *opened;

    options.tell = on_told;
    if (sl_cache_open(url, database, &options, &opened, &failure) < 0)
        fail_msg("%s", failure.text);
    return opened;
}

static struct sl_cache *open_hasty(const char *url, const char *database, uint64_t ttl_ms,
                                   uint32_t timeout_ms)
{
    return open_with(url, database,
                     (struct sl_cache_options){.ttl_ms = ttl_ms, .timeout_ms = timeout_ms});
}

static struct sl_cache *open_cache(const char *url, const char *database, uint64_t ttl_ms)
{
    return open_hasty(url, database, ttl_ms, LONG_TIMEOUT_MS);
}

static int begin(void **state)
{
    char answer[256];

    (void)state;
    memset(&told, 0, sizeof(told));
    memcached_server_say(&server, "flush_all", answer);
    cache = open_cache(server.url, DATABASE, 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    sl_cache_close(cache);
    cache = NULL;
    return 0;
}

static struct sl_cache_item post(uint64_t id, const char *value)
{
    return (struct sl_cache_item){SL_CACHE_POST, id, sl_slice_str(value)};
}

static void put_one(struct sl_cache *into, const struct sl_cache_item *item)
{
    sl_cache_put(into, item, 1, clock_wall_ms());
}

/* Expects this value for the post; NULL: none. */
static void expect(struct sl_cache *from, uint64_t id, const char *value)
{
    struct sl_cache_item item = post(id, NULL);

    sl_cache_get(from, &item, 1);
    if (!value)
        assert_null(item.value.data);
    else
        assert_true(item.value.data && sl_slice_is(item.value, value));
    sl_cache_items_done(&item, 1);
}

/* ---- a working server ---- */

static void test_what_was_put_is_got(void **state)
{
    struct sl_cache_item items[3] = {
        post(1, "one"), post(2, ""), {SL_CACHE_USER, 1, SL_SLICE("u")}};
    struct sl_cache_item asked[4] = {
        post(2, NULL), post(3, NULL), {SL_CACHE_USER, 1, SL_SLICE_NONE}, post(1, NULL)};

    (void)state;
    sl_cache_put(cache, items, 3, clock_wall_ms());
    sl_cache_get(cache, asked, 4);
    assert_true(asked[0].value.data && asked[0].value.size == 0);
    assert_null(asked[1].value.data);
    assert_true(sl_slice_is(asked[2].value, "u"));
    assert_true(sl_slice_is(asked[3].value, "one"));
    sl_cache_items_done(asked, 4);
    assert_int_equal(sl_cache_counts(cache)->hits, 3);
    assert_int_equal(sl_cache_counts(cache)->misses, 1);
    assert_int_equal(sl_cache_counts(cache)->stored, 3);
    assert_int_equal(sl_cache_counts(cache)->hit_bytes, 4);
    assert_int_equal(sl_cache_counts(cache)->errors, 0);
}

static void test_a_thing_asked_for_twice_is_found_twice(void **state)
{
    struct sl_cache_item item = post(1, "one"), asked[2] = {post(1, NULL), post(1, NULL)};

    (void)state;
    put_one(cache, &item);
    sl_cache_get(cache, asked, 2);
    assert_true(sl_slice_is(asked[0].value, "one") && sl_slice_is(asked[1].value, "one"));
    sl_cache_items_done(asked, 2);
}

static void test_what_is_dropped_is_gone(void **state)
{
    struct sl_cache_item item = post(1, "one");

    (void)state;
    put_one(cache, &item);
    sl_cache_drop(cache, &item, 1);
    expect(cache, 1, NULL);
    sl_cache_drop(cache, &item, 1); /* once more */
    assert_int_equal(sl_cache_counts(cache)->errors, 0);
}

static void test_any_bytes_come_back(void **state)
{
    char *value = malloc(SL_CACHE_VALUE_MAX + 1);
    struct sl_cache_item item = {SL_CACHE_POST, 1, sl_slice(value, SL_CACHE_VALUE_MAX)};
    struct sl_cache_item asked = post(1, NULL);

    (void)state;
    for (size_t i = 0; i <= SL_CACHE_VALUE_MAX; i++)
        value[i] = (char)(i % 251);
    put_one(cache, &item);
    sl_cache_get(cache, &asked, 1);
    assert_true(sl_slice_equal(asked.value, item.value));
    sl_cache_items_done(&asked, 1);
    item.id = 2;
    item.value.size++; /* too long */
    put_one(cache, &item);
    expect(cache, 2, NULL);
    free(value);
}

static void test_databases_on_one_server_do_not_mix(void **state)
{
    struct sl_cache *other = open_cache(server.url, "f123456789abcdef0123456789abcdef", 0);
    struct sl_cache_item item = post(1, "one");

    (void)state;
    put_one(cache, &item);
    expect(other, 1, NULL);
    expect(cache, 1, "one");
    sl_cache_close(other);
}

static void test_two_processes_share_it(void **state)
{
    struct sl_cache *other = open_cache(server.url, DATABASE, 0);
    struct sl_cache_item item = post(1, "one");

    (void)state;
    put_one(cache, &item);
    expect(other, 1, "one");
    sl_cache_close(other);
}

static void test_a_value_is_good_for_its_time_and_no_longer(void **state)
{
    struct sl_cache *shorter = open_cache(server.url, DATABASE, 60000);
    struct sl_cache_item item = post(1, "one");
    uint64_t now_ms = clock_wall_ms();

    (void)state;
    sl_cache_put(cache, &item, 1, now_ms - SL_CACHE_TTL_MS / 2);
    expect(cache, 1, "one");
    expect(shorter, 1, NULL);
    assert_int_equal(sl_cache_counts(shorter)->refused, 1);
    item.id = 2; /* a fill that comes late */
    sl_cache_put(cache, &item, 1, now_ms - SL_CACHE_TTL_MS - 1);
    assert_int_equal(sl_cache_counts(cache)->stored, 1);
    expect(cache, 2, NULL);
    sl_cache_close(shorter);
}

static void test_a_time_is_never_longer_than_the_most(void **state)
{
    struct sl_cache *longest = open_cache(server.url, DATABASE, UINT64_MAX);
    struct sl_cache_item item = post(1, "one");

    (void)state;
    sl_cache_put(longest, &item, 1, clock_wall_ms() - SL_CACHE_TTL_MAX_MS - 1);
    expect(longest, 1, NULL);
    sl_cache_close(longest);
}

/* ---- a failing server ---- */

static void test_a_server_that_is_gone_is_a_miss_and_left_alone(void **state)
{
    struct sl_cache *calm =
        open_with(server.url, DATABASE,
                  (struct sl_cache_options){.timeout_ms = LONG_TIMEOUT_MS, .rest_ms = HOUR_MS});
    struct sl_cache_item item = post(1, "one");

    (void)state;
    put_one(calm, &item);
    memcached_server_kill(&server);
    expect(calm, 1, NULL);
    assert_int_equal(told.failed, 1);
    assert_true(told.why[0]);
    put_one(calm, &item); /* not even tried */
    expect(calm, 1, NULL);
    sl_cache_drop(calm, &item, 1);
    assert_int_equal(sl_cache_counts(calm)->errors, 1);
    assert_true(sl_cache_counts(calm)->skipped >= 1);
    memcached_server_start(&server);
    expect(calm, 1, NULL);
    assert_int_equal(told.back, 0);
    sl_cache_close(calm);
}

static void test_a_server_that_was_gone_is_used_again(void **state)
{
    struct sl_cache *soon =
        open_with(server.url, DATABASE,
                  (struct sl_cache_options){.timeout_ms = LONG_TIMEOUT_MS, .rest_ms = 1});
    struct sl_cache_item item = post(1, "one");

    (void)state;
    put_one(soon, &item);
    memcached_server_kill(&server);
    expect(soon, 1, NULL);
    assert_int_equal(told.failed, 1);
    memcached_server_start(&server);
    while (told.back == 0) {
        expect(soon, 1, NULL);
        usleep(10000);
    }
    put_one(soon, &item);
    expect(soon, 1, "one");
    assert_int_equal(told.failed, 1);
    assert_int_equal(told.back, 1);
    sl_cache_close(soon);
}

static void test_a_server_that_stalls_is_given_up_and_its_late_answer_not_taken(void **state)
{
    struct sl_cache *hasty = open_hasty(server.url, DATABASE, 0, 50);
    struct sl_cache_item one = post(1, "one"), two = post(2, "two"), asked = post(2, NULL);

    (void)state;
    put_one(cache, &one);
    put_one(cache, &two);
    memcached_server_stall(&server);
    expect(hasty, 1, NULL);
    assert_int_equal(told.failed, 1);
    memcached_server_go_on(&server);
    while (!asked.value.data) { /* it rests, and 50 ms may sometimes be too short */
        usleep(10000);
        sl_cache_get(hasty, &asked, 1);
    }
    assert_true(sl_slice_is(asked.value, "two")); /* not "one", which was requested before */
    sl_cache_items_done(&asked, 1);
    assert_int_equal(told.back, told.failed);
    sl_cache_close(hasty);
}

static void test_servers_that_are_gone_cost_one_try_each(void **state)
{
    struct sl_cache *both =
        open_with("memcached://127.0.0.1:1,localhost:1", DATABASE,
                  (struct sl_cache_options){.timeout_ms = LONG_TIMEOUT_MS, .rest_ms = HOUR_MS});
    struct sl_cache_item items[64];

    (void)state;
    for (uint64_t i = 0; i < 64; i++)
        items[i] = post(i, "value");
    sl_cache_put(both, items, 64, clock_wall_ms());
    for (uint64_t i = 0; i < 64; i++)
        items[i].value = SL_SLICE_NONE;
    sl_cache_get(both, items, 64);
    for (size_t i = 0; i < 64; i++)
        assert_null(items[i].value.data);
    assert_int_equal(sl_cache_counts(both)->errors, 2);
    assert_int_equal(sl_cache_counts(both)->misses, 64);
    assert_int_equal(told.failed, 2);
    sl_cache_close(both);
}

/* ---- a server that lies ---- */

/* Returns the only key that the server has. */
static void only_key(char ret_key[static 128])
{
    char answer[256], *at, *space;
    size_t used = 0;

    do
        memcached_server_say(&server, "lru_crawler metadump hash", answer);
    while (!(at = strstr(answer, "key="))); /* it may be busy */
    space = strchr(at, ' ');
    assert_non_null(space);
    for (at += strlen("key="); at < space; at++) { /* its colons are escaped */
        bool is_colon = strncmp(at, "%3A", 3) == 0;

        ret_key[used++] = is_colon ? ':' : *at;
        at += is_colon ? 2 : 0;
    }
    ret_key[used] = '\0';
}

static void test_a_value_that_somebody_changed_is_refused(void **state)
{
    struct sl_cache_item item = post(1, "one");
    char key[128], line[512], answer[256];
    const char *const lies[] = {"", "one", "\"one\"", "0123456789abcdef 0123456789abcdef\none"};

    (void)state;
    put_one(cache, &item);
    only_key(key);
    for (size_t i = 0; i < 4; i++) {
        snprintf(line, sizeof(line), "set %s 0 0 %zu\r\n%s", key, strlen(lies[i]), lies[i]);
        memcached_server_say(&server, line, answer);
        assert_string_equal(answer, "STORED");
        expect(cache, 1, NULL);
        assert_int_equal(sl_cache_counts(cache)->refused, i + 1);
    }
    snprintf(line, sizeof(line), "append %s 0 0 1\r\nx", key);
    put_one(cache, &item);
    memcached_server_say(&server, line, answer);
    expect(cache, 1, NULL);
    put_one(cache, &item);
    expect(cache, 1, "one");
    assert_int_equal(told.failed, 0);
}

/* Answers any command with `answer`, and then forever with `then`, if given. */
static void lie(int peer, struct sl_slice answer, struct sl_slice then)
{
    char room[4096];

    while (read(peer, room, sizeof(room)) > 0) {
        if (write(peer, answer.data, answer.size) < 0)
            return;
        while (then.size > 0 && write(peer, then.data, then.size) >= 0)
            continue;
    }
}

static pid_t start_liar(const char *path, struct sl_slice answer, struct sl_slice then)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0), peer;
    pid_t pid;

    assert_true(strlen(path) < sizeof(address.sun_path));
    strcpy(address.sun_path, path);
    unlink(path);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(fd, 8), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) {
        close(fd);
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    while ((peer = accept(fd, NULL, NULL)) >= 0) {
        lie(peer, answer, then);
        close(peer);
    }
    _exit(0);
}

static void test_nonsense_is_a_miss(void **state)
{
    static const struct sl_slice lies[] = {
        SL_SLICE("\r\n"),
        SL_SLICE("END"),
        SL_SLICE("HTTP/1.1 200 OK\r\n\r\n"),
        SL_SLICE("VALUE\r\nEND\r\n"),
        SL_SLICE("VALUE x 0 1\r\ny\r\nEND\r\n"),
        SL_SLICE("VALUE x 0 -1\r\ny\r\nEND\r\n"),
        SL_SLICE("VALUE x 0 4294967295\r\ny\r\nEND\r\n"),
        SL_SLICE("VALUE x 0 99999999999999999999999\r\ny\r\nEND\r\n"),
        SL_SLICE("STORED\r\nSTORED\r\nDELETED\r\n"),
        SL_SLICE("SERVER_ERROR out of memory\r\n"),
        SL_SLICE("\0\0\0\0\xff\xff\xff\xff"),
    };
    char path[128], url[256];

    (void)state;
    snprintf(path, sizeof(path), "%s/liar.sock", server.folder);
    snprintf(url, sizeof(url), "memcached://%s", path);
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        pid_t liar = start_liar(path, lies[i], SL_SLICE_NONE);
        struct sl_cache *believer = open_hasty(url, DATABASE, 0, 50);
        struct sl_cache_item asked[3] = {post(1, NULL), post(2, NULL), post(3, NULL)};
        struct sl_cache_item item = post(1, "one");

        sl_cache_get(believer, asked, 3);
        assert_null(asked[0].value.data);
        assert_null(asked[1].value.data);
        assert_null(asked[2].value.data);
        sl_cache_close(believer);
        believer = open_hasty(url, DATABASE, 0, 50);
        put_one(believer, &item);
        sl_cache_close(believer);
        believer = open_hasty(url, DATABASE, 0, 50);
        sl_cache_drop(believer, &item, 1);
        sl_cache_close(believer);
        kill(liar, SIGKILL);
        waitpid(liar, NULL, 0);
    }
    unlink(path);
}

/* The results of a request for two values. */
struct told_values {
    size_t count;
    uint32_t pause_ms; /* before each is handled */
};

static void count_value(void *context, struct sl_slice key, struct sl_slice value)
{
    struct told_values *values = context;

    (void)key;
    (void)value;
    usleep(values->pause_ms * 1000);
    values->count++;
}

static int ask_liar(struct sl_slice answer, struct sl_slice then, uint32_t timeout_ms,
                    struct told_values *values)
{
    const struct sl_slice keys[] = {SL_SLICE("one"), SL_SLICE("two")};
    struct sl_memcached *asker;
    char path[128];
    pid_t liar;
    int r;

    snprintf(path, sizeof(path), "%s/liar.sock", server.folder);
    liar = start_liar(path, answer, then);
    asker = sl_memcached_new(path, 0, timeout_ms, 65536);
    r = sl_memcached_get(asker, keys, 2, count_value, values, &failure);
    sl_memcached_free(asker);
    kill(liar, SIGKILL);
    waitpid(liar, NULL, 0);
    unlink(path);
    return r;
}

static void test_no_more_values_are_taken_than_were_asked_for(void **state)
{
    const struct sl_slice one = SL_SLICE("VALUE one 0 1\r\ny\r\n");
    struct told_values values = {0};

    (void)state;
    assert_int_equal(ask_liar(one, one, 10000, &values), -EIO);
    assert_int_equal(values.count, 2);
    assert_string_equal(failure.text, "what it answers is not memcached's protocol");
}

/* Everything has arrived when the time is over, so nothing waits. */
static void test_time_that_is_over_is_over_whatever_has_come(void **state)
{
    char answer[60000];
    struct told_values values = {.pause_ms = 300};
    int size = snprintf(answer, sizeof(answer),
                        "VALUE one 0 1\r\ny\r\nVALUE two 0 50000\r\n%050000d"
                        "\r\nEND\r\n",
                        0);

    (void)state;
    assert_int_equal(ask_liar(sl_slice(answer, (size_t)size), SL_SLICE_NONE, 250, &values), -EIO);
    assert_int_equal(values.count, 1);
    assert_string_equal(failure.text, "no answer within 250 ms");
}

/* ---- opening ---- */

static void test_urls(void **state)
{
    static const char *const good[] = {
        "memcached://localhost",
        "memcached://localhost:11211",
        "memcached://10.0.0.1:1,10.0.0.2,cache-3.example.org:65535",
        "memcached://[::1]",
        "memcached://[::1]:11212,localhost",
        "memcached:///run/memcached.sock",
    };
    static const struct {
        const char *url, *why;
    } bad[] = {
        {"", "'' is not the URL of a cache: memcached://host[:port][,host...] or "
             "memcached:///path/of/socket"},
        {"redis://localhost", "'redis://localhost' is not the URL of a cache: "
                              "memcached://host[:port][,host...] or memcached:///path/of/socket"},
        {"memcached://", "the cache's URL names no host"},
        {"memcached:///", "the cache's URL names no socket behind memcached://"},
        {"memcached://a,,b", "the cache's URL names no host"},
        {"memcached://a,", "the cache's URL names no host"},
        {"memcached://a:", "the cache's port is not a number from 1 to 65535"},
        {"memcached://a:0", "the cache's port is not a number from 1 to 65535"},
        {"memcached://a:65536", "the cache's port is not a number from 1 to 65535"},
        {"memcached://a:99999999999999999999", "the cache's port is not a number from 1 to 65535"},
        {"memcached://a:11x", "the cache's port is not a number from 1 to 65535"},
        {"memcached://[::1", "the cache's host lacks its closing bracket"},
        {"memcached://[::1]x", "the cache's port is not a number from 1 to 65535"},
        {"memcached://a b", "the cache's host holds a character that no host has"},
        {"memcached://user@host", "the cache's host holds a character that no host has"},
        {"memcached://a/b", "the cache's host holds a character that no host has"},
        {"memcached://a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a", "a cache has at most 16 servers"},
    };
    char longest[256] = "memcached:///";

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
        assert_int_equal(sl_cache_check(good[i], &failure), 0);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(sl_cache_check(bad[i].url, &failure), -EINVAL);
        assert_string_equal(failure.text, bad[i].why);
        assert_int_equal(
            sl_cache_open(bad[i].url, DATABASE, &(struct sl_cache_options){0}, &cache, &failure),
            -EINVAL);
    }
    memset(longest + strlen(longest), 'x', 120);
    assert_int_equal(sl_cache_check(longest, &failure), -EINVAL);
    assert_string_equal(failure.text, "the path of the cache's socket is longer than 107 bytes");
}

static void test_running_out_of_memory_is_told_or_a_miss(void **state)
{
    struct sl_cache_item item = post(1, "one"), asked = post(1, NULL);
    const struct sl_cache_options options = {.timeout_ms = LONG_TIMEOUT_MS};
    struct sl_cache *opened = NULL;
    int r = -ENOMEM;

    (void)state;
    for (uint64_t n = 0; r == -ENOMEM; n++) {
        mem_fail_after(n);
        r = sl_cache_open(server.url, DATABASE, &options, &opened, &failure);
        mem_fail_never();
    }
    assert_int_equal(r, 0);
    put_one(opened, &item);
    for (uint64_t n = 0; !asked.value.data; n++) {
        assert_true(n < 100);
        mem_fail_after(n);
        sl_cache_get(opened, &asked, 1);
        sl_cache_put(opened, &item, 1, clock_wall_ms());
        mem_fail_never();
    }
    assert_true(sl_slice_is(asked.value, "one"));
    sl_cache_items_done(&asked, 1);
    sl_cache_close(opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),
        cmocka_unit_test_setup_teardown(test_what_was_put_is_got, begin, end),
        cmocka_unit_test_setup_teardown(test_a_thing_asked_for_twice_is_found_twice, begin, end),
        cmocka_unit_test_setup_teardown(test_what_is_dropped_is_gone, begin, end),
        cmocka_unit_test_setup_teardown(test_any_bytes_come_back, begin, end),
        cmocka_unit_test_setup_teardown(test_databases_on_one_server_do_not_mix, begin, end),
        cmocka_unit_test_setup_teardown(test_two_processes_share_it, begin, end),
        cmocka_unit_test_setup_teardown(test_a_value_is_good_for_its_time_and_no_longer, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_a_time_is_never_longer_than_the_most, begin, end),
        cmocka_unit_test_setup_teardown(test_a_server_that_is_gone_is_a_miss_and_left_alone, begin,
                                        end),
        cmocka_unit_test_setup_teardown(test_a_server_that_was_gone_is_used_again, begin, end),
        cmocka_unit_test_setup_teardown(
            test_a_server_that_stalls_is_given_up_and_its_late_answer_not_taken, begin, end),
        cmocka_unit_test_setup_teardown(test_servers_that_are_gone_cost_one_try_each, begin, end),
        cmocka_unit_test_setup_teardown(test_a_value_that_somebody_changed_is_refused, begin, end),
        cmocka_unit_test_setup_teardown(test_nonsense_is_a_miss, begin, end),
        cmocka_unit_test(test_no_more_values_are_taken_than_were_asked_for),
        cmocka_unit_test(test_time_that_is_over_is_over_whatever_has_come),
        cmocka_unit_test_setup_teardown(test_running_out_of_memory_is_told_or_a_miss, begin, end),
    };
    int failed;

    if (!memcached_server_is_installed())
        return 0;
    memcached_server_init(&server);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    memcached_server_done(&server);
    return failed;
}
