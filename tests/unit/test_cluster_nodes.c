/* The nodes of a cluster and its open slots: answers of Redis 7.0 and Valkey 8.1, and malformed
 * ones. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "src/redis/cluster_nodes.h"
#include "tests/support/cmocka_all.h"
#include "tests/support/reply_of.h"

static const struct sl_redis_endpoint asked = {"10.0.0.9", 6379};

static int read_nodes(const char *bytes, bool is_tls, struct sl_cluster_nodes *ret_nodes)
{
    redisReply *reply = reply_of(bytes);
    int r = sl_cluster_nodes_reply(reply, &asked, is_tls, ret_nodes, NULL);

    freeReplyObject(reply);
    return r;
}

#define ID_A    "a123456789012345678901234567890123456789"
#define ID_B    "b123456789012345678901234567890123456789"
#define ID(id)  "$2\r\nid\r\n$40\r\n" id "\r\n"
#define PORT    "$4\r\nport\r\n:7001\r\n"
#define TLS     "$8\r\ntls-port\r\n:7101\r\n"
#define HERE    "$8\r\nendpoint\r\n$9\r\n127.0.0.1\r\n"
#define MASTER  "$4\r\nrole\r\n$6\r\nmaster\r\n"
#define SLAVE   "$4\r\nrole\r\n$7\r\nreplica\r\n"
#define ONLINE  "$6\r\nhealth\r\n$6\r\nonline\r\n"
#define LOADING "$6\r\nhealth\r\n$7\r\nloading\r\n"
#define FAILED  "$6\r\nhealth\r\n$4\r\nfail\r\n"
#define SLOTS                                                                                      \
    "$5\r\nslots\r\n*4\r\n:0\r\n:247\r\n:13907\r\n:13907\r\n" /* shards 10, 14, ..., 0             \
                                                               */
#define NODES "$5\r\nnodes\r\n"

static void test_masters_and_replicas_with_their_shards(void **state)
{
    struct sl_cluster_nodes nodes;

    (void)state;
    assert_int_equal(read_nodes("*2\r\n"
                                "*4\r\n" SLOTS NODES "*2\r\n"
                                "*10\r\n" ID(ID_A) PORT HERE MASTER ONLINE "*10\r\n" ID(ID_B)
                                    PORT HERE SLAVE LOADING "*4\r\n$5\r\nslots\r\n*0\r\n" NODES
                                                            "*1\r\n"
                                                            "*12\r\n" ID(ID_B) PORT TLS
                                "$8\r\nendpoint\r\n$-1\r\n" MASTER FAILED,
                                false, &nodes),
                     0);
    assert_int_equal(nodes.count, 3);
    assert_string_equal(nodes.at[0].id, ID_A);
    assert_string_equal(nodes.at[0].endpoint.host, "127.0.0.1");
    assert_int_equal(nodes.at[0].endpoint.port, 7001);
    assert_true(nodes.at[0].is_master && nodes.at[0].is_online);
    assert_true(nodes.at[0].shards & 1);
    assert_true(nodes.at[0].shards >> 10 & 1);
    assert_false(nodes.at[0].shards >> 1 & 1);
    assert_false(nodes.at[0].is_failed);
    assert_false(nodes.at[1].is_master || nodes.at[1].is_online || nodes.at[1].is_failed);
    assert_int_equal(nodes.at[1].shards, 0);
    assert_true(nodes.at[2].is_master && nodes.at[2].is_failed && !nodes.at[2].is_online);
    assert_int_equal(nodes.at[2].shards, 0);
    assert_string_equal(nodes.at[2].endpoint.host, asked.host);
    sl_cluster_nodes_done(&nodes);
}

static void test_ports_are_those_of_the_wire(void **state)
{
    static const char *const both = "*1\r\n*4\r\n" SLOTS NODES "*1\r\n"
                                    "*12\r\n" ID(ID_A) PORT TLS HERE MASTER ONLINE;
    struct sl_cluster_nodes nodes;

    (void)state;
    assert_int_equal(read_nodes(both, true, &nodes), 0);
    assert_int_equal(nodes.at[0].endpoint.port, 7101);
    sl_cluster_nodes_done(&nodes);
    assert_int_equal(read_nodes("*1\r\n*4\r\n" SLOTS NODES "*1\r\n"
                                "*10\r\n" ID(ID_A) PORT HERE MASTER ONLINE,
                                true, &nodes),
                     0);
    assert_string_equal(nodes.at[0].endpoint.host, "");
    sl_cluster_nodes_done(&nodes);
}

static void test_answer_that_cannot_be_is_refused(void **state)
{
    static const char *const bad[] = {
        ":1\r\n",
        "*1\r\n:1\r\n",
        "*1\r\n*2\r\n" SLOTS,
        "*1\r\n*4\r\n$5\r\nslots\r\n:1\r\n" NODES "*0\r\n",
        "*1\r\n*4\r\n$5\r\nslots\r\n*1\r\n$1\r\n1\r\n" NODES "*0\r\n",
        "*1\r\n*4\r\n" SLOTS NODES "*1\r\n:1\r\n",
        "*1\r\n*4\r\n" SLOTS NODES "*1\r\n*4\r\n$2\r\nid\r\n$1\r\na\r\n" PORT,
        "*1\r\n*4\r\n" SLOTS NODES "*1\r\n*6\r\n" ID(ID_A) "$4\r\nport\r\n:70000\r\n" HERE,
    };
    struct sl_cluster_nodes nodes;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_int_equal(read_nodes(bad[i], false, &nodes), -EBADMSG);
    assert_int_equal(read_nodes("-NOPERM no\r\n", false, &nodes), -EACCES);
}

static void read_open(const char *text, struct sl_open_slots *ret_slots)
{
    char bytes[1024];
    redisReply *reply;

    snprintf(bytes, sizeof(bytes), "$%zu\r\n%s\r\n", strlen(text), text);
    reply = reply_of(bytes);
    assert_int_equal(sl_cluster_open_slots_reply(reply, ret_slots, NULL), 0);
    freeReplyObject(reply);
}

static void test_open_slots_are_those_of_the_node_that_answers(void **state)
{
    static const struct sl_open_slots none;
    struct sl_open_slots slots;

    (void)state;
    read_open(ID_A
              " 127.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-5460 13907 [13907->-" ID_B
              "] [247-<-" ID_B "] [5-<-" ID_A "]\n" ID_B
              " 127.0.0.1:7002@17002,host master - 0 1 2 connected 5461-10922 [9842->-" ID_A "]\n",
              &slots);
    assert_string_equal(slots.migrating[0], ID_B);
    assert_string_equal(slots.importing[10], ID_B);
    assert_string_equal(slots.migrating[1], "");
    assert_string_equal(slots.migrating[10], "");
    assert_int_equal(slots.owned & 0x403, 0x401); /* shards 0 and 10, not 1 */
    read_open(
        ID_A " :7001@17001 myself,master - 0 0 1 connected [13907->-] [->-x] [13907] [] x 13907x\n",
        &slots);
    assert_memory_equal(&slots, &none, sizeof(none));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_masters_and_replicas_with_their_shards),
        cmocka_unit_test(test_ports_are_those_of_the_wire),
        cmocka_unit_test(test_answer_that_cannot_be_is_refused),
        cmocka_unit_test(test_open_slots_are_those_of_the_node_that_answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
