/* gateway/process/key_process.h - the process of sluiced that fetches the keys of identity
 * providers (gateway/provider/key_fetcher.h).
 *
 * One for all workers, and only where there is something to fetch: what a provider does cannot
 * stall a stream, and is asked once. When the settings are read again the parent ends it, and
 * starts it with them if there is still something to fetch. */
#pragma once

#include <stdbool.h>

#include "gateway/process/gateway_parts.h"
#include "gateway/process/side_process.h"

struct key_process {
    struct side_process process;
    bool is_wanted; /* there is something to fetch */
    bool is_told;   /* to end, for the settings are others */
};

void key_process_init(struct key_process *keys, const struct config *config);

/* The settings were read again. */
void key_process_reload(struct key_process *keys, const struct config *config);

static inline bool key_process_is_due(const struct key_process *keys, uint64_t now_ms)
{
    return keys->is_wanted && side_process_is_down(&keys->process) &&
           now_ms >= keys->process.retry_ms;
}

/* Its pidfd has become readable. true: it ended without being told, and counts as started again. */
bool key_process_note_end(struct key_process *keys, bool is_stopping, struct metrics *slot,
                          uint64_t now_ms);

/* In the child: fetches until SIGTERM; the exit status. */
int key_process_main(const struct gateway_parts *parts);
