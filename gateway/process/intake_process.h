/* gateway/process/intake_process.h - the process that subscribes to Redis for all workers of this
 * host.
 *
 * Used if there are several workers. It subscribes to the live channels, makes the rounds
 * (gateway/intake/round.h) if there are several shards, and writes what it receives for the workers
 * to read (gateway/intake/broadcast.h; their side is gateway/intake/relay.h). It knows nothing of
 * clients, and all its state is rebuilt after a crash. The supervisor forks it, watches its pulse
 * like that of a worker, and ends it after the workers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "gateway/process/gateway_parts.h"

/* The memory for entries: more than a second at ten thousand events a second, and always enough for
 * events of the allowed size. */
size_t intake_process_bytes(uint64_t max_event_bytes);

/* Runs in the child until SIGTERM; returns the exit status. A byte written to `ready_fd` reports
 * that it is subscribed. */
int intake_process_main(const struct gateway_parts *parts);
