/* gateway/redis/name_lookup.h - the addresses of a name, found by a thread, told on the loop.
 *
 * A resolver that is silent keeps getaddrinfo() for as long as it is told to wait, some ten or
 * twenty seconds, and nothing can call that off. uv_getaddrinfo() blocks no loop, but neither the
 * loop nor the process can end before it has; a look-up of this kind can be forgotten at any time.
 */
#pragma once

#include <netdb.h>
#include <stdint.h>
#include <uv.h>

struct name_lookup;

/* `addresses` are the caller's to freeaddrinfo(), at least one, for TCP; or NULL, and why. The
 * look-up is gone by then. */
typedef void (*name_lookup_fn)(void *owner, struct addrinfo *addresses, const char *why);

/* 0: `done` will be called once, from the loop; -ENOMEM, -EAGAIN (no thread): it will not. */
int name_lookup_start(uv_loop_t *loop, const char *host, uint16_t port, name_lookup_fn done,
                      void *owner, struct name_lookup **ret_lookup);

/* `done` is not called any more; the thread is left to itself. The loop must run once more. */
void name_lookup_forget(struct name_lookup *lookup);
