/* gateway/process/key_process.h - the process of sluiced that fetches the keys of identity
 * providers (gateway/provider/key_fetcher.h).
 *
 * There is one for all workers, and only if there is something to fetch. So a provider cannot stall
 * a stream, and is asked only once. When the settings are reloaded the parent ends it, and starts
 * it again if there is still something to fetch. */
#pragma once

#include <stdbool.h>

#include "gateway/process/gateway_parts.h"
#include "gateway/process/side_process.h"

struct key_process {
    struct side_process process;
    bool is_wanted; /* there is something to fetch */
    bool is_told;   /* it was told to end, because the settings have changed */
};

void key_process_init(struct key_process *keys, const struct config *config);

/* The settings were reloaded. */
void key_process_reload(struct key_process *keys, const struct config *config);

static inline bool key_process_is_due(const struct key_process *keys, uint64_t now_ms)
{
    return keys->is_wanted && side_process_is_down(&keys->process) &&
           now_ms >= keys->process.retry_ms;
}

/* Its pidfd is readable. true: it ended unexpectedly, and counts as restarted. */
bool key_process_note_end(struct key_process *keys, bool is_stopping, struct metrics *slot,
                          uint64_t now_ms);

/* Runs in the child: fetches until SIGTERM; returns the exit status. */
int key_process_main(const struct gateway_parts *parts);
