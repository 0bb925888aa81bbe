#include "gateway/http/proxy_header.h"

#include <errno.h>
#include <stdio.h>

#include "base/alloc.h"
#include "tests/support/cmocka_all.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define BYTES(literal)                                                                             \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

/* Two headers of TCP: 192.0.2.1:4711 to 192.0.2.2:443. */
#define V4  "\xc0\0\2\1\xc0\0\2\2\x12\x67\1\xbb"
#define TLS "\x20\0\5\1\0\0\0\0"

/* Returns "client", "client tls", "-", "more", or the error. Every part of a valid header must
 * return "more". */
static const char *read(struct sl_slice input)
{
    static char text[128];
    char room[IP_ADDRESS_TEXT_SIZE];
    struct proxy_header header;
    const char *why = NULL;
    int r = proxy_header_read(input, &header, &why);

    if (r == 0)
        return "more";
    if (r == -EPROTO)
        return why;
    assert_int_equal(r, 1);
    for (size_t size = 0; size < header.size; size++) {
        char *part = mem_copy(input.data, size + 1); /* has no byte after it */

        assert_int_equal(
            proxy_header_read(sl_slice(part, size), &(struct proxy_header){.size = 0}, &why), 0);
        mem_free(part);
    }
    snprintf(text, sizeof(text), "%s%s+%zu", ip_address_print(&header.client, room),
             header.is_secure ? " tls" : "", input.size - header.size);
    return text;
}

static void test_version_1(void **state)
{
    static const char *const cases[][2] = {
        {"PROXY TCP4 192.0.2.1 192.0.2.2 4711 443\r\n", "192.0.2.1+0"},
        {"PROXY TCP4 192.0.2.1 192.0.2.2 4711 443\r\nGET / HTTP/1.1\r\n", "192.0.2.1+16"},
        {"PROXY TCP6 2001:db8::1 ::1 0 65535\r\n", "2001:db8::1+0"},
        {"PROXY TCP6 ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n", "an address is malformed"},
        {"PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff+0"},
        {"PROXY UNKNOWN\r\n", "-+0"},
        {"PROXY UNKNOWN ffff:: anything\r\nx", "-+1"},
        {"PROXY TCP4 192.0.2.1 192.0.2.2 4711 443", "more"},
        {"PROX", "more"},
        {"", "more"},
        {"GET / HTTP/1.1\r\n", "there is none"},
        {"proxy TCP4 192.0.2.1 192.0.2.2 4711 443\r\n", "there is none"},
        {"\x16\x03\x01", "there is none"},
        {"PROXY TCP4 192.0.2.1 192.0.2.2 4711 443\n", "the line does not end in CRLF"},
        {"PROXY\nTCP4", "there is none"},
        {"PROXY \r\n", "the family is not one of TCP4, TCP6, UNKNOWN"},
        {"PROXY TCP5 192.0.2.1 192.0.2.2 4711 443\r\n",
         "the family is not one of TCP4, TCP6, UNKNOWN"},
        {"PROXY  TCP4 192.0.2.1 192.0.2.2 4711 443\r\n",
         "the family is not one of TCP4, TCP6, UNKNOWN"},
        {"PROXY TCP4\r\n", "an address is malformed"},
        {"PROXY TCP4 192.0.2.1\r\n", "an address is malformed"},
        {"PROXY TCP4 ::1 ::1 1 1\r\n", "an address is malformed"},
        {"PROXY TCP6 192.0.2.1 192.0.2.2 1 1\r\n", "an address is malformed"},
        {"PROXY TCP4 192.0.2.1  192.0.2.2 1 1\r\n", "an address is malformed"},
        {"PROXY TCP4 192.0.2.1 192.0.2.2 4711\r\n", "a port is malformed"},
        {"PROXY TCP4 192.0.2.1 192.0.2.2 65536 443\r\n", "a port is malformed"},
        {"PROXY TCP4 192.0.2.1 192.0.2.2 01 443\r\n", "a port is malformed"},
        {"PROXY TCP4 192.0.2.1 192.0.2.2 1 443 \r\n", "a port is malformed"},
        {"PROXY UNKNOWN a\rb\r\n", "the line does not end in CRLF"},
        {"PROXY UNKNOWN "
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaaaaaaaaaaaaaaaaa\r\n",
         "the line is too long"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(read(sl_slice_str(cases[i][0])), cases[i][1]);
}

static void test_version_2(void **state)
{
    static const struct {
        struct sl_slice input;
        const char *found;
    } cases[] = {
        {BYTES(SIGNATURE "\x21\x11\0\x0c" V4), "192.0.2.1+0"},
        {BYTES(SIGNATURE "\x21\x11\0\x0c" V4 "\x16\3\1"), "192.0.2.1+3"},
        {BYTES(SIGNATURE "\x21\x21\0\x24"
                         "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\7"
                         "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x08"
                         "\0\1\0\2"),
         "2001:db8::7+0"},
        {BYTES(SIGNATURE "\x21\x21\0\x24"
                         "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\1"
                         "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\2"
                         "\0\1\0\2"),
         "192.0.2.1+0"},
        {BYTES(SIGNATURE "\x20\0\0\0"), "-+0"},
        {BYTES(SIGNATURE "\x20\x11\0\x0c" V4), "-+0"}, /* LOCAL: the addresses are ignored */
        {BYTES(SIGNATURE "\x20\x99\0\1!"), "-+0"},
        {BYTES(SIGNATURE "\x21\0\0\0"), "-+0"},
        {BYTES(SIGNATURE "\x21\0\0\3\4\0\0"), "-+0"},
        {BYTES(SIGNATURE "\x21\x11\0\x14" V4 TLS), "192.0.2.1 tls+0"},
        {BYTES(SIGNATURE "\x21\x11\0\x14" V4 "\x20\0\5\0\0\0\0\0"), "192.0.2.1+0"},
        {BYTES(SIGNATURE "\x21\x11\0\x19" V4 "\4\0\2..\xe0\0\5hello"), "192.0.2.1+0"},
        {BYTES(SIGNATURE "\x21\x11\0\x11" V4 "\4\0\4.."), "a TLV is longer than the header"},
        {BYTES(SIGNATURE "\x21\x11\0\x0e" V4 "\4\0"), "a TLV is longer than the header"},
        {BYTES(SIGNATURE "\x21\x11\0\x0f" V4 "\x20\0\0"), "the TLV about TLS is too short"},
        {BYTES(SIGNATURE "\x21\x11\0\x0b"
                         "\xc0\0\2\1\xc0\0\2\2\x12\x67\1"),
         "too short for its addresses"},
        {BYTES(SIGNATURE "\x21\x31\0\x0c" V4), "too short for its addresses"},
        {BYTES(SIGNATURE "\x21\x12\0\x0c" V4), "the family is not one of TCP"},
        {BYTES(SIGNATURE "\x22\x11\0\x0c" V4), "neither PROXY nor LOCAL of version 2"},
        {BYTES(SIGNATURE "\x11\x11\0\x0c" V4), "neither PROXY nor LOCAL of version 2"},
        {BYTES(SIGNATURE "\x21\x11\x10\0" V4), "it is too long"},
        {BYTES(SIGNATURE "\x21\x11\x0f\xf0" V4), "more"},
        {BYTES("\r\n\r\n\0\r\nQUIT\r"), "there is none"},
        {BYTES("\r\n\r\nGET"), "there is none"},
    };
    char unix_socket[16 + 216] = SIGNATURE "\x21\x31\0\xd8";

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_string_equal(read(cases[i].input), cases[i].found);
    assert_string_equal(read(sl_slice(unix_socket, sizeof(unix_socket))), "-+0");
}

/* CRC-32C as computed with a table, which is checked with "123456789": 0xe3069283. */
static void test_a_checksum_is_verified(void **state)
{
    char header[] = SIGNATURE "\x21\x11\0\x13" V4 "\3\0\4"
                              "\xe8\x8b\x19\xbc";
    struct sl_slice input = sl_slice(header, sizeof(header) - 1);

    (void)state;
    assert_string_equal(read(input), "192.0.2.1+0");
    header[16] ^= 1;
    assert_string_equal(read(input), "the checksum is wrong");
    header[16] ^= 1;
    header[15]--; /* one byte less, in a TLV of 3 */
    header[30]--;
    assert_string_equal(read(sl_slice(header, sizeof(header) - 2)), "the checksum is wrong");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version_1),
        cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_a_checksum_is_verified),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
