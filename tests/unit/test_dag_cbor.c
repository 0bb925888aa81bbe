/* Records and their CIDs as computed by AT Protocol's servers: the golden events of Jetstream
 * (bluesky-social/jetstream, internal/subscribe/testdata/golden_v1.jsonl), real ones of May
 * 2026. */
#include <errno.h>

#include "base/alloc.h"
#include "gateway/dialects/dag_cbor.h"
#include "tests/support/cmocka_all.h"

static void expect_cid(const char *json, const char *expected)
{
    json_t *record = json_loads(json, 0, NULL);
    struct buffer bytes = BUFFER_INIT;
    char cid[CID_TEXT_SIZE];

    assert_non_null(record);
    assert_int_equal(dag_cbor_append(record, &bytes), 0);
    cid_of(CID_DAG_CBOR, buffer_slice(&bytes), cid);
    assert_string_equal(cid, expected);
    json_decref(record);
    buffer_done(&bytes);
}

static void test_records_have_the_cids_that_others_compute(void **state)
{
    (void)state;
    expect_cid("{\"$type\":\"app.bsky.feed.post\",\"createdAt\":\"2026-05-25T14:23:28.757Z\","
               "\"langs\":[\"en\"],\"reply\":{\"parent\":{\"cid\":"
               "\"bafyreiainko5un5pbcdosvxpbisjnjzemojnry6nsgtdftdgslbu37kxai\",\"uri\":"
               "\"at://did:plc:j76trmiofvaxxpvx2vnb2vwf/app.bsky.feed.post/3mmojbrjwbs26\"},"
               "\"root\":{\"cid\":"
               "\"bafyreiainko5un5pbcdosvxpbisjnjzemojnry6nsgtdftdgslbu37kxai\",\"uri\":"
               "\"at://did:plc:j76trmiofvaxxpvx2vnb2vwf/app.bsky.feed.post/3mmojbrjwbs26\"}},"
               "\"text\":\"Try RSV for a good time !!\"}",
               "bafyreicl7rzkxdrm4zz2ehbx52kuk3mvfow6p3gzfys72r5grvskxoswy4");
    expect_cid("{\"$type\":\"app.bsky.graph.follow\",\"createdAt\":\"2026-05-25T14:23:27.319Z\","
               "\"subject\":\"did:plc:anc6s2kher6ltrhhglxrzxsa\"}",
               "bafyreib25swk3a6waplk2ie75u4a3qfejnkoiezfowuz7sa74i7tief3di");
    expect_cid("{\"$type\":\"app.bsky.feed.repost\",\"createdAt\":\"2026-05-25T14:23:27.388Z\","
               "\"subject\":{\"cid\":"
               "\"bafyreidklayotpkt5z6dgournsivh4tyouwa6bm7fdfe2i6ciqbnrp23ou\",\"uri\":"
               "\"at://did:plc:hjloomm2tkve3pmfgbxegl3v/app.bsky.feed.post/3mmood3a6hc25\"}}",
               "bafyreiedbile4hfy44rhrg5mlpegnvbuolazgxthmho2iredl4ciqdhywy");
}

static void expect_bytes(const char *json, const char *expected, size_t size)
{
    json_t *value = json_loads(json, JSON_DECODE_ANY, NULL);
    struct buffer bytes = BUFFER_INIT;

    assert_non_null(value);
    assert_int_equal(dag_cbor_append(value, &bytes), 0);
    assert_int_equal(bytes.size, size);
    assert_memory_equal(bytes.data, expected, size);
    json_decref(value);
    buffer_done(&bytes);
}

#define EXPECT_BYTES(json, expected) expect_bytes(json, expected, sizeof(expected) - 1)

/* RFC 8949, appendix A. */
static void test_each_value_has_its_shortest_form(void **state)
{
    (void)state;
    EXPECT_BYTES("0", "\x00");
    EXPECT_BYTES("23", "\x17");
    EXPECT_BYTES("24", "\x18\x18");
    EXPECT_BYTES("255", "\x18\xff");
    EXPECT_BYTES("1000", "\x19\x03\xe8");
    EXPECT_BYTES("1000000", "\x1a\x00\x0f\x42\x40");
    EXPECT_BYTES("1000000000000", "\x1b\x00\x00\x00\xe8\xd4\xa5\x10\x00");
    EXPECT_BYTES("-1", "\x20");
    EXPECT_BYTES("-1000", "\x39\x03\xe7");
    EXPECT_BYTES("false", "\xf4");
    EXPECT_BYTES("true", "\xf5");
    EXPECT_BYTES("null", "\xf6");
    EXPECT_BYTES("\"\"", "\x60");
    EXPECT_BYTES("\"\xc3\xbc\"", "\x62\xc3\xbc");
    EXPECT_BYTES("[]", "\x80");
    EXPECT_BYTES("[1,[2,3],[4,5]]", "\x83\x01\x82\x02\x03\x82\x04\x05");
}

static void test_shorter_keys_come_first(void **state)
{
    (void)state;
    EXPECT_BYTES("{}", "\xa0");
    EXPECT_BYTES("{\"b\":1,\"aa\":2,\"a\":[]}", "\xa3\x61"
                                                "a\x80\x61"
                                                "b\x01\x62"
                                                "aa\x02");
}

static void test_a_fraction_is_no_record(void **state)
{
    json_t *value = json_pack("{s:[f]}", "a", 0.5);
    struct buffer bytes = BUFFER_INIT;

    (void)state;
    assert_int_equal(dag_cbor_append(value, &bytes), -EINVAL);
    json_decref(value);
    buffer_done(&bytes);
}

static void test_memory_may_run_out(void **state)
{
    json_t *value = json_pack("{s:{s:i},s:[s]}", "a", "b", 1, "c", "d");
    int r = -ENOMEM;

    (void)state;
    for (uint64_t n = 0; r != 0; n++) {
        struct buffer bytes = BUFFER_INIT;

        mem_fail_after(n);
        r = dag_cbor_append(value, &bytes);
        mem_fail_never();
        assert_true(r == 0 || r == -ENOMEM);
        buffer_done(&bytes);
        assert_true(n < 100);
    }
    json_decref(value);
}

/* As computed by Python's hashlib and base64. */
static void test_bytes_have_a_cid(void **state)
{
    char cid[CID_TEXT_SIZE];

    (void)state;
    cid_of(CID_RAW, SL_SLICE("hello world"), cid);
    assert_string_equal(cid, "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_records_have_the_cids_that_others_compute),
        cmocka_unit_test(test_each_value_has_its_shortest_form),
        cmocka_unit_test(test_shorter_keys_come_first),
        cmocka_unit_test(test_a_fraction_is_no_record),
        cmocka_unit_test(test_memory_may_run_out),
        cmocka_unit_test(test_bytes_have_a_cid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
