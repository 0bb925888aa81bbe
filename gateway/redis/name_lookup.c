/* name_lookup.c - a detached thread for each look-up, and a handle of the loop that it wakes.
 *
 * Both sides own the look-up; the last one frees it. The lock protects the moment in which the
 * thread reports its result while the loop abandons the look-up. There are as many threads as
 * look-ups that the resolver has not answered yet: one for each connection, and for sentinels that
 * name one host after the other, one for each host within the resolver's timeout. */
#include "gateway/redis/name_lookup.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

enum { STACK_BYTES = 256 * 1024 }; /* the C library's resolver needs less than half of it */

struct name_lookup {
    uv_async_t found;
    atomic_int holders;
    name_lookup_fn done;
    void *owner;
    char host[256];
    char port[sizeof("65535")];

    uv_mutex_t mutex; /* protects: */
    bool is_closed;   /* `found` must not be woken any more */
    int error;        /* of getaddrinfo() */
    struct addrinfo *addresses;
};

static void let_go(struct name_lookup *lookup)
{
    if (atomic_fetch_sub(&lookup->holders, 1) > 1)
        return;
    if (lookup->addresses)
        freeaddrinfo(lookup->addresses);
    uv_mutex_destroy(&lookup->mutex);
    mem_free(lookup);
}

/* ---- the thread ---- */

static void look_up(void *context)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct name_lookup *lookup = context;
    struct addrinfo *addresses = NULL;
    int error = getaddrinfo(lookup->host, lookup->port, &hints, &addresses);

    uv_mutex_lock(&lookup->mutex);
    lookup->error = error;
    lookup->addresses = addresses;
    if (!lookup->is_closed)
        uv_async_send(&lookup->found);
    uv_mutex_unlock(&lookup->mutex);
    let_go(lookup);
}

/* ---- the loop ---- */

static void on_closed(uv_handle_t *handle)
{
    let_go(handle->data);
}

void name_lookup_forget(struct name_lookup *lookup)
{
    if (!lookup)
        return;
    uv_mutex_lock(&lookup->mutex);
    lookup->is_closed = true;
    uv_mutex_unlock(&lookup->mutex);
    uv_close((uv_handle_t *)&lookup->found, on_closed);
}

static void on_found(uv_async_t *found)
{
    struct name_lookup *lookup = found->data;
    struct addrinfo *addresses;

    uv_mutex_lock(&lookup->mutex); /* the thread may still hold it */
    addresses = lookup->addresses;
    lookup->addresses = NULL;
    uv_mutex_unlock(&lookup->mutex);
    name_lookup_forget(lookup);
    lookup->done(lookup->owner, addresses, addresses ? NULL : gai_strerror(lookup->error));
}

static int start_thread(struct name_lookup *lookup)
{
    const uv_thread_options_t options = {.flags = UV_THREAD_HAS_STACK_SIZE,
                                         .stack_size = STACK_BYTES};
    uv_thread_t thread;

    if (uv_thread_create_ex(&thread, &options, look_up, lookup) < 0)
        return -EAGAIN;
    pthread_detach(thread);
    return 0;
}

int name_lookup_start(uv_loop_t *loop, const char *host, uint16_t port, name_lookup_fn done,
                      void *owner, struct name_lookup **ret_lookup)
{
    struct name_lookup *lookup = mem_zalloc(sizeof(*lookup));
    int r = lookup ? uv_mutex_init(&lookup->mutex) : -ENOMEM;

    if (r < 0) {
        mem_free(lookup);
        return r;
    }
    r = uv_async_init(loop, &lookup->found, on_found);
    if (r < 0) {
        uv_mutex_destroy(&lookup->mutex);
        mem_free(lookup);
        return r;
    }
    lookup->found.data = lookup;
    lookup->done = done;
    lookup->owner = owner;
    snprintf(lookup->host, sizeof(lookup->host), "%s", host);
    snprintf(lookup->port, sizeof(lookup->port), "%u", (unsigned)port);
    atomic_init(&lookup->holders, 2);
    r = start_thread(lookup);
    if (r < 0) {
        atomic_init(&lookup->holders, 1);
        name_lookup_forget(lookup);
        return r;
    }
    *ret_lookup = lookup;
    return 0;
}
