/* Where the shards of a cluster are: answers of Redis 7.0, Redis 8.0 and Valkey 8.1, and malformed
 * ones. */
#include <errno.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/redis/cluster_map.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/reply_of.h"

static const struct sl_redis_endpoint asked = {"10.0.0.9", 6379};

static int read_slots(const char *bytes, struct sl_cluster_map *ret_map, struct failure *reterr)
{
    redisReply *reply = reply_of(bytes);
    int r = sl_cluster_slots_reply(reply, &asked, ret_map, reterr);

    freeReplyObject(reply);
    return r;
}

static void assert_master(const struct sl_cluster_map *map, uint32_t shard, const char *host,
                          unsigned port)
{
    assert_string_equal(map->masters[shard].host, host);
    assert_int_equal(map->masters[shard].port, port);
}

/* Shard 0 is slot 13907, shard 1 is 9842, shard 10 is 247. */
#define ID    "$40\r\n0123456789012345678901234567890123456789\r\n"
#define LOW   ":0\r\n:5460\r\n"
#define MID   ":5461\r\n:10922\r\n"
#define HIGH  ":10923\r\n:16383\r\n"
#define NODE7 "*4\r\n$9\r\n127.0.0.1\r\n:7001\r\n" ID "*0\r\n"

static void test_slots_are_those_of_redis(void **state)
{
    static const struct {
        uint32_t shard, slot;
    } pairs[] = {{0, 13907}, {1, 9842}, {2, 5649}, {9, 10106}, {10, 247}, {42, 8000}, {63, 10499}};

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        assert_int_equal(sl_cluster_slot(pairs[i].shard), pairs[i].slot);
}

static void test_ranges_name_their_masters(void **state)
{
    struct sl_cluster_map map;

    (void)state;
    assert_int_equal(
        read_slots("*3\r\n"
                   "*4\r\n" LOW NODE7 "*4\r\n$9\r\n127.0.0.1\r\n:7004\r\n" ID "*0\r\n"
                   /* by name, with an additional address; Redis before 7 has no fourth element */
                   "*4\r\n" MID "*4\r\n$6\r\nnode-2\r\n:7002\r\n" ID
                   "*2\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n*3\r\n$9\r\n127.0.0.1\r\n:7005\r\n" ID
                   "*3\r\n" HIGH "*2\r\n$3\r\n::1\r\n:7003\r\n",
                   &map, NULL),
        0);
    assert_master(&map, 10, "127.0.0.1", 7001);
    assert_master(&map, 1, "node-2", 7002);
    assert_master(&map, 0, "::1", 7003);
}

static void test_node_that_has_no_name_is_the_one_asked(void **state)
{
    struct sl_cluster_map map;

    (void)state;
    assert_int_equal(read_slots("*2\r\n*3\r\n" MID "*2\r\n$0\r\n\r\n:7002\r\n"
                                "*3\r\n" HIGH "*2\r\n$-1\r\n:7003\r\n",
                                &map, NULL),
                     0);
    assert_master(&map, 1, "10.0.0.9", 7002);
    assert_master(&map, 0, "10.0.0.9", 7003);
}

static void test_slots_of_nobody_are_not_known(void **state)
{
    struct sl_cluster_map map;

    (void)state;
    assert_int_equal(read_slots("*2\r\n*3\r\n" MID "*2\r\n$1\r\n?\r\n:7002\r\n"
                                "*3\r\n" HIGH "*2\r\n$1\r\nh\r\n:0\r\n",
                                &map, NULL),
                     0);
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        assert_master(&map, shard, "", 0);
    assert_int_equal(read_slots("*0\r\n", &map, NULL), 0);
    assert_master(&map, 0, "", 0);
}

static void test_answer_that_cannot_be_changes_nothing(void **state)
{
    static const char *const bad[] = {
        ":1\r\n",
        "+OK\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n*2\r\n" LOW,
        "*1\r\n*3\r\n" LOW "*0\r\n",
        "*1\r\n*3\r\n" LOW "*1\r\n$1\r\nh\r\n",
        "*1\r\n*3\r\n" LOW "*2\r\n:1\r\n:7001\r\n",
        "*1\r\n*3\r\n" LOW "*2\r\n$1\r\nh\r\n$4\r\n7001\r\n",
        "*1\r\n*3\r\n" LOW "*2\r\n$1\r\nh\r\n:65536\r\n",
        "*1\r\n*3\r\n" LOW "*2\r\n$1\r\nh\r\n:-1\r\n",
        "*1\r\n*3\r\n" LOW "*2\r\n$3\r\na b\r\n:7001\r\n",
        "*1\r\n*3\r\n" LOW "*2\r\n$3\r\na\nb\r\n:7001\r\n",
        "*1\r\n*3\r\n:-1\r\n:5460\r\n" NODE7,
        "*1\r\n*3\r\n:0\r\n:16384\r\n" NODE7,
        "*1\r\n*3\r\n:2\r\n:1\r\n" NODE7,
        "*1\r\n*3\r\n$1\r\n0\r\n:5460\r\n" NODE7,
        "*2\r\n*3\r\n" HIGH NODE7 "*3\r\n:13907\r\n:13907\r\n" NODE7, /* two masters */
    };
    struct sl_cluster_map map = {.masters[3] = {"kept", 1}};
    struct failure failure;
    char long_host[400];

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(read_slots(bad[i], &map, &failure), -EBADMSG);
    snprintf(long_host, sizeof(long_host), "*1\r\n*3\r\n" LOW "*2\r\n$256\r\n%0256d\r\n:1\r\n", 0);
    assert_int_equal(read_slots(long_host, &map, &failure), -EBADMSG);
    assert_int_equal(
        read_slots("-ERR This instance has cluster support disabled\r\n", &map, &failure),
        -ENOTSUP);
    assert_non_null(strstr(failure.text, "redis://"));
    assert_int_equal(read_slots("-LOADING\r\n", &map, &failure), -EAGAIN);
    assert_int_equal(sl_cluster_slots_reply(NULL, &asked, &map, &failure), -EPIPE);
    assert_master(&map, 3, "kept", 1);
}

static void test_difference_names_the_shards_that_moved(void **state)
{
    struct sl_cluster_map a = {.masters[0] = {"a", 1}, .masters[63] = {"b", 2}}, b = a;

    (void)state;
    assert_int_equal(sl_cluster_map_difference(&a, &b), 0);
    b.masters[63].port = 3;
    b.masters[1] = a.masters[0];
    assert_true(sl_cluster_map_difference(&a, &b) == (UINT64_C(1) << 63 | 2));
}

static void test_map_is_filled_with_what_another_knows(void **state)
{
    struct sl_cluster_map map = {.masters[0] = {"a", 1}};
    struct sl_cluster_map other = {.masters[0] = {"b", 2}, .masters[63] = {"c", 3}};

    (void)state;
    sl_cluster_map_fill(&map, &other);
    assert_master(&map, 0, "a", 1);
    assert_master(&map, 63, "c", 3);
    assert_true(sl_cluster_map_is_full(&map, 1));
    assert_false(sl_cluster_map_is_full(&map, 2));
    assert_false(sl_cluster_map_is_full(&map, 0));
    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++)
        other.masters[shard] = other.masters[0];
    sl_cluster_map_fill(&map, &other);
    assert_master(&map, 1, "b", 2);
    assert_true(sl_cluster_map_is_full(&map, 0));
}

static int read_redirect(const char *bytes, struct sl_cluster_redirect *ret_redirect)
{
    redisReply *reply = reply_of(bytes);
    int r = sl_cluster_redirect_reply(reply, &asked, ret_redirect);

    freeReplyObject(reply);
    return r;
}

static void test_redirections_name_slot_and_place(void **state)
{
    static const struct {
        const char *bytes;
        bool is_ask;
        uint32_t slot;
        const char *host;
        unsigned port;
    } cases[] = {
        {"-MOVED 13907 127.0.0.1:7103\r\n", false, 13907, "127.0.0.1", 7103},
        {"-ASK 0 127.0.0.1:7103\r\n", true, 0, "127.0.0.1", 7103},
        {"-MOVED 13907 :7203\r\n", false, 13907, "10.0.0.9", 7203},
        {"-MOVED 13907 node-7203.example.org:7203\r\n", false, 13907, "node-7203.example.org",
         7203},
        {"-MOVED 16383 2001:db8::1:7000\r\n", false, 16383, "2001:db8::1", 7000},
    };
    struct sl_cluster_redirect redirect;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(read_redirect(cases[i].bytes, &redirect), 0);
        assert_int_equal(redirect.is_ask, cases[i].is_ask);
        assert_int_equal(redirect.slot, cases[i].slot);
        assert_string_equal(redirect.endpoint.host, cases[i].host);
        assert_int_equal(redirect.endpoint.port, cases[i].port);
    }
}

static void test_other_replies_redirect_nowhere(void **state)
{
    static const char *const bad[] = {
        "-MOVED \r\n",
        "-MOVED 1\r\n",
        "-MOVED 1 h\r\n",
        "-MOVED 16384 h:1\r\n",
        "-MOVED -1 h:1\r\n",
        "-MOVED 1 h:65536\r\n",
        "-MOVED 1 h:\r\n",
        "-MOVED 1 h:0\r\n",
        "-MOVED 1 ?:7000\r\n",
        "-MOVED 1 a b:1\r\n",
        "-MOVED x h:1\r\n",
        "-MOVED h:1 1\r\n",
        "-ASK 999999999 h:1\r\n",
    };
    static const char *const none[] = {"+OK\r\n", "-MOVED\r\n", "-ERR MOVED 1 h:1\r\n",
                                       "$15\r\nMOVED 1 h:70000\r\n", "-MOVING 1 h:1\r\n"};
    struct sl_cluster_redirect redirect = {.slot = 77};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(read_redirect(bad[i], &redirect), -EBADMSG);
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_int_equal(read_redirect(none[i], &redirect), -ENOENT);
    assert_int_equal(sl_cluster_redirect_reply(NULL, &asked, &redirect), -ENOENT);
    assert_int_equal(redirect.slot, 77);
}

/* HELLO of Redis 7.0, with fewer members; Valkey's has more. */
static void test_mode_tells_a_node_of_a_cluster(void **state)
{
#define HELLO(mode) "*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$4\r\nmode\r\n" mode
    static const struct {
        const char *bytes;
        int result;
    } rows[] = {
        {HELLO("$7\r\ncluster\r\n"), -EREMOTE},
        {HELLO("$10\r\nstandalone\r\n"), 0},
        {HELLO("$8\r\nsentinel\r\n"), 0},
        {"*3\r\n$4\r\nmode\r\n:1\r\n$4\r\nmode\r\n", 0},
        {"-NOPERM this user has no permissions to run the 'hello' command\r\n", 0},
        {"+OK\r\n", 0},
    };
    struct failure failure;

    (void)state;
    assert_int_equal(sl_cluster_node_reply(NULL, &failure), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        redisReply *reply = reply_of(rows[i].bytes);

        assert_int_equal(sl_cluster_node_reply(reply, &failure), rows[i].result);
        freeReplyObject(reply);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_are_those_of_redis),
        cmocka_unit_test(test_ranges_name_their_masters),
        cmocka_unit_test(test_node_that_has_no_name_is_the_one_asked),
        cmocka_unit_test(test_slots_of_nobody_are_not_known),
        cmocka_unit_test(test_mode_tells_a_node_of_a_cluster),
        cmocka_unit_test(test_answer_that_cannot_be_changes_nothing),
        cmocka_unit_test(test_difference_names_the_shards_that_moved),
        cmocka_unit_test(test_map_is_filled_with_what_another_knows),
        cmocka_unit_test(test_redirections_name_slot_and_place),
        cmocka_unit_test(test_other_replies_redirect_nowhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
