#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/redis/redis_address.h"
#include "tests/support/cmocka_all.h"

static void parse(const char *url, struct sl_redis_address *address)
{
    struct failure failure = {""};

    if (sl_redis_address_parse(sl_slice_str(url), address, &failure) < 0)
        fail_msg("%s: %s", url, failure.text);
}

static void refuse(const char *url, const char *message)
{
    struct sl_redis_address address = {.endpoint.port = 7};
    struct failure failure = {""};

    assert_int_equal(sl_redis_address_parse(sl_slice_str(url), &address, &failure), -EINVAL);
    if (!strstr(failure.text, message))
        fail_msg("%s: said '%s', not '%s'", url, failure.text, message);
    assert_null(strstr(failure.text, "secret"));
    assert_int_equal(address.endpoint.port, 7);
}

static void test_tcp_address_in_all_its_parts(void **state)
{
    struct sl_redis_address address;

    (void)state;
    parse("redis://ada:s%40cret@redis.example:7000/3", &address);
    assert_string_equal(address.endpoint.host, "redis.example");
    assert_string_equal(address.login.user, "ada");
    assert_string_equal(address.login.password, "s@cret");
    assert_string_equal(address.path, "");
    assert_int_equal(address.endpoint.port, 7000);
    assert_int_equal(address.db, 3);
}

static void test_what_is_left_out_has_its_default(void **state)
{
    struct sl_redis_address address;

    (void)state;
    parse("redis://localhost", &address);
    assert_string_equal(address.endpoint.host, "localhost");
    assert_string_equal(address.login.user, "");
    assert_string_equal(address.login.password, "");
    assert_int_equal(address.endpoint.port, 6379);
    assert_int_equal(address.db, 0);
    parse("redis://localhost/", &address);
    assert_int_equal(address.db, 0);
    parse("redis://:only@127.0.0.1:1", &address);
    assert_string_equal(address.login.user, "");
    assert_string_equal(address.login.password, "only");
}

static void test_password_may_hold_a_bare_at_sign_and_colon(void **state)
{
    struct sl_redis_address address;

    (void)state;
    parse("redis://ada:a@b:c@host", &address);
    assert_string_equal(address.login.password, "a@b:c");
    assert_string_equal(address.endpoint.host, "host");
}

static void test_ipv6_host_stands_in_brackets(void **state)
{
    struct sl_redis_address address;

    (void)state;
    parse("redis://[::1]:6380/1", &address);
    assert_string_equal(address.endpoint.host, "::1");
    assert_int_equal(address.endpoint.port, 6380);
    parse("redis://[fe80::1]", &address);
    assert_string_equal(address.endpoint.host, "fe80::1");
    assert_int_equal(address.endpoint.port, 6379);
}

static void test_sentinels_name_and_logins(void **state)
{
    struct sl_redis_address address;

    (void)state;
    parse("redis+sentinel://ada:s%40cret@h1,h2:7,[::1]:8/mymaster"
          "?sentinel-user=watch&db=3&sentinel-password=o%26d",
          &address);
    assert_int_equal(address.sentinel_count, 3);
    assert_string_equal(address.sentinels[0].host, "h1");
    assert_int_equal(address.sentinels[0].port, 26379);
    assert_string_equal(address.sentinels[1].host, "h2");
    assert_int_equal(address.sentinels[1].port, 7);
    assert_string_equal(address.sentinels[2].host, "::1");
    assert_int_equal(address.sentinels[2].port, 8);
    assert_string_equal(address.master_name, "mymaster");
    assert_string_equal(address.login.user, "ada");
    assert_string_equal(address.login.password, "s@cret");
    assert_string_equal(address.sentinel_login.user, "watch");
    assert_string_equal(address.sentinel_login.password, "o&d");
    assert_int_equal(address.db, 3);
    assert_string_equal(address.endpoint.host, "");
    assert_int_equal(address.endpoint.port, 0);
}

static void test_nodes_of_a_cluster(void **state)
{
    struct sl_redis_address address;

    (void)state;
    parse("redis+cluster://ada:s%40cret@h1,h2:7,[::1]:8", &address);
    assert_int_equal(address.seed_count, 3);
    assert_string_equal(address.seeds[0].host, "h1");
    assert_int_equal(address.seeds[0].port, 6379);
    assert_string_equal(address.seeds[1].host, "h2");
    assert_int_equal(address.seeds[1].port, 7);
    assert_string_equal(address.seeds[2].host, "::1");
    assert_int_equal(address.seeds[2].port, 8);
    assert_string_equal(address.login.user, "ada");
    assert_string_equal(address.login.password, "s@cret");
    assert_int_equal(address.sentinel_count, 0);
    assert_string_equal(address.endpoint.host, "");
    parse("redis+cluster://h/", &address);
    assert_int_equal(address.seed_count, 1);
}

static void test_unix_socket_with_and_without_database(void **state)
{
    struct sl_redis_address address;

    (void)state;
    parse("unix:///run/a%20b/redis.sock", &address);
    assert_string_equal(address.path, "/run/a b/redis.sock");
    assert_string_equal(address.endpoint.host, "");
    assert_int_equal(address.endpoint.port, 0);
    assert_int_equal(address.db, 0);
    parse("unix:///run/redis.sock?db=12", &address);
    assert_string_equal(address.path, "/run/redis.sock");
    assert_int_equal(address.db, 12);
}

static void test_tls_names_files_and_whom_to_expect(void **state)
{
    struct sl_redis_address address;

    (void)state;
    parse("rediss://ada:s%40cret@redis.example/3", &address);
    assert_true(address.is_tls);
    assert_string_equal(address.endpoint.host, "redis.example");
    assert_string_equal(address.login.password, "s@cret");
    assert_int_equal(address.db, 3);
    assert_string_equal(address.tls.ca, "");
    parse("rediss://h:1?ssl-ca=/c%20a.pem&db=4&ssl-cert=/cert&ssl-key=/key&ssl-name=10.0.0.1",
          &address);
    assert_int_equal(address.endpoint.port, 1);
    assert_int_equal(address.db, 4);
    assert_string_equal(address.tls.ca, "/c a.pem");
    assert_string_equal(address.tls.cert, "/cert");
    assert_string_equal(address.tls.key, "/key");
    assert_string_equal(address.tls.name, "10.0.0.1");
    parse("rediss+sentinel://h1,h2:7/mymaster?sentinel-password=pw&ssl-ca=/ca.pem", &address);
    assert_true(address.is_tls);
    assert_int_equal(address.sentinel_count, 2);
    assert_string_equal(address.master_name, "mymaster");
    assert_string_equal(address.sentinel_login.password, "pw");
    assert_string_equal(address.tls.ca, "/ca.pem");
    parse("redis+sentinel://h1/m", &address);
    assert_false(address.is_tls);
}

static void test_printed_address_parses_to_the_same_place_without_the_password(void **state)
{
    static const char *const pairs[][2] = {
        {"redis://ada:secret@h:1/2", "redis://h:1/2"},
        {"redis://localhost", "redis://localhost:6379/0"},
        {"redis://[::1]", "redis://[::1]:6379/0"},
        {"unix:///run/redis.sock", "unix:///run/redis.sock"},
        {"redis+sentinel://a:secret@h,[::1]:7,h3:8/my.m?db=2&sentinel-password=secret",
         "redis+sentinel://h:26379,[::1]:7,h3:8/my.m?db=2"},
        {"redis+sentinel://h/m", "redis+sentinel://h:26379/m"},
        {"redis+cluster://a:secret@h,[::1]:7", "redis+cluster://h:6379,[::1]:7"},
        {"unix:///run/a%3F%25%20b?db=4", "unix:///run/a%3F%25%20b?db=4"},
        {"redis://:a?secret@h?db=2", "redis://h:6379/2"},
        {"rediss://u:secret@h", "rediss://h:6379/0"},
        {"rediss://h:1?db=7&ssl-name=r.example", "rediss://h:1/7?ssl-name=r.example"},
        {"rediss://h:1/2?ssl-key=/k%26%3D&ssl-cert=/a@b&ssl-ca=/c%20d&ssl-name=::1",
         "rediss://h:1/2?ssl-ca=/c%20d&ssl-cert=/a@b&ssl-key=/k%26=&ssl-name=::1"},
        {"rediss+sentinel://h,h2:7/my.m?ssl-ca=/ca&sentinel-password=secret&db=2",
         "rediss+sentinel://h:26379,h2:7/my.m?db=2&ssl-ca=/ca"},
        {"rediss+cluster://u:secret@h,h2:7?ssl-ca=/ca", "rediss+cluster://h:6379,h2:7?ssl-ca=/ca"},
    };
    struct sl_redis_address address, again;
    char text[SL_REDIS_ADDRESS_TEXT_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        parse(pairs[i][0], &address);
        sl_redis_address_print(&address, text, sizeof(text));
        assert_string_equal(text, pairs[i][1]);
        parse(text, &again);
        assert_string_equal(again.endpoint.host, address.endpoint.host);
        assert_string_equal(again.path, address.path);
        assert_int_equal(again.endpoint.port, address.endpoint.port);
        assert_int_equal(again.db, address.db);
        assert_int_equal(again.sentinel_count, address.sentinel_count);
        assert_int_equal(again.seed_count, address.seed_count);
        assert_string_equal(again.master_name, address.master_name);
        assert_int_equal(again.is_tls, strncmp(text, "rediss", 6) == 0);
        assert_memory_equal(&again.tls, &address.tls, sizeof(again.tls));
    }
}

static void test_printing_into_a_small_room_cuts_off(void **state)
{
    struct sl_redis_address address;
    char room[8];

    (void)state;
    parse("redis://localhost", &address);
    sl_redis_address_print(&address, room, sizeof(room));
    assert_string_equal(room, "redis:/");
}

static void test_longest_socket_path_fits_and_one_more_byte_is_refused(void **state)
{
    struct sl_redis_address address, again;
    char url[200] = "unix://";
    char text[SL_REDIS_ADDRESS_TEXT_SIZE];

    (void)state;
    memset(url + 7, '#', 107);
    url[7] = '/';
    parse(url, &address);
    assert_int_equal(strlen(address.path), 107);
    sl_redis_address_print(&address, text, sizeof(text));
    parse(text, &again);
    assert_string_equal(again.path, address.path);
    url[7 + 107] = '#';
    refuse(url, "longer than 107 bytes");
}

static void test_refusals_say_what_is_wrong_and_keep_the_password(void **state)
{
    (void)state;
    refuse("", "redis://[user:password@]host");
    refuse("localhost:6379", "redis://[user:password@]host");
    refuse("rediss+other://h", "over TLS it begins with rediss");
    refuse("redis://", "names no host");
    refuse("redis://u:secret@", "names no host");
    refuse("redis://u@h", "user:password or :password");
    refuse("redis://u:@h", "user:password or :password");
    refuse("redis://u:secret%zz@h", "hex digits");
    refuse("redis://u:secret%4@h", "hex digits");
    refuse("redis://u:secret%00@h", "NUL");
    refuse("redis://u:secret@h:0", "port");
    refuse("redis://u:secret@h:65536", "port");
    refuse("redis://h:", "port");
    refuse("redis://h:6379x", "port");
    refuse("redis://[::1", "closing bracket");
    refuse("redis://[::1]6379", "port");
    refuse("redis://h h", "character");
    refuse("redis://h/x", "database 'x'");
    refuse("redis://h/-1", "database '-1'");
    refuse("redis://h/4294967296", "database");
    refuse("redis://h/0/1", "database");
    refuse("redis+sentinel://", "names no host");
    refuse("redis+sentinel://h", "name of the master");
    refuse("redis+sentinel://h/", "name of the master");
    refuse("redis+sentinel://h,/m", "names no host");
    refuse("redis+sentinel://h/m/0", "character");
    refuse("redis+sentinel://h:0/m", "port");
    refuse("redis+sentinel://h/m?db=x", "database 'x'");
    refuse("redis+sentinel://h/m?password=secret",
           "only these may stand: db, sentinel-user, sentinel-password");
    refuse("redis+sentinel://h/m?sentinel-user=u", "needs a sentinel-password");
    refuse("redis+sentinel://1,2,3,4,5,6,7,8,9/m", "at most 8 sentinels");
    refuse("redis+sentinel://h/"
           "0123456789012345678901234567890123456789012345678901234567890123",
           "longer than 63");
    refuse("redis+cluster://", "host");
    refuse("redis+cluster://h,", "host");
    refuse("redis+cluster://h/2", "no databases");
    refuse("redis+cluster://u:secret@h?db=2", "no databases");
    refuse("redis+cluster://h/?db=2", "no databases");
    refuse("redis+cluster://1,2,3,4,5,6,7,8,9", "at most 8 nodes");
    refuse("rediss+cluster://h?db=2", "only these may stand: ssl-ca, ssl-cert, ssl-key, ssl-name");
    refuse("redis://h/0?x", "only these may stand: db");
    refuse("redis://h?ssl-ca=/ca.pem", "only these may stand: db");
    refuse("redis://h/2?db=3", "database is named twice");
    refuse("rediss://h?sentinel-user=x",
           "only these may stand: db, ssl-ca, ssl-cert, ssl-key, ssl-name");
    refuse("rediss://h?ssl-ca=ca.pem", "ssl-ca of Redis is not an absolute path");
    refuse("rediss://h?ssl-cert=cert.pem", "ssl-cert of Redis is not an absolute path");
    refuse("rediss://h?ssl-key=", "ssl-key of Redis is not an absolute path");
    refuse("rediss://h?ssl-cert=/a", "ssl-cert and ssl-key of Redis need each other");
    refuse("rediss://h?ssl-key=/a", "ssl-cert and ssl-key of Redis need each other");
    refuse("rediss://h?ssl-name=a/b", "ssl-name of Redis is no name of a host");
    refuse("rediss+sentinel://h/m?ssl", "sentinel-password, ssl-ca, ssl-cert, ssl-key, ssl-name");
    refuse("unix://run/redis.sock", "absolute path");
    refuse("unix:///", "absolute path");
    refuse("unix:///a?x=1", "only these may stand: db");
    refuse("unix:///a?db=", "database");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tcp_address_in_all_its_parts),
        cmocka_unit_test(test_what_is_left_out_has_its_default),
        cmocka_unit_test(test_password_may_hold_a_bare_at_sign_and_colon),
        cmocka_unit_test(test_ipv6_host_stands_in_brackets),
        cmocka_unit_test(test_sentinels_name_and_logins),
        cmocka_unit_test(test_nodes_of_a_cluster),
        cmocka_unit_test(test_unix_socket_with_and_without_database),
        cmocka_unit_test(test_tls_names_files_and_whom_to_expect),
        cmocka_unit_test(test_printed_address_parses_to_the_same_place_without_the_password),
        cmocka_unit_test(test_printing_into_a_small_room_cuts_off),
        cmocka_unit_test(test_longest_socket_path_fits_and_one_more_byte_is_refused),
        cmocka_unit_test(test_refusals_say_what_is_wrong_and_keep_the_password),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
