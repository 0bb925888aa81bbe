#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/access/revocations.h"
#include "gateway/front/token_name.h"
#include "tests/support/cmocka_all.h"

enum { NOW_MS = 1000000, LATER_MS = 2000000 };

static const struct token ada = {
    .subject = "ada", .jti = "one", .kid = "spring", .issued_ms = 500000};
static const struct token bare = {.kid = "spring"};

static struct revocations *set_of(const struct sl_revocation *revocation)
{
    struct revocations *set = revocations_new();

    assert_non_null(set);
    assert_int_equal(revocations_add(set, revocation), 0);
    return set;
}

static bool takes_back(struct sl_revocation revocation, const struct token *token)
{
    struct revocations *set;
    uint64_t found;

    revocation.id = 7;
    revocation.until_ms = LATER_MS;
    set = set_of(&revocation);
    found = revocations_find(set, token, NOW_MS);
    revocations_free(set);
    assert_true(found == 0 || found == 7);
    return found != 0;
}

static void test_all_that_it_names_must_hold(void **state)
{
    const struct sl_slice sub = SL_SLICE("ada"), jti = SL_SLICE("one"), kid = SL_SLICE("spring"),
                          other = SL_SLICE("other");

    (void)state;
    assert_true(takes_back((struct sl_revocation){.sub = sub}, &ada));
    assert_true(takes_back((struct sl_revocation){.jti = jti}, &ada));
    assert_true(takes_back((struct sl_revocation){.kid = kid}, &ada));
    assert_true(takes_back((struct sl_revocation){.sub = sub, .jti = jti, .kid = kid}, &ada));
    assert_false(takes_back((struct sl_revocation){.sub = other}, &ada));
    assert_false(takes_back((struct sl_revocation){.jti = other}, &ada));
    assert_false(takes_back((struct sl_revocation){.kid = other}, &ada));
    assert_false(takes_back((struct sl_revocation){.sub = sub, .jti = other}, &ada));
    assert_false(takes_back((struct sl_revocation){.sub = other, .kid = kid}, &ada));
    assert_false(takes_back((struct sl_revocation){.sub = sub}, &bare));
}

/* The issuer of a key, or of a token, does not count: rather too much is revoked than too
 * little. */
static void test_names_are_those_of_every_issuer(void **state)
{
    const struct token one = {.issuer = "https://a", .jti = "one", .kid = "spring"},
                       other = {.issuer = "https://b", .jti = "one", .kid = "spring"};

    (void)state;
    assert_true(takes_back((struct sl_revocation){.kid = SL_SLICE("spring")}, &one));
    assert_true(takes_back((struct sl_revocation){.kid = SL_SLICE("spring")}, &other));
    assert_true(takes_back((struct sl_revocation){.jti = SL_SLICE("one")}, &one));
    assert_true(takes_back((struct sl_revocation){.jti = SL_SLICE("one")}, &other));
}

static void test_a_time_is_that_of_issue(void **state)
{
    const struct sl_slice sub = SL_SLICE("ada");

    (void)state;
    assert_true(takes_back((struct sl_revocation){.before_ms = 500001}, &ada));
    assert_false(takes_back((struct sl_revocation){.before_ms = 500000}, &ada));
    assert_true(takes_back((struct sl_revocation){.sub = sub, .before_ms = 500001}, &ada));
    assert_false(takes_back((struct sl_revocation){.sub = sub, .before_ms = 500000}, &ada));
    assert_true(takes_back((struct sl_revocation){.before_ms = 1}, &bare));
}

static void test_a_name_too_long_for_its_room_is_known_by_its_hash(void **state)
{
    char text[300];
    struct token token = {.subject = "ada"};

    (void)state;
    memset(text, 'x', sizeof(text));
    token_name(sl_slice(text, sizeof(text)), token.jti);
    assert_true(takes_back((struct sl_revocation){.jti = sl_slice(text, sizeof(text))}, &token));
    assert_false(
        takes_back((struct sl_revocation){.jti = sl_slice(text, sizeof(text) - 1)}, &token));
}

static void test_it_matters_until_its_end(void **state)
{
    struct revocations *set =
        set_of(&(struct sl_revocation){.id = 7, .until_ms = LATER_MS, .sub = SL_SLICE("ada")});

    (void)state;
    assert_int_equal(revocations_find(set, &ada, LATER_MS - 1), 7);
    assert_int_equal(revocations_find(set, &ada, LATER_MS), 0);
    revocations_drop_old(set, LATER_MS - 1);
    assert_int_equal(revocations_count(set), 1);
    revocations_drop_old(set, LATER_MS);
    assert_int_equal(revocations_count(set), 0);
    revocations_free(set);
}

static void test_of_many_each_may_go(void **state)
{
    struct revocations *set = revocations_new();
    char name[16];

    (void)state;
    for (uint64_t id = 1; id <= 1000; id++) {
        snprintf(name, sizeof(name), "user%u", (unsigned)id % 100);
        for (int again = 0; again < 2; again++)
            assert_int_equal(
                revocations_add(set, &(struct sl_revocation){.id = id,
                                                             .until_ms = LATER_MS,
                                                             .sub = sl_slice_str(name)}),
                0);
    }
    assert_int_equal(revocations_count(set), 1000);
    for (uint64_t id = 1; id <= 1000; id++) {
        struct token token = {.subject = ""};

        snprintf(token.subject, sizeof(token.subject), "user%u", (unsigned)id % 100);
        assert_int_not_equal(revocations_find(set, &token, NOW_MS), 0);
        assert_true(revocations_remove(set, id));
        assert_false(revocations_remove(set, id));
        if (id > 900)
            assert_int_equal(revocations_find(set, &token, NOW_MS), 0);
    }
    assert_int_equal(revocations_count(set), 0);
    revocations_free(set);
}

static void test_without_memory_nothing_changes(void **state)
{
    const struct sl_revocation one = {.id = 7, .until_ms = LATER_MS, .sub = SL_SLICE("ada")};
    struct revocations *set = NULL;
    int r = -ENOMEM;

    (void)state;
    for (uint64_t n = 0; !set; n++) {
        mem_fail_after(n);
        set = revocations_new();
        mem_fail_never();
    }
    for (uint64_t n = 0; r < 0; n++) {
        mem_fail_after(n);
        r = revocations_add(set, &one);
        mem_fail_never();
        assert_int_equal(revocations_count(set), r == 0);
        assert_int_equal(revocations_find(set, &ada, NOW_MS), r == 0 ? 7 : 0);
    }
    revocations_free(set);
}

/* --- revocations by users --- */

static const char *fault_of(struct sl_revocation revocation)
{
    const char *member = NULL;
    struct failure failure = {""};

    if (sl_revocation_check(&revocation, NOW_MS, &member, &failure) == 0)
        return "none";
    assert_string_not_equal(failure.text, "");
    return member;
}

static void test_what_cannot_be_is_named(void **state)
{
    static char text[513];
    const struct sl_slice sub = SL_SLICE("ada");

    (void)state;
    memset(text, 'x', sizeof(text));
    assert_string_equal(fault_of((struct sl_revocation){.sub = sub}), "none");
    assert_string_equal(fault_of((struct sl_revocation){.before_ms = 1, .until_ms = NOW_MS + 1}),
                        "none");
    assert_string_equal(fault_of((struct sl_revocation){.jti = sl_slice(text, 512)}), "none");
    assert_string_equal(fault_of((struct sl_revocation){.until_ms = LATER_MS}), "sub");
    assert_string_equal(fault_of((struct sl_revocation){.sub = sl_slice(text, 65)}), "sub");
    assert_string_equal(fault_of((struct sl_revocation){.sub = SL_SLICE("\xff")}), "sub");
    assert_string_equal(fault_of((struct sl_revocation){.jti = sl_slice(text, 513)}), "jti");
    assert_string_equal(fault_of((struct sl_revocation){.kid = SL_SLICE("a\n")}), "kid");
    assert_string_equal(fault_of((struct sl_revocation){.jti = sub, .before_ms = 1}), "before");
    assert_string_equal(fault_of((struct sl_revocation){.before_ms = UINT64_MAX}), "before");
    assert_string_equal(fault_of((struct sl_revocation){.sub = sub, .until_ms = NOW_MS}), "until");
    assert_string_equal(fault_of((struct sl_revocation){.sub = sub, .until_ms = UINT64_MAX}),
                        "until");
}

static void test_its_json_is_read(void **state)
{
    static const char *const others[] = {
        "",
        "[]",
        "{}",
        "{\"id\":\"7\",\"until\":\"2026-11-22T10:00:00Z\"}",
        "{\"id\":\"7\",\"sub\":\"ada\"}",
        "{\"id\":7,\"sub\":\"ada\",\"until\":\"2026-11-22T10:00:00Z\"}",
        "{\"id\":\"7\",\"sub\":\"ada\",\"until\":\"soon\"}"};
    struct sl_revocation found;
    struct failure failure;
    uint64_t id = 0;

    (void)state;
    assert_int_equal(sl_revocation_parse((struct sl_slice)SL_SLICE(
                                             "{\"id\":\"7\",\"sub\":\"ada\",\"by\":\"root\","
                                             "\"before\":\"1970-01-01T00:00:01.500Z\","
                                             "\"until\":\"2026-11-22T10:00:00Z\",\"more\":1}"),
                                         &found, &failure),
                     0);
    assert_true(found.id == 7 && found.before_ms == 1500 && found.until_ms > 0);
    assert_true(sl_slice_is(found.sub, "ada") && sl_slice_is(found.by, "root"));
    assert_null(found.jti.data);
    sl_revocation_done(&found);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(sl_revocation_parse(sl_slice_str(others[i]), &found, &failure), -EBADMSG);
    assert_int_equal(
        sl_unrevocation_parse((struct sl_slice)SL_SLICE("{\"revocation\":\"7\"}"), &id, &failure),
        0);
    assert_int_equal(id, 7);
    assert_int_equal(sl_unrevocation_parse((struct sl_slice)SL_SLICE("{}"), &id, &failure),
                     -EBADMSG);
}

static void test_times_are_those_that_people_write(void **state)
{
    const uint64_t now_ms = UINT64_C(1800000000000);
    struct failure failure;
    uint64_t time_ms = 0;

    (void)state;
    assert_int_equal(
        sl_revocation_time((struct sl_slice)SL_SLICE("now"), now_ms, &time_ms, &failure), 0);
    assert_true(time_ms == now_ms);
    assert_int_equal(
        sl_revocation_time((struct sl_slice)SL_SLICE("1h"), now_ms, &time_ms, &failure), 0);
    assert_true(time_ms == now_ms - 3600000);
    assert_int_equal(
        sl_revocation_time((struct sl_slice)SL_SLICE("soon"), now_ms, &time_ms, &failure), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_that_it_names_must_hold),
        cmocka_unit_test(test_names_are_those_of_every_issuer),
        cmocka_unit_test(test_a_time_is_that_of_issue),
        cmocka_unit_test(test_a_name_too_long_for_its_room_is_known_by_its_hash),
        cmocka_unit_test(test_it_matters_until_its_end),
        cmocka_unit_test(test_of_many_each_may_go),
        cmocka_unit_test(test_without_memory_nothing_changes),
        cmocka_unit_test(test_what_cannot_be_is_named),
        cmocka_unit_test(test_its_json_is_read),
        cmocka_unit_test(test_times_are_those_that_people_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
