/* ip_address.c - converts texts and socket addresses with the C library, and compares networks by
 * the bits of their prefix.
 *
 * Networks are searched linearly, because there are few. */
#include "base/ip_address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"

static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

struct ip_address ip_address_of_bytes(const void *bytes, size_t size)
{
    struct ip_address address = {.size = (uint8_t)size};

    if (size == 16 && memcmp(bytes, mapped_prefix, sizeof(mapped_prefix)) == 0)
        return ip_address_of_bytes((const uint8_t *)bytes + sizeof(mapped_prefix), 4);
    memcpy(address.bytes, bytes, size);
    return address;
}

struct ip_address ip_address_of_socket(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET)
        return ip_address_of_bytes(&((const struct sockaddr_in *)(const void *)address)->sin_addr,
                                   4);
    if (address->sa_family == AF_INET6)
        return ip_address_of_bytes(&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr,
                                   16);
    return (struct ip_address){.size = 0};
}

bool ip_address_parse(struct sl_slice text, struct ip_address *ret_address)
{
    char room[IP_ADDRESS_TEXT_SIZE];
    uint8_t bytes[16];

    if (text.size == 0 || text.size >= sizeof(room) || memchr(text.data, '\0', text.size))
        return false;
    snprintf(room, sizeof(room), "%.*s", SL_SLICE_ARG(text));
    if (inet_pton(AF_INET, room, bytes) == 1)
        *ret_address = ip_address_of_bytes(bytes, 4);
    else if (inet_pton(AF_INET6, room, bytes) == 1)
        *ret_address = ip_address_of_bytes(bytes, 16);
    else
        return false;
    return true;
}

bool ip_address_equal(const struct ip_address *a, const struct ip_address *b)
{
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

const char *ip_address_print(const struct ip_address *address,
                             char room[static IP_ADDRESS_TEXT_SIZE])
{
    if (address->size == 0 || !inet_ntop(address->size == 4 ? AF_INET : AF_INET6, address->bytes,
                                         room, IP_ADDRESS_TEXT_SIZE))
        snprintf(room, IP_ADDRESS_TEXT_SIZE, "-");
    return room;
}

/* --- networks --- */

static const struct {
    const char *name, *networks;
} names[] = {
    {"loopback", "127.0.0.0/8, ::1"},
    {"private", "10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, fc00::/7"},
};

static bool is_within(const struct ip_network *network, const struct ip_address *address)
{
    size_t whole = network->bits / 8u;
    unsigned rest = network->bits % 8u;

    if (network->first.size != address->size ||
        memcmp(network->first.bytes, address->bytes, whole) != 0)
        return false;
    return rest == 0 || (network->first.bytes[whole] ^ address->bytes[whole]) >> (8 - rest) == 0;
}

bool ip_networks_contain(const struct ip_networks *networks, const struct ip_address *address)
{
    for (unsigned i = 0; i < networks->count; i++) {
        if (is_within(&networks->networks[i], address))
            return true;
    }
    return false;
}

/* Whether all bits after the prefix are 0. */
static bool is_first(const struct ip_network *network)
{
    for (unsigned i = network->bits; i < network->first.size * 8u; i++) {
        if (network->first.bytes[i / 8] & (0x80 >> i % 8))
            return false;
    }
    return true;
}

static bool read_bits(struct sl_slice text, unsigned highest, uint8_t *ret_bits)
{
    unsigned bits = 0;

    if (text.size == 0 || text.size > 3)
        return false;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
        bits = bits * 10 + (unsigned)(text.data[i] - '0');
    }
    *ret_bits = (uint8_t)bits;
    return bits <= highest;
}

static int read_network(struct sl_slice text, struct ip_network *ret_network,
                        struct failure *reterr)
{
    const char *slash = memchr(text.data, '/', text.size);
    struct sl_slice address = sl_slice(text.data, slash ? (size_t)(slash - text.data) : text.size);
    char room[LOG_QUOTE_SIZE];

    if (!ip_address_parse(address, &ret_network->first))
        return failure_set(reterr, -EINVAL,
                           "%s is neither an address nor a network like 10.0.0.0/8",
                           log_quote(text, room));
    ret_network->bits = (uint8_t)(ret_network->first.size * 8);
    if (slash &&
        !read_bits(sl_slice_from(text, address.size + 1), ret_network->bits, &ret_network->bits))
        return failure_set(reterr, -EINVAL,
                           "%s has no number of bits from 0 to %d behind its slash",
                           log_quote(text, room), ret_network->first.size * 8);
    if (!is_first(ret_network))
        return failure_set(reterr, -EINVAL, "%s has bits behind its prefix: is one address meant?",
                           log_quote(text, room));
    return 0;
}

static struct sl_slice trim(struct sl_slice text)
{
    while (text.size > 0 && (text.data[0] == ' ' || text.data[0] == '\t'))
        text = sl_slice_from(text, 1);
    while (text.size > 0 && (text.data[text.size - 1] == ' ' || text.data[text.size - 1] == '\t'))
        text.size--;
    return text;
}

static int add(struct sl_slice text, struct ip_networks *networks, struct failure *reterr);

static int add_list(struct sl_slice text, struct ip_networks *networks, struct failure *reterr)
{
    const char *comma;
    int r = 0;

    do {
        comma = memchr(text.data, ',', text.size);
        r = add(trim(sl_slice(text.data, comma ? (size_t)(comma - text.data) : text.size)),
                networks, reterr);
        if (comma)
            text = sl_slice_from(text, (size_t)(comma - text.data) + 1);
    } while (r == 0 && comma);
    return r;
}

static int add(struct sl_slice text, struct ip_networks *networks, struct failure *reterr)
{
    if (text.size == 0)
        return failure_set(reterr, -EINVAL, "nothing stands between two commas");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (sl_slice_is(text, names[i].name))
            return add_list(sl_slice_str(names[i].networks), networks, reterr);
    }
    if (networks->count == IP_NETWORKS_MAX)
        return failure_set(reterr, -EINVAL, "more than %d networks", IP_NETWORKS_MAX);
    return read_network(text, &networks->networks[networks->count++], reterr);
}

int ip_networks_parse(struct sl_slice text, struct ip_networks *ret_networks,
                      struct failure *reterr)
{
    struct ip_networks networks = {.count = 0};
    int r = add_list(text, &networks, reterr);

    if (r == 0)
        *ret_networks = networks;
    return r;
}
