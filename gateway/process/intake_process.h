/* gateway/process/intake_process.h - the process that hears Redis for all workers of this host.
 *
 * Where there are several workers. It is subscribed to the live channels, asks the rounds
 * (gateway/intake/round.h) where there are several shards, and writes what it hears for the workers
 * to read (gateway/intake/broadcast.h; their side is gateway/intake/relay.h). It knows nothing of
 * clients, and keeps nothing that is not written anew after a crash. The supervisor forks it,
 * watches its pulse like a worker's, and ends it when the workers have ended. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gateway/process/gateway_parts.h"

/* How much memory the entries get: more than a second of ten thousand a second, and always enough
 * for events of the size that is allowed. */
size_t intake_process_bytes(uint64_t max_event_bytes);

/* In the child: until SIGTERM; the exit status. The byte to `ready_fd` says that it hears. */
int intake_process_main(const struct gateway_parts *parts);
