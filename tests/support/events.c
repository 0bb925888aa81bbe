#include "tests/support/events.h"

#include <inttypes.h>

#include "base/buffer.h"
#include "gateway/intake/event_decode.h"
#include "tests/support/cmocka_all.h"

struct event *event_of(uint64_t id, const char *json)
{
    const struct event_origin origin = {.id = id, .previous = id ? id - 1 : 0};
    struct event_decoder *decoder = event_decoder_new(1 << 20);
    struct failure failure;
    struct event *event;

    assert_non_null(decoder);
    if (event_decode(decoder, sl_slice_str(json), &origin, &event, &failure) < 0)
        fail_msg("event refused: %s", failure.text);
    event_decoder_free(decoder);
    return event;
}

/* Returns the id in the JSON of an event: for one that is not from the log, the producer's own. */
static uint64_t number_of(uint64_t id)
{
    return id ? id : 1;
}

struct event *event_post(uint64_t id, const char *user, const char *text)
{
    struct buffer json = BUFFER_INIT;
    struct event *event;

    buffer_append_format(&json,
                         "{\"id\":\"%" PRIu64 "\",\"type\":\"post\",\"post\":{\"id\":\"%" PRIu64
                         "\",\"user\":{\"id\":\"%s\"},\"text\":\"%s\"}}",
                         number_of(id), number_of(id), user, text);
    event = event_of(id, buffer_str(&json));
    buffer_done(&json);
    return event;
}

struct event *event_graph(uint64_t id, const char *kind, const char *user, const char *target)
{
    struct buffer json = BUFFER_INIT;
    struct event *event;

    buffer_append_format(&json,
                         "{\"id\":\"%" PRIu64 "\",\"type\":\"%s\",\"user\":{\"id\":\"%s\"},"
                         "\"target\":{\"id\":\"%s\"}}",
                         number_of(id), kind, user, target);
    event = event_of(id, buffer_str(&json));
    buffer_done(&json);
    return event;
}
