#include "gateway/intake/gap.h"

#include <inttypes.h>
#include <stdio.h>

const char *gap_reason_name(enum gap_reason reason)
{
    static const char *const names[] = {[GAP_RETENTION] = "retention",
                                        [GAP_REWOUND] = "rewound",
                                        [GAP_REDIS] = "redis",
                                        [GAP_UNLOGGED] = "unlogged",
                                        [GAP_LATE] = "late"};

    return names[reason];
}

struct event *gap_event(const struct gap *gap, bool names_shard)
{
    char json[160];
    size_t size = (size_t)snprintf(json, sizeof(json),
                                   "{\"type\":\"gap\",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64
                                   "\",\"reason\":\"%s\"",
                                   gap->from, gap->to, gap_reason_name(gap->reason));
    struct event *event;

    if (names_shard)
        size +=
            (size_t)snprintf(json + size, sizeof(json) - size, ",\"shard\":%" PRIu32, gap->shard);
    json[size++] = '}';
    event = event_new_control(EVENT_GAP, sl_slice(json, size));
    if (event && gap->reason != GAP_UNLOGGED && gap->reason != GAP_LATE) {
        event->shard = gap->shard;
        event->gap_from = gap->from;
        event->gap_to = gap->to;
        event->is_rewound = gap->reason == GAP_REWOUND;
    }
    return event;
}
