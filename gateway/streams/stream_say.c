/* stream_say.c - what is sent on a connection apart from delivery's data.
 *
 * Limits: MAX_HELD_BYTES wait for a connection; stream_memory.c limits the sum of all. */
#include "base/clock.h"
#include "gateway/delivery/deliver.h"
#include "gateway/delivery/frame.h"
#include "gateway/delivery/outbox.h"
#include "gateway/front/dialect.h"
#include "gateway/metrics/metrics.h"
#include "gateway/streams/stream.h"

enum { MAX_HELD_BYTES = 1 << 20 /* for a client that does not read */ };

void stream_end(struct stream *stream, enum stream_end end)
{
    if (stream->stage == STREAM_ENDED || end <= stream->end)
        return;
    stream->end = (uint8_t)end;
    turn_schedule(stream->streams->settings.turn, &stream->turn_end);
}

void stream_say(struct stream *stream, struct sl_slice frames)
{
    struct client *client = &stream->own.client;

    if (stream->end >= STREAM_PEER_LEFT || !stream->wire.lws || frames.size == 0)
        return;
    client->last_sent_ms = uv_now(stream->streams->settings.loop);
    client->sent_bytes += frames.size;
    if (wire_write(&stream->wire, frames) < 0 || stream->wire.held.size > MAX_HELD_BYTES)
        stream_end(stream, STREAM_BROKEN);
    stream_memory_count(stream);
}

/* In a compressed body a frame is a block for this client alone, even if it is only a blank line: a
 * client that decodes the body waits for that, and would not notice an empty block. */
static void compress(struct stream *stream, struct buffer *frame)
{
    struct compressor *compressor = deliver_compressor(stream->streams->settings.deliver);
    struct sl_slice said = frame_unchunk(buffer_slice(frame));
    bool is_deflate = stream->own.client.encoding == ENCODING_DEFLATE;
    const struct coding coding = {.encoding = is_deflate ? ENCODING_DEFLATE : ENCODING_ZSTD};
    struct gzip_sum sum = {0};
    struct buffer block = BUFFER_INIT;

    frame->failed = compressor_append_block(compressor, coding, said, &block) < 0;
    if (!frame->failed && is_deflate) {
        gzip_sum_add(&sum, said);
        outbox_client_sent_own(&stream->own.client, &sum);
    }
    if (!frame->failed) {
        buffer_clear(frame);
        frame_append_chunk(frame, buffer_slice(&block));
    }
    buffer_done(&block);
}

/* HTTP/1.0 has no chunks: their content is sent without them. */
void stream_say_frame(struct stream *stream, struct buffer *frame)
{
    if (stream->own.client.encoding != ENCODING_NONE && !websocket_of(stream) && frame->size > 0 &&
        !frame->failed)
        compress(stream, frame);
    if (frame->failed)
        stream_end(stream, STREAM_BROKEN);
    else if (frame->size > 0)
        stream_say(stream, stream->own.client.unchunked ? frame_unchunk(buffer_slice(frame))
                                                        : buffer_slice(frame));
    buffer_done(frame);
}

void stream_say_undelivered(struct stream *stream)
{
    struct channel *channel = &stream->own;
    const struct dialect *dialect = channel->request.dialect;
    uint64_t undelivered = outbox_client_undelivered(&channel->client);
    struct buffer frame = BUFFER_INIT, json = BUFFER_INIT;

    if (!dialect || !dialect->limit || undelivered == channel->told_undelivered)
        return;
    dialect->limit(undelivered, clock_wall_ms(), &json);
    frame_append_message(&frame, channel->client.format, NULL, buffer_slice(&json));
    frame.failed = frame.failed || json.failed;
    stream_say_frame(stream, &frame);
    buffer_done(&json);
    metric_add(stream->streams->settings.metrics, METRIC_POSTS_UNDELIVERED,
               undelivered - channel->told_undelivered);
    channel->told_undelivered = undelivered;
}
