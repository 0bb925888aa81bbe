/* listener.c - opens, takes over and distributes listening sockets.
 *
 * With SO_REUSEPORT a second sluiced of the same user could share a port that is already in use,
 * and take half of its clients. So a fixed port is tried without it first. Names are resolved here,
 * which blocks; this happens before there are workers. A listener has at most LISTENERS_MAX
 * sockets. */
#include "gateway/http/listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 4096 };

struct endpoint {
    struct sockaddr_storage address;
    socklen_t size;
    int family;
};

static int resolve(const struct listen_address *address, int family, struct endpoint *ret_endpoint,
                   struct failure *reterr)
{
    struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char port[8];
    int r;

    snprintf(port, sizeof(port), "%u", address->port);
    hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
    r = getaddrinfo(address->host[0] ? address->host : NULL, port, &hints, &found);
    if (r != 0)
        return failure_set(reterr, -EADDRNOTAVAIL, "cannot find '%s': %s", address->host,
                           gai_strerror(r));
    memcpy(&ret_endpoint->address, found->ai_addr, found->ai_addrlen);
    ret_endpoint->size = found->ai_addrlen;
    ret_endpoint->family = found->ai_family;
    freeaddrinfo(found);
    return 0;
}

/* A bound socket, or a negative errno. */
static int bind_socket(const struct endpoint *endpoint, bool share_port)
{
    const int on = 1, off = 0;
    int fd, r;

    fd = socket(endpoint->family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        (!share_port || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) == 0) &&
        (endpoint->family != AF_INET6 ||
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) == 0) &&
        bind(fd, (const struct sockaddr *)&endpoint->address, endpoint->size) == 0)
        return fd;
    r = -errno;
    close(fd);
    return r;
}

static int probe(const struct endpoint *endpoint)
{
    int fd = bind_socket(endpoint, false);

    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

static uint16_t *port_of(struct endpoint *endpoint)
{
    if (endpoint->family == AF_INET6)
        return &((struct sockaddr_in6 *)&endpoint->address)->sin6_port;
    return &((struct sockaddr_in *)&endpoint->address)->sin_port;
}

/* The kernel passes on a connection together with its first data, or after it was silent for a
 * second. So most heads can be parsed as soon as the connection is accepted, without another turn
 * of the loop. */
static void defer_accept(int fd)
{
    const int silence_s = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_DEFER_ACCEPT, &silence_s, sizeof(silence_s));
}

int listener_start(int socket)
{
    defer_accept(socket);
    return listen(socket, BACKLOG) == 0 ? 0 : -errno;
}

static int open_one(struct endpoint *endpoint, int *ret_socket)
{
    int fd, r;

    fd = bind_socket(endpoint, true);
    if (fd < 0)
        return fd;
    if (listener_start(fd) == 0 &&
        getsockname(fd, (struct sockaddr *)&endpoint->address, &endpoint->size) == 0) {
        *ret_socket = fd;
        return 0;
    }
    r = -errno;
    close(fd);
    return r;
}

static int open_all(struct endpoint *endpoint, unsigned count, int *ret_sockets)
{
    unsigned opened = 0;
    int r = 0;

    if (*port_of(endpoint) != 0)
        r = probe(endpoint);
    while (r == 0 && opened < count) {
        r = open_one(endpoint, &ret_sockets[opened]);
        if (r == 0)
            opened++;
    }
    while (r < 0 && opened > 0)
        close(ret_sockets[--opened]);
    return r;
}

int listener_open(const struct listen_address *address, unsigned count, int *ret_sockets,
                  uint16_t *ret_port, struct failure *reterr)
{
    const char *host = address->host[0] ? address->host : "*";
    struct endpoint endpoint;
    int r;

    /* An IPv6 socket also accepts IPv4; on a kernel without IPv6, IPv4 is used. */
    r = resolve(address, address->host[0] ? AF_UNSPEC : AF_INET6, &endpoint, reterr);
    if (r < 0)
        return r;
    r = open_all(&endpoint, count, ret_sockets);
    if (r == -EAFNOSUPPORT && !address->host[0]) {
        r = resolve(address, AF_INET, &endpoint, reterr);
        if (r < 0)
            return r;
        r = open_all(&endpoint, count, ret_sockets);
    }
    if (r == -EADDRINUSE)
        return failure_set(reterr, r, "port %u of %s is in use by another program", address->port,
                           host);
    if (r < 0)
        return failure_set(reterr, r, "cannot listen on port %u of %s: %s", address->port, host,
                           strerror(-r));
    *ret_port = ntohs(*port_of(&endpoint));
    return 0;
}

static bool where(int socket, struct endpoint *ret_endpoint)
{
    ret_endpoint->size = sizeof(ret_endpoint->address);
    if (getsockname(socket, (struct sockaddr *)&ret_endpoint->address, &ret_endpoint->size) < 0)
        return false;
    ret_endpoint->family = ret_endpoint->address.ss_family;
    return ret_endpoint->family == AF_INET || ret_endpoint->family == AF_INET6;
}

static bool is_same_host(const struct endpoint *a, const struct endpoint *b)
{
    if (a->family != b->family)
        return false;
    if (a->family == AF_INET6)
        return memcmp(&((const struct sockaddr_in6 *)&a->address)->sin6_addr,
                      &((const struct sockaddr_in6 *)&b->address)->sin6_addr,
                      sizeof(struct in6_addr)) == 0;
    return ((const struct sockaddr_in *)&a->address)->sin_addr.s_addr ==
           ((const struct sockaddr_in *)&b->address)->sin_addr.s_addr;
}

bool listener_is_at(int socket, const struct listen_address *address, uint16_t *ret_port)
{
    struct endpoint actual, wanted;

    if (!where(socket, &actual))
        return false;
    *ret_port = ntohs(*port_of(&actual));
    if (address->port != 0 && address->port != *ret_port)
        return false;
    /* All addresses of the machine: by IPv6, or by IPv4 if that is not available. */
    return resolve(address, address->host[0] ? AF_UNSPEC : actual.family, &wanted, NULL) == 0 &&
           is_same_host(&actual, &wanted);
}

static bool is_any(const struct endpoint *endpoint)
{
    if (endpoint->family == AF_INET6)
        return IN6_IS_ADDR_UNSPECIFIED(
            &((const struct sockaddr_in6 *)&endpoint->address)->sin6_addr);
    return ((const struct sockaddr_in *)&endpoint->address)->sin_addr.s_addr == htonl(INADDR_ANY);
}

const char *listener_describe(int socket, char room[static LISTENER_DESCRIPTION_SIZE])
{
    char host[LISTENER_DESCRIPTION_SIZE - 10];
    struct endpoint endpoint;

    snprintf(room, LISTENER_DESCRIPTION_SIZE, "?");
    if (!where(socket, &endpoint))
        return room;
    if (is_any(&endpoint))
        snprintf(room, LISTENER_DESCRIPTION_SIZE, "*:%u", ntohs(*port_of(&endpoint)));
    else if (getnameinfo((const struct sockaddr *)&endpoint.address, endpoint.size, host,
                         sizeof(host), NULL, 0, NI_NUMERICHOST) == 0)
        snprintf(room, LISTENER_DESCRIPTION_SIZE, endpoint.family == AF_INET6 ? "[%s]:%u" : "%s:%u",
                 host, ntohs(*port_of(&endpoint)));
    return room;
}

int listener_add(int *sockets, unsigned have, unsigned want)
{
    struct endpoint endpoint;
    unsigned opened = have;

    if (!where(sockets[0], &endpoint))
        return -ENOTSOCK;
    while (opened < want) {
        int fd = bind_socket(&endpoint, true);

        if (fd < 0) {
            while (opened > have)
                close(sockets[--opened]);
            return fd;
        }
        sockets[opened++] = fd;
    }
    return 0;
}

bool listener_is_for(unsigned index, unsigned count, unsigned worker, unsigned workers)
{
    unsigned dealt = count / workers * workers;

    return index >= dealt || index % workers == worker;
}
