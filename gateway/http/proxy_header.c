/* proxy_header.c - parses the text line of version 1 and the binary form of version 2.
 *
 * Parsing is strict: only trusted proxies send it, so anything unusual is not a PROXY header. For
 * version 2 the addresses are read, and of the TLVs that follow them the one for TLS, and the
 * checksum, which is verified; others are skipped, but must be well-formed. */
#include "gateway/http/proxy_header.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

enum {
    LINE_MAX = 107, /* version 1, with its CRLF */
    FIXED_SIZE = 16 /* version 2, before its addresses */
};

static const struct sl_slice line_prefix = {"PROXY ", 6};
static const struct sl_slice signature = {"\r\n\r\n\0\r\nQUIT\n", 12};

static int refuse(const char *why, const char **ret_why)
{
    *ret_why = why;
    return -EPROTO;
}

/* --- version 1 --- */

/* Removes a word, up to one space. */
static struct sl_slice cut(struct sl_slice *rest)
{
    const char *space = memchr(rest->data, ' ', rest->size);
    struct sl_slice word = sl_slice(rest->data, space ? (size_t)(space - rest->data) : rest->size);

    *rest = sl_slice_from(*rest, word.size + (space ? 1 : 0));
    return word;
}

static bool is_port(struct sl_slice text)
{
    unsigned port = 0;

    if (text.size == 0 || text.size > 5 || (text.size > 1 && text.data[0] == '0'))
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        port = port * 10 + (unsigned)(text.data[i] - '0');
    }
    return port <= UINT16_MAX;
}

/* The address must be of the named family: an IPv4-mapped IPv6 address contains colons, too. */
static bool read_address(struct sl_slice text, bool is_v6, struct ip_address *ret_address)
{
    return is_v6 == (memchr(text.data, ':', text.size) != NULL) &&
           ip_address_parse(text, ret_address);
}

/* `line` is what follows "PROXY ", without its CRLF. */
static int read_words(struct sl_slice line, struct proxy_header *header, const char **ret_why)
{
    struct sl_slice family = cut(&line), from, to, from_port;
    struct ip_address server;
    bool is_v6;

    if (sl_slice_is(family, "UNKNOWN"))
        return 1; /* the rest must be ignored */
    is_v6 = sl_slice_is(family, "TCP6");
    if (!is_v6 && !sl_slice_is(family, "TCP4"))
        return refuse("the family is not one of TCP4, TCP6, UNKNOWN", ret_why);
    from = cut(&line);
    to = cut(&line);
    from_port = cut(&line);
    if (!read_address(from, is_v6, &header->client) || !read_address(to, is_v6, &server))
        return refuse("an address is malformed", ret_why);
    if (!is_port(from_port) || !is_port(line))
        return refuse("a port is malformed", ret_why);
    return 1;
}

static int read_line(struct sl_slice input, struct proxy_header *header, const char **ret_why)
{
    size_t most = input.size < LINE_MAX ? input.size : LINE_MAX;
    const char *end = memchr(input.data, '\n', most);

    if (!end)
        return input.size < LINE_MAX ? 0 : refuse("the line is too long", ret_why);
    header->size = (size_t)(end - input.data) + 1;
    if (end[-1] != '\r' || memchr(input.data, '\r', header->size) != end - 1)
        return refuse("the line does not end in CRLF", ret_why);
    return read_words(sl_slice(input.data + line_prefix.size, header->size - line_prefix.size - 2),
                      header, ret_why);
}

/* --- version 2 --- */

static size_t read_16(const char *bytes)
{
    return (size_t)((uint8_t)bytes[0] << 8 | (uint8_t)bytes[1]);
}

static uint32_t crc32c(uint32_t crc, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        crc ^= (uint8_t)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return crc;
}

/* Over the whole header, with zeros in place of the checksum. */
static bool checksum_is_right(struct sl_slice whole, const char *checksum)
{
    size_t at = (size_t)(checksum - whole.data);
    uint32_t crc = crc32c(UINT32_MAX, whole.data, at);

    crc = crc32c(crc, "\0\0\0", 4);
    crc = ~crc32c(crc, checksum + 4, whole.size - at - 4);
    return crc == ((uint32_t)read_16(checksum) << 16 | (uint32_t)read_16(checksum + 2));
}

static int read_tlvs(struct sl_slice whole, struct sl_slice rest, struct proxy_header *header,
                     const char **ret_why)
{
    enum { CHECKSUM = 0x03, TLS = 0x20, TLV_HEAD = 3, BY_TLS = 1 };

    while (rest.size > 0) {
        unsigned type = (uint8_t)rest.data[0];
        const char *value = rest.data + TLV_HEAD;
        size_t size;

        if (rest.size < TLV_HEAD || (size = read_16(rest.data + 1)) > rest.size - TLV_HEAD)
            return refuse("a TLV is longer than the header", ret_why);
        if (type == CHECKSUM && (size != 4 || !checksum_is_right(whole, value)))
            return refuse("the checksum is wrong", ret_why);
        if (type == TLS && size < 5)
            return refuse("the TLV about TLS is too short", ret_why);
        if (type == TLS)
            header->is_secure = value[0] & BY_TLS;
        rest = sl_slice_from(rest, TLV_HEAD + size);
    }
    return 1;
}

static int read_numbers(struct sl_slice whole, struct proxy_header *header, const char **ret_why)
{
    static const struct {
        unsigned family;
        size_t address_size, addresses_size; /* of one address; of both, with their ports */
    } families[] = {{0x00, 0, 0}, {0x11, 4, 12}, {0x21, 16, 36}, {0x31, 0, 216}};
    enum { LOCAL = 0x20, PROXY = 0x21 };
    struct sl_slice rest = sl_slice_from(whole, FIXED_SIZE);
    unsigned command = (uint8_t)whole.data[12], family = (uint8_t)whole.data[13];

    if (command == LOCAL)
        return 1; /* the rest must be ignored */
    if (command != PROXY)
        return refuse("neither PROXY nor LOCAL of version 2", ret_why);
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
        if (families[i].family != family)
            continue;
        if (rest.size < families[i].addresses_size)
            return refuse("too short for its addresses", ret_why);
        if (families[i].address_size > 0)
            header->client = ip_address_of_bytes(rest.data, families[i].address_size);
        return read_tlvs(whole, sl_slice_from(rest, families[i].addresses_size), header, ret_why);
    }
    return refuse("the family is not one of TCP", ret_why);
}

static int read_binary(struct sl_slice input, struct proxy_header *header, const char **ret_why)
{
    if (input.size < FIXED_SIZE)
        return 0;
    header->size = FIXED_SIZE + read_16(input.data + 14);
    if (header->size > PROXY_HEADER_MAX)
        return refuse("it is too long", ret_why);
    if (input.size < header->size)
        return 0;
    return read_numbers(sl_slice(input.data, header->size), header, ret_why);
}

/* --- both versions --- */

/* Compares only as far as `input` reaches. */
static bool begins_like(struct sl_slice input, struct sl_slice prefix)
{
    size_t size = input.size < prefix.size ? input.size : prefix.size;

    return memcmp(input.data, prefix.data, size) == 0;
}

int proxy_header_read(struct sl_slice input, struct proxy_header *ret_header, const char **ret_why)
{
    struct proxy_header header = {.size = 0};
    int r = 0;

    if (input.size == 0)
        return 0;
    if (begins_like(input, line_prefix))
        r = input.size < line_prefix.size ? 0 : read_line(input, &header, ret_why);
    else if (begins_like(input, signature))
        r = read_binary(input, &header, ret_why);
    else
        r = refuse("there is none", ret_why);
    if (r == 1)
        *ret_header = header;
    return r;
}
