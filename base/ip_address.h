/* base/ip_address.h - IP addresses and networks as numbers.
 *
 * An IPv4-mapped IPv6 address (::ffff:192.0.2.1, as a dual-stack socket reports it) is treated as
 * an IPv4 address. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/failure.h"
#include "base/slice.h"

struct ip_address {
    uint8_t bytes[16];
    uint8_t size; /* 4 or 16; 0: no address. The bytes after it are 0 */
};

/* `192.0.2.1`, `2001:db8::1`; without brackets, zone or port. */
bool ip_address_parse(struct sl_slice text, struct ip_address *ret_address);
/* 4 or 16 bytes, in network order. */
struct ip_address ip_address_of_bytes(const void *bytes, size_t size);
/* No address unless the socket address is IPv4 or IPv6. */
struct ip_address ip_address_of_socket(const struct sockaddr *address);
bool ip_address_equal(const struct ip_address *a, const struct ip_address *b);

enum { IP_ADDRESS_TEXT_SIZE = 46 };

/* Writes the address, or "-" if there is none. Returns `room`. */
const char *ip_address_print(const struct ip_address *address,
                             char room[static IP_ADDRESS_TEXT_SIZE]);

struct ip_network {
    struct ip_address first;
    uint8_t bits; /* length of the prefix */
};

enum { IP_NETWORKS_MAX = 128 };

struct ip_networks {
    unsigned count;
    struct ip_network networks[IP_NETWORKS_MAX];
};

/* Parses a comma-separated list of `10.0.0.0/8`, `2001:db8::/32`, single addresses, `loopback`, and
 * `private` (RFC 1918 and fc00::/7). 0; -EINVAL: *reterr says what is wrong. */
int ip_networks_parse(struct sl_slice text, struct ip_networks *ret_networks,
                      struct failure *reterr);
bool ip_networks_contain(const struct ip_networks *networks, const struct ip_address *address);
