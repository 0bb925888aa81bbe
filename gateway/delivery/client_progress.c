#include "gateway/delivery/client_progress.h"

#include "gateway/metrics/slow_board.h"

enum {
    LOOKS_ENOUGH = 3,
    FORGET_MS = 3000, /* longer means that it had caught up in between */
    LEAST_MS = 100
};

#define WEIGHT     0.5f
#define CATCHES    1.2f
#define LEAST_GAIN 0.05f

static bool is_late(const struct client_progress *progress)
{
    return progress->lag_ms >= SLOW_CLIENT_LATE_MS && progress->looks >= LOOKS_ENOUGH &&
           progress->gain < CATCHES;
}

void client_progress_note(struct client_progress *progress, uint64_t now_ms, uint64_t sent_bytes,
                          uint64_t lag_ms)
{
    uint64_t passed_ms = now_ms - progress->at_ms;
    float reads, gain, weight;

    if (progress->looks == 0 || passed_ms > FORGET_MS) {
        *progress = (struct client_progress){
            .at_ms = now_ms, .sent_bytes = sent_bytes, .lag_ms = lag_ms, .looks = 1};
        return;
    }
    if (passed_ms < LEAST_MS)
        return;
    reads = (float)(sent_bytes - progress->sent_bytes) * 1000 / (float)passed_ms;
    gain = 1 + ((float)progress->lag_ms - (float)lag_ms) / (float)passed_ms;
    if (gain < 0)
        gain = 0;
    weight = progress->looks == 1 ? 1 : WEIGHT;
    progress->reads += weight * (reads - progress->reads);
    progress->gain += weight * (gain - progress->gain);
    progress->at_ms = now_ms;
    progress->sent_bytes = sent_bytes;
    progress->lag_ms = lag_ms;
    progress->looks++;
    if (!is_late(progress))
        progress->late_from_ms = 0;
    else if (!progress->late_from_ms)
        progress->late_from_ms = now_ms;
}

uint64_t client_progress_needs(const struct client_progress *progress)
{
    return progress->gain >= LEAST_GAIN ? (uint64_t)(progress->reads / progress->gain) : 0;
}
