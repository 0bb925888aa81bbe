#include "gateway/front/key_board.h"
#include "gateway/front/key_source.h"
#include "base/alloc.h"
#include "tests/support/cmocka_all.h"

#include <errno.h>
#include <stdio.h>

static void test_https_and_loopback_are_taken(void **state)
{
    static const char *const urls[] = {
        "https://idp.example",
        "https://idp.example:8443/realms/tea/protocol/openid-connect/certs",
        "https://idp.example/keys?v=1&w=%20",
        "https://[2001:db8::1]:443/keys",
        "http://127.0.0.1:8080/keys",
        "http://127.8.9.10/keys",
        "http://localhost/keys",
        "http://[::1]:9/keys",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct failure failure = {""};

        if (key_url_check(sl_slice_str(urls[i]), &failure) < 0)
            fail_msg("%s: %s", urls[i], failure.text);
    }
}

static void test_what_others_could_answer_or_read_otherwise_is_not(void **state)
{
    static const char *const urls[] = {
        "",
        "idp.example/keys",
        "ftp://idp.example/keys",
        "file:///etc/passwd",
        "HTTPS://idp.example/keys",
        "https://",
        "https:///keys",
        "https://:443/keys",
        "https://idp.example:/keys",
        "https://idp.example:44x/keys",
        "https://user:word@idp.example/keys",
        "https://idp.example/keys#first",
        "https://idp.example/a b",
        "https://idp.example\\@evil.example/",
        "https://idp.example/\x01",
        "https://idp.example/\xc3\xa9",
        "https://[::1/keys",
        "https://[::1]443/keys",
        "http://idp.example/keys",
        "http://10.0.0.1/keys",
        "http://127.0.0.1.evil.example/keys",
        "http://127.1/keys",
        "http://localhost.evil.example/keys",
        "http://127.0.0.1@evil.example/keys",
        "http://[::2]/keys",
        "http://0.0.0.0/keys",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct failure failure = {""};

        if (key_url_check(sl_slice_str(urls[i]), &failure) == 0 || !failure.text[0])
            fail_msg("%s is taken", urls[i]);
    }
}

static void test_discovery_is_below_the_issuer(void **state)
{
    static const char *const issuers[] = {"https://idp.example/realms/tea",
                                          "https://idp.example/realms/tea/"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct buffer url = BUFFER_INIT;

        key_discovery_url(issuers[i], &url);
        assert_string_equal(buffer_str(&url),
                            "https://idp.example/realms/tea/.well-known/openid-configuration");
        buffer_done(&url);
    }
    assert_true(key_issuer_has_discovery(SL_SLICE("https://idp.example")));
    assert_false(key_issuer_has_discovery(SL_SLICE("https://idp.example/?x")));
    assert_false(key_issuer_has_discovery(SL_SLICE("http://idp.example")));
    assert_false(key_issuer_has_discovery(SL_SLICE("sluice")));
}

static void test_no_two_sources_have_a_file_together(void **state)
{
    struct key_sources sources = {0};

    (void)state;
    assert_int_equal(key_sources_add(&sources, "/run", "https://a", "https://b/c", NULL), 0);
    assert_int_equal(key_sources_add(&sources, "/run", "https://ab", "https:///c", NULL), 0);
    assert_int_equal(key_sources_add(&sources, "/run", "https://a", NULL, NULL), 0);
    assert_int_equal(key_sources_add(&sources, "/run", "https://a", "https://b/c", NULL), 0);
    assert_int_equal(sources.count, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_memory_equal(sources.items[i].path, "/run/jwks-", 10);
        for (unsigned k = 0; k < i; k++) {
            assert_string_not_equal(sources.items[i].path, sources.items[k].path);
            assert_true(sources.items[i].id != sources.items[k].id);
        }
    }
    key_sources_done(&sources);
}

static void test_sources_are_bounded_and_survive_no_memory(void **state)
{
    struct key_sources sources = {0};
    struct failure failure;

    (void)state;
    for (unsigned i = 0; i < KEY_SOURCES_MAX; i++) {
        char url[64];

        snprintf(url, sizeof(url), "https://idp.example/%u", i);
        assert_int_equal(key_sources_add(&sources, "/run", "a", url, &failure), 0);
    }
    assert_int_equal(key_sources_add(&sources, "/run", "a", NULL, &failure), -ENOSPC);
    key_sources_done(&sources);
    for (uint64_t n = 0;; n++) {
        int r;

        mem_fail_after(n);
        r = key_sources_add(&sources, "/run", "a", "https://b", &failure);
        mem_fail_never();
        if (r == 0)
            break;
        assert_int_equal(r, -ENOMEM);
        assert_int_equal(sources.count, 0);
    }
    key_sources_done(&sources);
}

static void test_a_board_tells_who_is_wanted_and_what_is_good(void **state)
{
    struct key_board *board = key_board_new();
    struct key_sources sources = {0};

    (void)state;
    assert_int_equal(key_sources_add(&sources, "/run", "a", "https://a", NULL), 0);
    assert_int_equal(key_sources_add(&sources, "/run", "b", "https://b", NULL), 0);
    key_board_want(board, sources.items[1].id); /* nothing is fetched yet */
    key_board_begin(board, &sources);
    assert_false(key_board_is_wanted(board, 1));
    key_board_want(board, sources.items[1].id);
    key_board_want(board, 12345);
    assert_true(key_board_is_wanted(board, 1));
    assert_false(key_board_is_wanted(board, 0));
    key_board_heard(board);
    key_board_heard(board); /* does not block */
    key_board_begun(board, 1);
    assert_false(key_board_is_wanted(board, 1));
    assert_int_equal(key_board_good_ms(board, sources.items[1].id), 0);
    key_board_set_good(board, 1, 77);
    key_board_begin(board, &sources); /* like after a restart */
    assert_int_equal(key_board_good_ms(board, sources.items[1].id), 77);
    assert_int_equal(key_board_good_ms(board, 12345), 0);
    key_sources_done(&sources);
    key_board_free(board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_https_and_loopback_are_taken),
        cmocka_unit_test(test_what_others_could_answer_or_read_otherwise_is_not),
        cmocka_unit_test(test_discovery_is_below_the_issuer),
        cmocka_unit_test(test_no_two_sources_have_a_file_together),
        cmocka_unit_test(test_sources_are_bounded_and_survive_no_memory),
        cmocka_unit_test(test_a_board_tells_who_is_wanted_and_what_is_good),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
