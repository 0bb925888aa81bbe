/* stream_memory.c - limits the memory that streams use apart from events and filters: for
 * incomplete messages, and for bytes that clients do not read.
 *
 * Each stream may always keep HTTP_SMALL_BODY bytes. Beyond that, all streams together may keep
 * KEPT_MAX_BYTES, and a subject a quarter of it; when that is exceeded, the slowest stream must
 * free its memory (http/http_bodies.h defines how speed is measured). */
#include "gateway/streams/stream.h"

enum { KEPT_MAX_BYTES = 64 << 20 };

void stream_memory_init(struct streams *streams)
{
    http_bodies_init(&streams->kept, KEPT_MAX_BYTES);
    streams->subject_key = hash_key_random();
}

static void tell_metric(const struct streams *streams)
{
    metric_set(streams->settings.metrics, METRIC_KEPT_BYTES, streams->kept.bytes);
}

static void add(struct stream *stream)
{
    struct streams *streams = stream->streams;
    uint64_t subject =
        hash_slice(streams->subject_key, sl_slice_str(stream->own.request.token.holder));

    http_bodies_add(&streams->kept, &stream->kept, sl_slice((char *)&subject, sizeof(subject)),
                    uv_now(streams->settings.loop));
}

void stream_memory_count(struct stream *stream)
{
    struct streams *streams = stream->streams;
    size_t bytes = stream->wire.held.capacity + stream->protocol->kept_bytes(stream), more;
    struct http_body_share *slowest;

    if (bytes <= HTTP_SMALL_BODY) {
        if (list_contains(&stream->kept.node))
            stream_memory_forget(stream);
        return;
    }
    if (!list_contains(&stream->kept.node))
        add(stream);
    if (bytes < stream->kept.bytes)
        http_bodies_shrink(&streams->kept, &stream->kept, bytes);
    more = bytes - stream->kept.bytes;
    while (more > 0 && (slowest = http_bodies_grow(&streams->kept, &stream->kept, more,
                                                   uv_now(streams->settings.loop)))) {
        struct stream *other = LIST_OWNER(slowest, struct stream, kept);

        http_bodies_remove(&streams->kept, slowest);
        other->gives_way = true;
        turn_schedule(streams->settings.turn, &other->turn_end);
    }
    tell_metric(streams);
}

void stream_memory_forget(struct stream *stream)
{
    http_bodies_remove(&stream->streams->kept, &stream->kept);
    tell_metric(stream->streams);
}
