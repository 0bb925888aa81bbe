#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/front/filter_json.h"
#include "tests/support/cmocka_all.h"

#define BYTES_51  "\xe8\x8c\xb6 a tag of several words, half a line of them all"
#define BYTES_255 BYTES_51 BYTES_51 BYTES_51 BYTES_51 BYTES_51

static_assert(sizeof(BYTES_255) == 256, "the longest tag");

/* Returns the error code for a filter's JSON, or "ok": then *ret_json must be freed. */
static const char *read_filter(const char *text, size_t size, json_t **ret_json,
                               struct filter_json *ret_filter, struct sl_filter_error *ret_error)
{
    char *copy = mem_copy(text, size); /* not terminated, so that reading past the end is noticed */
    int r;

    *ret_json = NULL;
    *ret_error = (struct sl_filter_error){0};
    r = filter_json_load(sl_slice(copy, size), ret_json, ret_error);
    mem_free(copy);
    if (r == 0)
        r = filter_json_read(*ret_json, ret_filter, ret_error);
    if (r == 0)
        return "ok";
    assert_int_equal(r, -EINVAL);
    assert_int_equal(ret_error->status, 400);
    assert_true(ret_error->message[0] != '\0');
    return ret_error->code;
}

static void test_members_are_read_as_they_are(void **state)
{
    static const char text[] =
        "{\"id\":\"a.B:c_d-9\",\"tag\":\"t\",\"track\":\"\\u5317\\ud83d\\ude00\",\"follow\":\"1\","
        "\"locations\":\"\",\"rule\":\"r\",\"firehose\":true,\"language\":\"en\",\"sample\":\"5\","
        "\"partition\":\"1/2\",\"types\":\"post\",\"other\":[1e5,12345678901234567890]}";
    struct filter_json filter;
    struct sl_filter_error error;
    json_t *json;

    (void)state;
    assert_string_equal(read_filter(text, sizeof(text) - 1, &json, &filter, &error), "ok");
    assert_true(sl_slice_is(filter.id, "a.B:c_d-9"));
    assert_true(sl_slice_is(filter.tag, "t"));
    assert_true(sl_slice_is(filter.text.track, "\xe5\x8c\x97\xf0\x9f\x98\x80"));
    assert_true(sl_slice_is(filter.text.follow, "1"));
    assert_true(filter.text.locations.data && filter.text.locations.size == 0);
    assert_true(sl_slice_is(filter.text.rule, "r"));
    assert_true(filter.text.firehose);
    assert_true(sl_slice_is(filter.text.language, "en"));
    assert_true(sl_slice_is(filter.text.sample, "5"));
    assert_true(sl_slice_is(filter.text.partition, "1/2"));
    assert_true(sl_slice_is(filter.text.types, "post"));
    json_decref(json);
}

static void test_null_is_absent_and_the_last_member_counts(void **state)
{
    static const char text[] = "{\"id\":5,\"id\":\"a\",\"tag\":null,\"track\":\"x\",\"track\":null,"
                               "\"rule\":null,\"rule\":\"r\",\"firehose\":true,\"firehose\":false}";
    struct filter_json filter;
    struct sl_filter_error error;
    json_t *json;

    (void)state;
    assert_string_equal(read_filter(text, sizeof(text) - 1, &json, &filter, &error), "ok");
    assert_true(sl_slice_is(filter.id, "a"));
    assert_null(filter.tag.data);
    assert_null(filter.text.track.data);
    assert_true(sl_slice_is(filter.text.rule, "r"));
    assert_false(filter.text.firehose);
    json_decref(json);
}

static void test_refusals_come_in_order(void **state)
{
    static const struct {
        const char *text, *code, *param;
    } cases[] = {
        {"", "bad_json", NULL},
        {"not json", "bad_json", NULL},
        {"[]", "bad_json", NULL},
        {"5", "bad_json", NULL},
        {"null", "bad_json", NULL},
        {"\"id\"", "bad_json", NULL},
        {"{\"id\":\"a\"} x", "bad_json", NULL},
        {"{\"id\":\"a\",\"track\":\"\\ud800\"}", "bad_json", NULL},
        {"{\"id\":\"a\",\"track\":\"\\udc00\\ud800\"}", "bad_json", NULL},
        {"{\"id\":\"a\",\"track\":\"\\u0000\"}", "bad_json", NULL},
        {"{\"id\":\"a\",\"\\u0000\":1}", "bad_json", NULL},
        {"{\"id\":\"a\",\"track\":\"\xc0\xaf\"}", "bad_json", NULL},
        {"{\"id\":\"a\",\"track\":\"\xed\xa0\x80\"}", "bad_json", NULL},
        {"{\"id\":\"a\",\"sample\":NaN}", "bad_json", NULL},
        {"{\"track\":5}", "bad_id", "id"},
        {"{\"id\":null}", "bad_id", "id"},
        {"{\"id\":7}", "bad_id", "id"},
        {"{\"id\":\"\"}", "bad_id", "id"},
        {"{\"id\":\"a b\"}", "bad_id", "id"},
        {"{\"id\":\"a/b\"}", "bad_id", "id"},
        {"{\"id\":\"\xc3\xa9\"}", "bad_id", "id"},
        {"{\"id\":\"0123456789012345678901234567890123456789012345678901234567890123x\"}", "bad_id",
         "id"},
        {"{\"id\":\"0123456789012345678901234567890123456789012345678901234567890123\"}", "ok",
         NULL},
        {"{\"id\":\"a\",\"tag\":5}", "bad_type", "tag"},
        {"{\"id\":\"a\",\"track\":[\"x\"]}", "bad_type", "track"},
        {"{\"id\":\"a\",\"follow\":12}", "bad_type", "follow"},
        {"{\"id\":\"a\",\"locations\":{}}", "bad_type", "locations"},
        {"{\"id\":\"a\",\"rule\":true}", "bad_type", "rule"},
        {"{\"id\":\"a\",\"firehose\":\"true\"}", "bad_type", "firehose"},
        {"{\"id\":\"a\",\"firehose\":1}", "bad_type", "firehose"},
        {"{\"id\":\"a\",\"language\":false}", "bad_type", "language"},
        {"{\"id\":\"a\",\"sample\":5}", "bad_type", "sample"},
        {"{\"id\":\"a\",\"partition\":1}", "bad_type", "partition"},
        {"{\"id\":\"a\",\"types\":[]}", "bad_type", "types"},
        {"{\"id\":\"a\",\"tag\":\"" BYTES_255 "\"}", "ok", NULL},
        {"{\"id\":\"a\",\"tag\":\"" BYTES_255 "x\"}", "bad_tag", "tag"},
        {"{\"id\":\"a\",\"tag\":\"" BYTES_255 "x\",\"track\":5}", "bad_type", "track"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct filter_json filter;
        struct sl_filter_error error;
        json_t *json;
        const char *code =
            read_filter(cases[i].text, strlen(cases[i].text), &json, &filter, &error);

        if (strcmp(code, cases[i].code) != 0)
            fail_msg("%s: %s instead of %s", cases[i].text, code, cases[i].code);
        if (cases[i].param)
            assert_string_equal(error.param, cases[i].param);
        else
            assert_null(error.param);
        json_decref(json);
    }
}

static void test_nul_byte_in_the_text_is_bad_json(void **state)
{
    static const char behind[] = "{\"id\":\"a\"}\0";
    static const char after_a_number[] = "{\"id\":\"a\",\"x\":1.5\0}";
    struct filter_json filter;
    struct sl_filter_error error;
    json_t *json;

    (void)state;
    assert_string_equal(read_filter(behind, sizeof(behind) - 1, &json, &filter, &error),
                        "bad_json");
    assert_string_equal(
        read_filter(after_a_number, sizeof(after_a_number) - 1, &json, &filter, &error),
        "bad_json");
}

static void test_duplicate_id_is_a_conflict(void **state)
{
    struct sl_filter_error error;

    (void)state;
    assert_int_equal(filter_json_duplicate_id(&error), -EEXIST);
    assert_string_equal(error.code, "duplicate_id");
    assert_int_equal(error.status, 409);
}

static void test_out_of_memory_at_any_allocation_is_an_error(void **state)
{
    static const struct sl_slice text = SL_SLICE("{\"id\":\"a\",\"track\":\"\\u5317\"}");
    struct sl_filter_error error;
    json_t *json = NULL;
    uint64_t n;
    int r = -ENOMEM;

    (void)state;
    json_set_alloc_funcs(mem_alloc, mem_free);
    for (n = 0; r < 0; n++) {
        mem_fail_after(n);
        r = filter_json_load(text, &json, &error);
        mem_fail_never();
        assert_true(r == 0 || mem_failed());
        assert_true(r == 0 || r == -ENOMEM || r == -EINVAL);
        assert_true(r == 0 || !json);
    }
    assert_true(n > 5);
    json_decref(json);
    json_set_alloc_funcs(malloc, free);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_are_read_as_they_are),
        cmocka_unit_test(test_null_is_absent_and_the_last_member_counts),
        cmocka_unit_test(test_refusals_come_in_order),
        cmocka_unit_test(test_nul_byte_in_the_text_is_bad_json),
        cmocka_unit_test(test_duplicate_id_is_a_conflict),
        cmocka_unit_test(test_out_of_memory_at_any_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
