/* gateway/gateway.h - one worker: everything from the live channel to the sockets, built top to
 * bottom and freed bottom to top. */
#pragma once

#include "gateway/process/gateway_parts.h"

/* Serves until SIGTERM or SIGINT, takes leave of all clients, returns the exit status. Runs its
 * own event loop; call it in a fresh process. */
int gateway_run(const struct gateway_parts *parts);
