/* Secrets, passes as JSON, and the cookie of a session. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gateway/front/session_cookie.h"
#include "gateway/front/stream_pass.h"
#include "tests/support/cmocka_all.h"

static const struct stream_pass example = {
    .token = {.subject = "a \"b\"\n",
              .holder = "\x01token 0123456789abcdef",
              .scopes = TOKEN_SCOPE_FILTER | TOKEN_SCOPE_ADMIN,
              .issued_ms = 1,
              .expires_ms = UINT64_C(1) << 53,
              .jti = "j",
              .kid = "k",
              .key_number = INT64_MAX,
              .issuer = "https://issuer.example",
              .limits = {1, 2, 3, 4, 3, false},
              .uses = {[USE_CONNECTS] = 1, [USE_BYTES] = 7}},
    .print = {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
};

static void test_a_pass_is_what_it_was(void **state)
{
    struct buffer json = BUFFER_INIT;
    struct stream_pass pass;

    (void)state;
    assert_int_equal(stream_pass_write(&example, &json), 0);
    assert_int_equal(stream_pass_read(buffer_slice(&json), &pass), 0);
    assert_string_equal(pass.token.subject, example.token.subject);
    assert_string_equal(pass.token.holder, example.token.holder);
    assert_string_equal(pass.token.jti, "j");
    assert_string_equal(pass.token.kid, "k");
    assert_true(pass.token.key_number == INT64_MAX);
    assert_string_equal(pass.token.issuer, "https://issuer.example");
    assert_string_equal(pass.print.text, example.print.text);
    assert_int_equal(pass.token.scopes, example.token.scopes);
    assert_true(pass.token.expires_ms == example.token.expires_ms);
    assert_true(pass.token.issued_ms == 1);
    assert_memory_equal(pass.token.uses, example.token.uses, sizeof(pass.token.uses));
    assert_memory_equal(&pass.token.limits, &example.token.limits, sizeof(pass.token.limits));
    buffer_done(&json);
}

#define MEMBERS                                                                                    \
    "\"for\":\"f\",\"sub\":\"42\",\"holder\":\"42\",\"jti\":\"\",\"kid\":\"k\",\"iss\":\"\","      \
    "\"scope\":\"\","                                                                              \
    "\"exp\":2,\"iat\":1,\"lim\":{\"track\":1,\"follow\":1,\"boxes\":1,\"rules\":1,\"sample\":1}"

static void test_older_gateways_do_not_tell_which_key_it_was(void **state)
{
    static const char *const bad[] = {"0", "-1", "1.0", "\"1\"", "null", "9223372036854775808"};
    char text[512];
    struct stream_pass pass = example;

    (void)state;
    assert_int_equal(stream_pass_read(SL_SLICE("{" MEMBERS "}"), &pass), 0);
    assert_true(pass.token.key_number == 0);
    assert_int_equal(stream_pass_read(SL_SLICE("{" MEMBERS ",\"key\":7}"), &pass), 0);
    assert_true(pass.token.key_number == 7);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(text, sizeof(text), "{" MEMBERS ",\"key\":%s}", bad[i]);
        assert_int_equal(stream_pass_read(sl_slice_str(text), &pass), -EBADMSG);
    }
}

static void test_what_is_none_is_refused(void **state)
{
    static const char *const texts[] = {"", "{", "[]", "{}", "{\"for\":\"a\",\"exp\":1,\"iat\":0}"};
    struct buffer json = BUFFER_INIT;
    struct stream_pass pass;

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(stream_pass_read(sl_slice_str(texts[i]), &pass), -EBADMSG);
    assert_int_equal(stream_pass_write(&example, &json), 0);
    for (size_t size = 0; size < json.size; size++)
        assert_int_equal(stream_pass_read(sl_slice(json.data, size), &pass), -EBADMSG);
    buffer_done(&json);
}

static void test_secrets_are_texts_of_128_bits(void **state)
{
    char one[STREAM_PASS_SECRET_SIZE], other[STREAM_PASS_SECRET_SIZE];
    char name[STREAM_PASS_NAME_SIZE];

    (void)state;
    assert_int_equal(stream_pass_secret(one), 0);
    assert_int_equal(stream_pass_secret(other), 0);
    assert_string_not_equal(one, other);
    assert_true(stream_pass_is_secret(sl_slice_str(one)));
    assert_false(stream_pass_is_secret(sl_slice(one, sizeof(one) - 2)));
    assert_false(
        stream_pass_is_secret(SL_SLICE("AAAAAAAAAAAAAAAAAAAAAB"))); /* unused bits are set */
    assert_false(stream_pass_is_secret(SL_SLICE("AAAAAAAAAAAAAAAAAAAAA=")));
    assert_int_equal(stream_pass_name(SL_SLICE("abc"), name), 0);
    assert_string_equal(name, "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0"); /* from FIPS 180 */
}

static void test_a_cookie_is_found_among_others(void **state)
{
    const struct stream_print print = {"BBBBBBBBBBBBBBBBbbbbbbbbbbbbbbbbbbbbbbbbbbb"};
    struct http_request http = {
        .cookie = SL_SLICE(
            "a=b; sluice_AAAAAAAAAAAAAAAA=no;sluice_=x; sluice_BBBBBBBBBBBBBBBB=yes; sluice")};
    struct buffer headers = BUFFER_INIT;

    (void)state;
    assert_true(sl_slice_is(session_cookie_find(&http, &print), "yes"));
    assert_true(sl_slice_is(session_cookie_find(&http, &example.print), "no"));
    http.cookie = SL_SLICE_NONE;
    assert_null(session_cookie_find(&http, &print).data);
    session_cookie_append(&print, "secret", 61999, &headers);
    assert_true(sl_slice_is(buffer_slice(&headers),
                            "Set-Cookie: sluice_BBBBBBBBBBBBBBBB=secret; Max-Age=61; "
                            "Path=/v1/stream; Secure; HttpOnly; SameSite=Strict\r\n"));
    buffer_done(&headers);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_pass_is_what_it_was),
        cmocka_unit_test(test_older_gateways_do_not_tell_which_key_it_was),
        cmocka_unit_test(test_what_is_none_is_refused),
        cmocka_unit_test(test_secrets_are_texts_of_128_bits),
        cmocka_unit_test(test_a_cookie_is_found_among_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
