/* gateway/gateway.h - a worker: everything from the live channels to the sockets. */
#pragma once

#include "gateway/process/gateway_parts.h"

/* Serves until SIGTERM or SIGINT, says goodbye to all clients, and returns the exit status. Runs
 * its own event loop; call it in a new process. */
int gateway_run(const struct gateway_parts *parts);
