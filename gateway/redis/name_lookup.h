/* gateway/redis/name_lookup.h - looks up the addresses of a name in a thread, and reports them on
 * the loop.
 *
 * getaddrinfo() waits for a silent resolver as long as it is configured to, ten or twenty seconds,
 * and cannot be cancelled. uv_getaddrinfo() does not block the loop, but neither the loop nor the
 * process can end before it returns. This kind of look-up can be abandoned at any time. */
#pragma once

#include <netdb.h>
#include <stdint.h>
#include <uv.h>

struct name_lookup;

/* `addresses` has at least one address, for TCP, and the caller frees it with freeaddrinfo(); or it
 * is NULL, and `why` is the reason. The look-up has been freed. */
typedef void (*name_lookup_fn)(void *owner, struct addrinfo *addresses, const char *why);

/* 0: `done` will be called once, from the loop; -ENOMEM, -EAGAIN (no thread): it will not. */
int name_lookup_start(uv_loop_t *loop, const char *host, uint16_t port, name_lookup_fn done,
                      void *owner, struct name_lookup **ret_lookup);

/* Abandons the look-up: `done` is not called any more. The loop must run once more. */
void name_lookup_forget(struct name_lookup *lookup);
