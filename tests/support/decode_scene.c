#include "tests/support/decode_scene.h"

#include "base/alloc.h"

enum { MAX_BYTES = 1 << 20 };

const struct event_origin decode_origin = {
    .id = 77, .previous = 70, .shard = 3, .received_us = 1234};

static struct event_decoder *decoder;

int decode_scene_begin(void **state)
{
    (void)state;
    decoder = event_decoder_new(MAX_BYTES);
    return decoder ? 0 : -1;
}

int decode_scene_end(void **state)
{
    (void)state;
    event_decoder_free(decoder);
    return 0;
}

int decode(struct sl_slice message, struct event **ret_event, struct failure *reterr)
{
    char *copy = mem_copy(message.data, message.size);
    int r = event_decode(decoder, sl_slice(copy, message.size), &decode_origin, ret_event, reterr);

    mem_free(copy);
    return r;
}
