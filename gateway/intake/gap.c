#include "gateway/intake/gap.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

const char *gap_reason_name(enum gap_reason reason)
{
    static const char *const names[] = {
        [GAP_RETENTION] = "retention", [GAP_REWOUND] = "rewound", [GAP_REDIS] = "redis"};

    return names[reason];
}

struct event *gap_event(const struct gap *gap)
{
    char json[128];
    size_t size = (size_t)snprintf(json, sizeof(json),
                                   "{\"type\":\"gap\",\"from\":\"%" PRIu64 "\",\"to\":\"%" PRIu64
                                   "\",\"reason\":\"%s\"}",
                                   gap->from, gap->to, gap_reason_name(gap->reason));
    struct event *event = mem_zalloc(sizeof(*event) + size);

    if (!event)
        return NULL;
    event->refs = 1;
    event->kind = EVENT_GAP;
    event->shard = gap->shard;
    event->bytes = sizeof(*event) + size;
    event->json = sl_slice(memcpy(event + 1, json, size), size);
    return event;
}
