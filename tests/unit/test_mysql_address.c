/* URLs of archives in MySQL and MariaDB. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/archive/archive.h"
#include "src/archive/mysql_address.h"
#include "tests/support/cmocka_all.h"

static void parse(const char *rest, struct sl_mysql_address *address)
{
    struct failure failure = {""};

    if (sl_mysql_address_parse(sl_slice_str(rest), address, &failure) < 0)
        fail_msg("%s: %s", rest, failure.text);
}

static void test_address_in_all_its_parts(void **state)
{
    struct sl_mysql_address address;

    (void)state;
    parse("//ada:s%40cret@db.example:3307/so%20cial?ssl-ca=/etc/ca.pem&ssl-cert=/c%26.pem&"
          "ssl-key=/k.pem&timeout=3",
          &address);
    assert_string_equal(address.user, "ada");
    assert_string_equal(address.password, "s@cret");
    assert_string_equal(address.host, "db.example");
    assert_int_equal(address.port, 3307);
    assert_string_equal(address.database, "so cial");
    assert_string_equal(address.ca, "/etc/ca.pem");
    assert_string_equal(address.cert, "/c&.pem");
    assert_string_equal(address.key, "/k.pem");
    assert_string_equal(address.socket, "");
    assert_string_equal(address.password_file, "");
    assert_int_equal(address.timeout_s, 3);
}

static void test_what_is_left_out_has_its_default(void **state)
{
    struct sl_mysql_address address;

    (void)state;
    parse("//ada@localhost/sluice", &address);
    assert_string_equal(address.password, "");
    assert_string_equal(address.host, "localhost");
    assert_int_equal(address.port, 3306);
    assert_int_equal(address.timeout_s, 5);
    parse("//ada:@localhost/sluice?", &address);
    assert_string_equal(address.password, "");
}

static void test_password_may_hold_a_bare_at_sign_and_colon(void **state)
{
    struct sl_mysql_address address;

    (void)state;
    parse("//ada:a@b:c@host/sluice", &address);
    assert_string_equal(address.password, "a@b:c");
    assert_string_equal(address.host, "host");
}

static void test_ipv6_host_stands_in_brackets(void **state)
{
    struct sl_mysql_address address;
    char text[SL_MYSQL_ADDRESS_TEXT_SIZE];

    (void)state;
    parse("//ada@[::1]:3307/sluice", &address);
    assert_string_equal(address.host, "::1");
    assert_int_equal(address.port, 3307);
    sl_mysql_address_print(&address, text);
    assert_string_equal(text, "sluice at [::1]:3307");
}

static void test_a_socket_stands_for_the_host(void **state)
{
    static const char *const urls[] = {"//ada@/sluice?socket=/run/mysqld/mysqld.sock",
                                       "//ada@localhost/sluice?socket=/run/mysqld/mysqld.sock"};
    struct sl_mysql_address address;
    char text[SL_MYSQL_ADDRESS_TEXT_SIZE];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        parse(urls[i], &address);
        assert_string_equal(address.socket, "/run/mysqld/mysqld.sock");
        assert_string_equal(address.host, "");
        sl_mysql_address_print(&address, text);
        assert_string_equal(text, "sluice at /run/mysqld/mysqld.sock");
    }
}

static void test_messages_name_the_place_without_user_and_password(void **state)
{
    struct sl_mysql_address address;
    char text[SL_MYSQL_ADDRESS_TEXT_SIZE];

    (void)state;
    parse("//ada:secret@db.example/sluice", &address);
    sl_mysql_address_print(&address, text);
    assert_string_equal(text, "sluice at db.example:3306");
}

static void test_each_refusal_says_what_is_wrong_and_keeps_the_password(void **state)
{
    static const struct {
        const char *url, *text;
    } cases[] = {
        {"mysql:", "is mysql://user[:password]@host[:port]/database"},
        {"mysql:/ada:secret@host/sluice", "is mysql://user[:password]@host[:port]/database"},
        {"mysql://", "names no user"},
        {"mysql://host/sluice", "names no user"},
        {"mysql://:secret@host/sluice", "names no user"},
        {"mysql://ada:sec/ret@host/sluice", "names no user"},
        {"mysql://ada:secret%4@host/sluice", "password holds a % that two hex digits"},
        {"mysql://a%zz:secret@host/sluice", "user holds a % that two hex digits"},
        {"mysql://a%00:secret@host/sluice", "user holds a NUL byte"},
        {"mysql://ada:secret@/sluice", "names no host"},
        {"mysql://ada:secret@:3306/sluice", "names no host"},
        {"mysql://ada:secret@ho st/sluice", "a character that no host has"},
        {"mysql://ada:secret@[::1/sluice", "lacks its closing bracket"},
        {"mysql://ada:secret@host:/sluice", "port is not a number"},
        {"mysql://ada:secret@host:0/sluice", "port is not a number"},
        {"mysql://ada:secret@host:65536/sluice", "port is not a number"},
        {"mysql://ada:secret@host:3306x/sluice", "port is not a number"},
        {"mysql://ada:secret@host", "names no database"},
        {"mysql://ada:secret@host/", "names no database"},
        {"mysql://ada:secret@host/?timeout=1", "names no database"},
        {"mysql://ada:secret@host/sluice/posts", "database has a slash"},
        {"mysql://ada:secret@host/sluice/", "database has a slash"},
        {"mysql://ada:secret@host/slu%ice", "database holds a % that two hex digits"},
        {"mysql://ada:secret@host/sluice?user=bob", "behind the ? of an archive may stand"},
        {"mysql://ada:secret@host/sluice?&timeout=1", "behind the ? of an archive may stand"},
        {"mysql://ada:secret@host/sluice?timeout", "timeout is not a number of seconds"},
        {"mysql://ada:secret@host/sluice?timeout=0", "timeout is not a number of seconds"},
        {"mysql://ada:secret@host/sluice?timeout=3601", "timeout is not a number of seconds"},
        {"mysql://ada:secret@host/sluice?timeout=1s", "timeout is not a number of seconds"},
        {"mysql://ada:secret@host/sluice?timeout=1&timeout=1", "timeout is given twice"},
        {"mysql://ada@/sluice?socket=", "socket is not an absolute path"},
        {"mysql://ada@/sluice?socket=mysqld.sock", "socket is not an absolute path"},
        {"mysql://ada@/sluice?socket=%41bc", "socket is not an absolute path"},
        {"mysql://ada@/sluice?socket=/a&socket=/b", "socket is given twice"},
        {"mysql://ada@host/sluice?socket=/a", "no host stands before it"},
        {"mysql://ada@/sluice?socket=/a&ssl-ca=/b", "there is no TLS"},
        {"mysql://ada@host/sluice?password-file=pw", "password-file is not an absolute path"},
        {"mysql://ada:secret@host/sluice?password-file=/pw", "a password and a password-file"},
        {"mysql://ada@host/sluice?ssl-ca=ca.pem", "ssl-ca is not an absolute path"},
        {"mysql://ada@host/sluice?ssl-ca=/ca&ssl-cert=/c", "ssl-cert and ssl-key need each other"},
        {"mysql://ada@host/sluice?ssl-ca=/ca&ssl-key=/k", "ssl-cert and ssl-key need each other"},
        {"mysql://ada@host/sluice?ssl-cert=/c&ssl-key=/k", "ssl-cert needs an ssl-ca"},
        {"mariadb://ada:secret@host", "names no database"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct failure failure = {""};

        if (sl_archive_check(cases[i].url, &failure) != -EINVAL)
            fail_msg("%s is not refused", cases[i].url);
        if (!strstr(failure.text, cases[i].text))
            fail_msg("%s: said '%s', not '%s'", cases[i].url, failure.text, cases[i].text);
        assert_null(strstr(failure.text, "secret"));
        assert_null(strstr(failure.text, "ret@"));
    }
}

static void test_parts_that_are_too_long_are_refused(void **state)
{
    static const char *const forms[] = {"//%s@host/sluice", "//ada:%s@host/sluice",
                                        "//ada@%s/sluice", "//ada@host/%s",
                                        "//ada@/sluice?socket=/%s"};
    char much[1025], url[1200];

    (void)state;
    memset(much, 'x', sizeof(much) - 1);
    much[sizeof(much) - 1] = '\0';
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        const char *at = strstr(forms[i], "%s");
        struct sl_mysql_address address;
        struct failure failure = {""};

        snprintf(url, sizeof(url), "%.*s%s%s", (int)(at - forms[i]), forms[i], much, at + 2);
        assert_int_equal(sl_mysql_address_parse(sl_slice_str(url), &address, &failure), -EINVAL);
        assert_non_null(strstr(failure.text, "is longer than"));
    }
}

static void test_archives_of_mariadb_are_the_same(void **state)
{
    struct failure failure = {""};

    (void)state;
    assert_int_equal(sl_archive_check("mysql://ada@host/sluice", &failure), 0);
    assert_int_equal(sl_archive_check("mariadb://ada@host/sluice", &failure), 0);
}

/* ---- the password ---- */

static char file[64];

static int make_file(void **state)
{
    int fd;

    (void)state;
    snprintf(file, sizeof(file), "/tmp/test_mysql_address.XXXXXX");
    fd = mkstemp(file);
    return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
    (void)state;
    unsetenv("SLUICE_ARCHIVE_PASSWORD");
    return unlink(file);
}

static void write_file(const char *bytes, size_t size)
{
    int fd = open(file, O_WRONLY | O_TRUNC);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    close(fd);
}

static int read_password(char password[static SL_MYSQL_PASSWORD_SIZE], struct failure *reterr)
{
    struct sl_mysql_address address;
    char url[128];

    snprintf(url, sizeof(url), "//ada@host/sluice?password-file=%s", file);
    parse(url, &address);
    return sl_mysql_address_password(&address, password, reterr);
}

static void test_password_comes_from_a_file(void **state)
{
    static const char *const contents[][2] = {
        {"secret", "secret"}, {"secret\n", "secret"}, {"secret\n\n", "secret\n"}, {" \n", " "}};
    char password[SL_MYSQL_PASSWORD_SIZE];
    struct failure failure;

    (void)state;
    setenv("SLUICE_ARCHIVE_PASSWORD", "not this one", 1);
    for (size_t i = 0; i < 4; i++) {
        write_file(contents[i][0], strlen(contents[i][0]));
        assert_int_equal(read_password(password, &failure), 0);
        assert_string_equal(password, contents[i][1]);
    }
}

static void test_files_that_hold_no_password_are_refused(void **state)
{
    char password[SL_MYSQL_PASSWORD_SIZE], much[SL_MYSQL_PASSWORD_SIZE + 1];
    struct failure failure = {""};

    (void)state;
    memset(much, 'x', sizeof(much));
    write_file("", 0);
    assert_int_equal(read_password(password, &failure), -EINVAL);
    write_file("\n", 1);
    assert_int_equal(read_password(password, &failure), -EINVAL);
    write_file("se\0ret", 6);
    assert_int_equal(read_password(password, &failure), -EINVAL);
    write_file(much, sizeof(much));
    assert_int_equal(read_password(password, &failure), -EINVAL);
    assert_non_null(strstr(failure.text, file));
    assert_null(strstr(failure.text, "xxxx"));
    unlink(file);
    assert_int_equal(read_password(password, &failure), -EACCES);
    assert_non_null(strstr(failure.text, "No such file"));
    make_file(state);
}

static void test_password_comes_from_the_environment_unless_the_url_has_one(void **state)
{
    char password[SL_MYSQL_PASSWORD_SIZE], much[SL_MYSQL_PASSWORD_SIZE + 1] = "";
    struct sl_mysql_address address;
    struct failure failure = {""};

    (void)state;
    parse("//ada@host/sluice", &address);
    assert_int_equal(sl_mysql_address_password(&address, password, &failure), 0);
    assert_string_equal(password, "");
    setenv("SLUICE_ARCHIVE_PASSWORD", "secret", 1);
    assert_int_equal(sl_mysql_address_password(&address, password, &failure), 0);
    assert_string_equal(password, "secret");
    parse("//ada:own@host/sluice", &address);
    assert_int_equal(sl_mysql_address_password(&address, password, &failure), 0);
    assert_string_equal(password, "own");
    memset(much, 'x', sizeof(much) - 1);
    setenv("SLUICE_ARCHIVE_PASSWORD", much, 1);
    parse("//ada@host/sluice", &address);
    assert_int_equal(sl_mysql_address_password(&address, password, &failure), -EINVAL);
    assert_null(strstr(failure.text, "xxxx"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_address_in_all_its_parts),
        cmocka_unit_test(test_what_is_left_out_has_its_default),
        cmocka_unit_test(test_password_may_hold_a_bare_at_sign_and_colon),
        cmocka_unit_test(test_ipv6_host_stands_in_brackets),
        cmocka_unit_test(test_a_socket_stands_for_the_host),
        cmocka_unit_test(test_messages_name_the_place_without_user_and_password),
        cmocka_unit_test(test_each_refusal_says_what_is_wrong_and_keeps_the_password),
        cmocka_unit_test(test_parts_that_are_too_long_are_refused),
        cmocka_unit_test(test_archives_of_mariadb_are_the_same),
        cmocka_unit_test_setup_teardown(test_password_comes_from_a_file, make_file, remove_file),
        cmocka_unit_test_setup_teardown(test_files_that_hold_no_password_are_refused, make_file,
                                        remove_file),
        cmocka_unit_test_setup_teardown(
            test_password_comes_from_the_environment_unless_the_url_has_one, make_file,
            remove_file),
    };

    return cmocka_run_group_tests_name("mysql_address", tests, NULL, NULL);
}
