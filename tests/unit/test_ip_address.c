#include "base/ip_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>

#include "tests/support/cmocka_all.h"

static void test_addresses_are_read_and_printed(void **state)
{
    static const struct {
        const char *text, *printed; /* NULL: invalid */
    } cases[] = {
        {"192.0.2.1", "192.0.2.1"},
        {"0.0.0.0", "0.0.0.0"},
        {"2001:DB8::1", "2001:db8::1"},
        {"::", "::"},
        {"::ffff:192.0.2.1", "192.0.2.1"},
        {"::FFFF:c000:201", "192.0.2.1"},
        {"1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8"},
        {"", NULL},
        {"1.2.3", NULL},
        {"1.2.3.4.5", NULL},
        {"256.1.1.1", NULL},
        {"01.2.3.4", NULL},
        {" 1.2.3.4", NULL},
        {"1.2.3.4 ", NULL},
        {"0x7f.1", NULL},
        {"2130706433", NULL},
        {"[::1]", NULL},
        {"fe80::1%eth0", NULL},
        {"::1::", NULL},
        {"example.org", NULL},
        {"1:2:3:4:5:6:7:8:1:2:3:4:5:6:7:8:1:2:3:4:5:6:7:8", NULL},
    };
    char room[IP_ADDRESS_TEXT_SIZE];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct ip_address address;

        if (!cases[i].printed) {
            assert_false(ip_address_parse(sl_slice_str(cases[i].text), &address));
            continue;
        }
        assert_true(ip_address_parse(sl_slice_str(cases[i].text), &address));
        assert_string_equal(ip_address_print(&address, room), cases[i].printed);
    }
    assert_string_equal(ip_address_print(&(struct ip_address){.size = 0}, room), "-");
    assert_false(ip_address_parse(sl_slice("1.2.3.4\0", 8), &(struct ip_address){.size = 0}));
}

static void test_sockets_have_addresses(void **state)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr other = {.sa_family = AF_UNIX};
    struct ip_address a, b;

    (void)state;
    inet_pton(AF_INET6, "::ffff:127.0.0.1", &v6.sin6_addr);
    a = ip_address_of_socket((const struct sockaddr *)&v4);
    b = ip_address_of_socket((const struct sockaddr *)&v6);
    assert_true(ip_address_equal(&a, &b));
    assert_int_equal(ip_address_of_socket(&other).size, 0);
}

static struct ip_networks networks(const char *text)
{
    struct ip_networks found;
    struct failure why = {""};

    if (ip_networks_parse(sl_slice_str(text), &found, &why) < 0)
        fail_msg("%s: %s", text, why.text);
    return found;
}

static bool holds(const char *text, const char *address)
{
    struct ip_networks list = networks(text);
    struct ip_address parsed;

    assert_true(ip_address_parse(sl_slice_str(address), &parsed));
    return ip_networks_contain(&list, &parsed);
}

static void test_networks_hold_what_has_their_prefix(void **state)
{
    (void)state;
    assert_true(holds("10.0.0.0/8", "10.255.0.1"));
    assert_false(holds("10.0.0.0/8", "11.0.0.0"));
    assert_true(holds("10.128.0.0/9", "10.128.0.1"));
    assert_false(holds("10.128.0.0/9", "10.127.255.255"));
    assert_true(holds("192.0.2.1", "192.0.2.1"));
    assert_false(holds("192.0.2.1", "192.0.2.2"));
    assert_true(holds("192.0.2.1", "::ffff:192.0.2.1"));
    assert_true(holds("0.0.0.0/0", "203.0.113.7"));
    assert_false(holds("0.0.0.0/0", "2001:db8::1")); /* other address family */
    assert_true(holds("2001:db8::/33", "2001:db8:7fff::1"));
    assert_false(holds("2001:db8::/33", "2001:db8:8000::1"));
    assert_true(holds("192.0.2.0/24 ,\t2001:db8::/32", "2001:db8::1"));
    assert_true(holds("loopback", "127.0.0.2"));
    assert_true(holds("loopback", "::1"));
    assert_true(holds("loopback, private", "172.31.0.1"));
    assert_true(holds("private", "fd00::1"));
    assert_false(holds("private", "172.32.0.1"));
}

static void test_what_is_no_network_is_refused(void **state)
{
    static const char *const cases[][2] = {
        {"", "nothing stands between two commas"},
        {"10.0.0.0/8,", "nothing stands between two commas"},
        {"proxy.example.org", "is neither an address nor a network"},
        {"10.0.0.0/33", "has no number of bits from 0 to 32"},
        {"10.0.0.0/", "has no number of bits"},
        {"10.0.0.0/+8", "has no number of bits"},
        {"10.0.0.0/0008", "has no number of bits"},
        {"::/129", "from 0 to 128"},
        {"10.0.0.1/8", "has bits behind its prefix"},
        {"10.0.0.0/8/8", "has no number of bits"},
    };
    struct ip_networks found;
    struct failure why;
    char many[IP_NETWORKS_MAX * 9 + 10] = "";

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(ip_networks_parse(sl_slice_str(cases[i][0]), &found, &why), -22);
        if (!strstr(why.text, cases[i][1]))
            fail_msg("'%s': %s", cases[i][0], why.text);
    }
    for (size_t i = 0; i <= IP_NETWORKS_MAX; i++)
        strcat(many, i ? ",10.0.0.1" : "10.0.0.1");
    assert_int_equal(ip_networks_parse(sl_slice_str(many), &found, &why), -22);
    assert_non_null(strstr(why.text, "more than 128 networks"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_are_read_and_printed),
        cmocka_unit_test(test_sockets_have_addresses),
        cmocka_unit_test(test_networks_hold_what_has_their_prefix),
        cmocka_unit_test(test_what_is_no_network_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
