/* gateway/delivery/client_progress.h - does a client that is behind catch up? From looks at it, one
 * a second.
 *
 * Rates are moving averages, in which the last look weighs half. A client that is given
 * more than a second of the stream in a second catches up; one that is at least five seconds behind
 * and does not is late. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Zeros: not looked at yet. */
struct client_progress {
    uint64_t at_ms;        /* clock of the loop: the last look */
    uint64_t sent_bytes;   /* then */
    uint64_t lag_ms;       /* then */
    uint64_t late_from_ms; /* 0: it is not late */
    float reads;           /* bytes a second */
    float gain;            /* seconds of the stream in a second */
    uint32_t looks;        /* in a row */
};

void client_progress_note(struct client_progress *progress, uint64_t now_ms, uint64_t sent_bytes,
                          uint64_t lag_ms);
/* Bytes a second that would keep it where it is; 0: not known. */
uint64_t client_progress_needs(const struct client_progress *progress);
