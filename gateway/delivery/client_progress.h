/* gateway/delivery/client_progress.h - decides whether a client that is behind catches up, from one
 * look per second.
 *
 * Rates are moving averages in which the last look has a weight of one half. A client that is given
 * more than one second of the stream per second catches up. A client that is at least five seconds
 * behind and does not catch up is late. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Initialize with zeros. */
struct client_progress {
    uint64_t at_ms;        /* time of the last look, loop's clock */
    uint64_t sent_bytes;   /* at that time */
    uint64_t lag_ms;       /* at that time */
    uint64_t late_from_ms; /* 0: not late */
    float reads;           /* bytes per second */
    float gain;            /* seconds of the stream per second */
    uint32_t looks;        /* consecutive ones */
};

void client_progress_note(struct client_progress *progress, uint64_t now_ms, uint64_t sent_bytes,
                          uint64_t lag_ms);
/* Bytes per second that would keep its lag constant; 0: unknown. */
uint64_t client_progress_needs(const struct client_progress *progress);
