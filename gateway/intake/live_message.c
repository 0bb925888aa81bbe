#include "gateway/intake/live_message.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "src/model/id.h"

/* The channel is `sluice:{S}:live`, as printed by sl_key(). */
static bool read_channel(struct sl_slice channel, uint32_t *ret_shard)
{
    static const char before[] = "sluice:{", after[] = "}:live";
    const size_t before_size = sizeof(before) - 1, after_size = sizeof(after) - 1;
    struct sl_slice digits;
    uint32_t shard = 0;

    if (channel.size < before_size + after_size + 1 ||
        channel.size > before_size + after_size + 2 ||
        memcmp(channel.data, before, before_size) != 0 ||
        memcmp(channel.data + channel.size - after_size, after, after_size) != 0)
        return false;
    digits = sl_slice(channel.data + before_size, channel.size - before_size - after_size);
    if (digits.size > 1 && digits.data[0] == '0')
        return false;
    for (size_t i = 0; i < digits.size; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9')
            return false;
        shard = shard * 10 + (uint32_t)(digits.data[i] - '0');
    }
    *ret_shard = shard;
    return shard < SL_SHARDS_MAX;
}

/* Reads a decimal number without leading zeros, and the space after it. */
static bool read_id(struct sl_slice *text, uint64_t *ret_id)
{
    const char *space = memchr(text->data, ' ', text->size);
    struct sl_slice digits;

    if (!space)
        return false;
    digits = sl_slice(text->data, (size_t)(space - text->data));
    if (sl_slice_is(digits, "0"))
        *ret_id = 0;
    else if (sl_id_parse(digits, ret_id) < 0)
        return false;
    *text = sl_slice_from(*text, digits.size + 1);
    return true;
}

int live_message_read(struct sl_slice channel, struct sl_slice payload,
                      struct live_message *ret_message)
{
    struct live_message message = {.received_us = ret_message->received_us, .body = payload};

    if (!read_channel(channel, &message.shard))
        return -EBADMSG;
    if (payload.size == 0 || payload.data[0] != '{') {
        if (!read_id(&message.body, &message.id) || !read_id(&message.body, &message.previous) ||
            message.id <= message.previous || sl_id_shard(message.id) != message.shard ||
            message.body.size == 0 || message.body.data[0] != '{')
            return -EBADMSG;
    }
    *ret_message = message;
    return 0;
}
