/* gateway/http/proxy_gate.h - a connection whose PROXY header has not been read yet.
 *
 * The header precedes everything else, including TLS. So exactly its bytes are read from the bare
 * socket, which is then passed to the server of the connection. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "base/ip_address.h"
#include "gateway/http/proxy_header.h"

struct proxy_gate;

/* Takes ownership of the connected socket `fd`, even on failure. `readable`: call
 * proxy_gate_read(); the callee may free the gate. NULL: out of memory. */
struct proxy_gate *proxy_gate_new(uv_loop_t *loop, int fd, void (*readable)(void *owner),
                                  void *owner);
/* NULL is allowed. Closes the socket unless it was taken. */
void proxy_gate_free(struct proxy_gate *gate);

/* 1: *ret_header is filled, and nothing after it was read. 0: incomplete. -EPROTO: *ret_why says
 * what is wrong; another negative errno: the connection has ended. */
int proxy_gate_read(struct proxy_gate *gate, struct proxy_header *ret_header, const char **ret_why);
/* Returns the socket and frees the gate. */
int proxy_gate_take(struct proxy_gate *gate);

/* Whether a part of the header was received. */
bool proxy_gate_has_begun(const struct proxy_gate *gate);
/* The address of the peer, which is the proxy. */
const struct ip_address *proxy_gate_peer(const struct proxy_gate *gate);
