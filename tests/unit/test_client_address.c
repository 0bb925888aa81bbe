#include "gateway/http/client_address.h"

#include <stdio.h>

#include "tests/support/cmocka_all.h"

/* Returns what the lines, separated by `|`, say if 10.0.0.0/8 and ::1 are trusted: "client" or
 * "client tls", followed by `!` if an element could not be read. */
static const char *read(bool forwarded, const char *lines, const char *protos)
{
    static char text[IP_ADDRESS_TEXT_SIZE + 8];
    struct client_trust trust = {.reads_forwarded = forwarded};
    struct ip_address peer = ip_address_of_bytes("\x0a\0\0\1", 4);
    struct sl_slice rest = sl_slice_str(lines);
    struct http_request request = {.method = HTTP_GET};
    struct http_list *list = forwarded ? &request.forwarded : &request.forwarded_for;
    struct client_found found;
    char room[IP_ADDRESS_TEXT_SIZE];

    assert_int_equal(ip_networks_parse(SL_SLICE("10.0.0.0/8, ::1"), &trust.proxies, NULL), 0);
    for (size_t i = 0; rest.size > 0; i++) {
        const char *bar = memchr(rest.data, '|', rest.size);
        size_t size = bar ? (size_t)(bar - rest.data) : rest.size;

        list->lines[i] = sl_slice(rest.data, size);
        rest = sl_slice_from(rest, bar ? size + 1 : size);
    }
    request.forwarded_proto.lines[0] = sl_slice_str(protos);
    found = client_address_find(&trust, &peer, &request);
    snprintf(text, sizeof(text), "%s%s%s", ip_address_print(&found.address, room),
             found.is_secure ? " tls" : "", found.is_unusable ? " !" : "");
    return text;
}

struct line {
    const char *header, *found;
};

static void expect_lines(bool forwarded, const struct line *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *found = read(forwarded, lines[i].header, NULL);

        if (strcmp(found, lines[i].found) != 0)
            fail_msg("%s: %s instead of %s", lines[i].header, found, lines[i].found);
    }
}

static void test_x_forwarded_for_is_read_from_the_right(void **state)
{
    static const struct line lines[] = {
        {"", "10.0.0.1"},
        {"192.0.2.1", "192.0.2.1"},
        {"198.51.100.9, 192.0.2.1", "192.0.2.1"}, /* the left one was written by the client */
        {"192.0.2.1, 10.0.0.2", "192.0.2.1"},
        {"192.0.2.1,10.0.0.2 , ::1,10.9.9.9", "192.0.2.1"},
        {"10.0.0.3, 10.0.0.2", "10.0.0.3"}, /* a proxy's own request */
        {"198.51.100.9|192.0.2.1|10.0.0.2", "192.0.2.1"},
        {"192.0.2.1,", "192.0.2.1"},
        {", ,192.0.2.1 ,\t,", "192.0.2.1"},
        {",", "10.0.0.1"},
        {"192.0.2.1:4711", "192.0.2.1"},
        {"2001:db8::7", "2001:db8::7"},
        {"[2001:db8::7]", "2001:db8::7"},
        {"[2001:db8::7]:80", "2001:db8::7"},
        {"::ffff:192.0.2.1", "192.0.2.1"},
        {"::ffff:10.0.0.2", "10.0.0.2"},
        {"\"x, 192.0.2.1", "192.0.2.1"}, /* the open quote is the client's */
        {"\\, 192.0.2.1", "192.0.2.1"},
        {"192.0.2.1, unknown", "10.0.0.1 !"}, /* the hop before it counts */
        {"192.0.2.1, unknown, 10.0.0.2", "10.0.0.2 !"},
        {"192.0.2.1 198.51.100.9", "10.0.0.1 !"},
        {"192.0.2.1:", "10.0.0.1 !"},
        {"192.0.2.1:port", "10.0.0.1 !"},
        {"192.0.2.1:123456", "10.0.0.1 !"},
        {"[192.0.2.1]", "10.0.0.1 !"},
        {"[2001:db8::7", "10.0.0.1 !"},
        {"[2001:db8::7]80", "10.0.0.1 !"},
        {"[]", "10.0.0.1 !"},
        {":80", "10.0.0.1 !"},
        {"\"192.0.2.1\"", "10.0.0.1 !"},
        {"192.0.2.1\"", "10.0.0.1 !"},
        {"192.0.2.1, 300.1.1.1", "10.0.0.1 !"},
        {"for=192.0.2.1", "10.0.0.1 !"},
    };

    (void)state;
    expect_lines(false, lines, sizeof(lines) / sizeof(lines[0]));
}

static void test_forwarded_is_read_from_the_right(void **state)
{
    static const struct line lines[] = {
        {"for=192.0.2.1", "192.0.2.1"},
        {"For=192.0.2.1;Proto=HTTPS;by=10.0.0.1", "192.0.2.1 tls"},
        {"by=10.0.0.1; proto=http ;\tfor=192.0.2.1", "192.0.2.1"},
        {"for=198.51.100.9, for=192.0.2.1", "192.0.2.1"},
        {"for=192.0.2.1;proto=https, for=10.0.0.2;proto=http", "192.0.2.1 tls"},
        {"for=192.0.2.1;proto=http, for=10.0.0.2;proto=https", "192.0.2.1"},
        {"for=192.0.2.1;proto=https|for=10.0.0.2", "192.0.2.1 tls"},
        {"for=\"192.0.2.1:4711\"", "192.0.2.1"},
        {"for=\"[2001:db8::7]:80\"", "2001:db8::7"},
        {"for=\"[2001:db8::7]\";host=\"a,b;c\"", "2001:db8::7"},
        {"for=\", for=192.0.2.1", "192.0.2.1"}, /* the client opened a quote */
        {"for=\"x, for=\"[2001:db8::7]\"", "2001:db8::7"},
        {"\\, for=192.0.2.1", "192.0.2.1"},
        {"for=192.0.2.1;;", "10.0.0.1 !"},
        {"for=192.0.2.1, for=unknown", "10.0.0.1 !"},
        {"for=192.0.2.1, for=_hidden, for=10.0.0.2", "10.0.0.2 !"},
        {"proto=https", "10.0.0.1 !"},
        {"for=192.0.2.1;for=192.0.2.2", "10.0.0.1 !"},
        {"for=192.0.2.1;proto=http;proto=https", "10.0.0.1 !"},
        {"192.0.2.1", "10.0.0.1 !"},
        {"for=", "10.0.0.1 !"},
        {"for=\"192.0.2.1", "10.0.0.1 !"},
        {"for=192.0.2.1\"", "10.0.0.1 !"},
        {"for=\"192.0.2.1\"x", "10.0.0.1 !"},
        {"for=\"192.0\\.2.1\"", "10.0.0.1 !"},
        {"for=192.0.2.1;host=\"a\\\"b\"", "10.0.0.1 !"},
        {"for =192.0.2.1", "10.0.0.1 !"},
    };

    (void)state;
    expect_lines(true, lines, sizeof(lines) / sizeof(lines[0]));
}

static void test_tls_is_what_all_proxies_say(void **state)
{
    (void)state;
    assert_string_equal(read(false, "192.0.2.1", "https"), "192.0.2.1 tls");
    assert_string_equal(read(false, "192.0.2.1", "WSS"), "192.0.2.1 tls");
    assert_string_equal(read(false, "192.0.2.1", "https, https"), "192.0.2.1 tls");
    assert_string_equal(read(false, "192.0.2.1", "https, http"), "192.0.2.1");
    assert_string_equal(read(false, "192.0.2.1", "http, https"), "192.0.2.1");
    assert_string_equal(read(false, "192.0.2.1", "http"), "192.0.2.1");
    assert_string_equal(read(false, "192.0.2.1", ""), "192.0.2.1");
    assert_string_equal(read(true, "for=192.0.2.1", "https"),
                        "192.0.2.1"); /* the header that is not configured */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_x_forwarded_for_is_read_from_the_right),
        cmocka_unit_test(test_forwarded_is_read_from_the_right),
        cmocka_unit_test(test_tls_is_what_all_proxies_say),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
