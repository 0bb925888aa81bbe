/* gateway/http/proxy_gate.h - a connection whose PROXY header has not been read yet.
 *
 * The header comes before everything else, TLS included, so it is read from the bare socket: so
 * much and no more. Then whoever serves the connection takes the socket. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/ip_address.h"
#include "gateway/http/proxy_header.h"

struct proxy_gate;

/* Takes the connected socket `fd` over, whatever is returned. `readable`: proxy_gate_read() has
 * something to read; it may free the gate. NULL: out of memory. */
struct proxy_gate *proxy_gate_new(uv_loop_t *loop, int fd, void (*readable)(void *owner),
                                  void *owner);
/* NULL is fine. The socket is closed, unless it was taken. */
void proxy_gate_free(struct proxy_gate *gate);

/* 1: *ret_header is filled, and nothing behind it was read. 0: more must come. -EPROTO: *ret_why
 * says what is wrong; another negative errno: the connection has ended. */
int proxy_gate_read(struct proxy_gate *gate, struct proxy_header *ret_header, const char **ret_why);
/* Returns the socket; the gate is freed. */
int proxy_gate_take(struct proxy_gate *gate);

/* Whether a part of the header has come. */
bool proxy_gate_has_begun(const struct proxy_gate *gate);
/* Who has connected: the proxy. */
const struct ip_address *proxy_gate_peer(const struct proxy_gate *gate);
