/* left_out.c - the message contains, after its JSON, what had passed by shard: a count, then the
 * numbers. */
#include "gateway/delivery/left_out.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { JSON_MAX = SL_CURSOR_TEXT_SIZE + 80 };

void left_out_add(struct left_out *left_out, const struct event *post,
                  const struct sl_cursor *before)
{
    if (left_out->posts++ > 0)
        return;
    left_out->before = *before;
    if (sl_cursor_is_plain(before) && (before->id == 0 || before->id >= post->id))
        left_out->before.id = post->id - 1;
    left_out->sequence = post->sequence;
    left_out->received_us = post->received_us;
}

struct event *left_out_message(const struct left_out *left_out, const struct sl_cursor *after,
                               const uint64_t *passed, uint32_t shards)
{
    char room[JSON_MAX + sizeof(uint32_t) + SL_SHARDS_MAX * sizeof(*passed)];
    char text[SL_CURSOR_TEXT_SIZE];
    size_t size = (size_t)snprintf(room, JSON_MAX,
                                   "{\"type\":\"skipped\",\"id\":\"%s\",\"events\":%" PRIu64 "}",
                                   sl_cursor_print(after, text), left_out->posts);
    struct event *event;

    memcpy(room + size, &shards, sizeof(shards));
    memcpy(room + size + sizeof(shards), passed, shards * sizeof(*passed));
    event = event_new_control(EVENT_SKIPPED,
                              sl_slice(room, size + sizeof(shards) + shards * sizeof(*passed)));
    if (!event)
        return NULL;
    event->json.size = size;
    event->id = after->id;
    event->sequence = left_out->sequence;
    event->received_us = left_out->received_us;
    if (!sl_cursor_is_plain(after) && event_set_cursor(event, after) < 0) {
        event_unref(event);
        return NULL;
    }
    return event;
}

uint64_t left_out_passed(const struct event *message, uint32_t shard)
{
    const char *behind = message->json.data + message->json.size;
    uint64_t passed = 0;
    uint32_t shards;

    memcpy(&shards, behind, sizeof(shards));
    if (shard < shards)
        memcpy(&passed, behind + sizeof(shards) + shard * sizeof(passed), sizeof(passed));
    return passed;
}
