/* proxy_gate.c - peeks at the input before reading it.
 *
 * As long as the header is incomplete, everything received belongs to it and is read. When it is
 * complete, only its own bytes are read. So the next reader of the socket, such as OpenSSL, finds
 * the client's first byte.
 *
 * Limits: PROXY_HEADER_MAX bytes; the owner sets the timeout. */
#include "gateway/http/proxy_gate.h"

#include <assert.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"

struct proxy_gate {
    uv_poll_t poll;
    int fd;
    struct ip_address peer;
    struct buffer seen; /* the beginning of the header */
    void (*readable)(void *owner);
    void *owner;
};

static struct ip_address find_peer(int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_storage room;
    } address = {.any.sa_family = AF_UNSPEC};
    socklen_t size = sizeof(address);

    getpeername(fd, &address.any, &size);
    return ip_address_of_socket(&address.any);
}

/* An error of the socket is found by reading it. */
static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct proxy_gate *gate = poll->data;

    (void)status;
    (void)events;
    gate->readable(gate->owner);
}

static void free_gate(uv_handle_t *poll)
{
    mem_free(poll->data);
}

struct proxy_gate *proxy_gate_new(uv_loop_t *loop, int fd, void (*readable)(void *owner),
                                  void *owner)
{
    struct proxy_gate *gate = mem_zalloc(sizeof(*gate));

    if (!gate || uv_poll_init(loop, &gate->poll, fd) < 0) {
        close(fd);
        mem_free(gate);
        return NULL;
    }
    gate->poll.data = gate;
    gate->fd = fd;
    gate->peer = find_peer(fd);
    gate->seen.limit = PROXY_HEADER_MAX;
    gate->readable = readable;
    gate->owner = owner;
    uv_poll_start(&gate->poll, UV_READABLE, on_readable);
    return gate;
}

int proxy_gate_take(struct proxy_gate *gate)
{
    int fd = gate->fd;

    buffer_done(&gate->seen);
    uv_close((uv_handle_t *)&gate->poll, free_gate); /* the loop releases the socket at once */
    return fd;
}

void proxy_gate_free(struct proxy_gate *gate)
{
    if (gate)
        close(proxy_gate_take(gate));
}

int proxy_gate_read(struct proxy_gate *gate, struct proxy_header *ret_header, const char **ret_why)
{
    size_t before = gate->seen.size, belongs;
    char room[PROXY_HEADER_MAX];
    ssize_t got;
    int r;

    got = recv(gate->fd, room, sizeof(room) - before, MSG_PEEK | MSG_DONTWAIT);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -ECONNRESET;
    buffer_append(&gate->seen, room, (size_t)got);
    if (gate->seen.failed)
        return -ENOMEM;
    r = proxy_header_read(buffer_slice(&gate->seen), ret_header, ret_why);
    if (r < 0)
        return r;
    belongs = r == 1 ? ret_header->size - before : (size_t)got;
    return recv(gate->fd, room, belongs, MSG_DONTWAIT) == (ssize_t)belongs ? r : -ECONNRESET;
}

bool proxy_gate_has_begun(const struct proxy_gate *gate)
{
    return gate->seen.size > 0;
}

const struct ip_address *proxy_gate_peer(const struct proxy_gate *gate)
{
    return &gate->peer;
}
