/* stream_walk.c - walks over the admission tickets, of which each stream has one for its whole
 * life.
 *
 * A list of streams changes between two turns, but tickets do not, so an index is enough. A stream
 * that began after the walk may be asked about, too. */
#include "gateway/streams/stream_walk.h"

#include "base/alloc.h"
#include "gateway/streams/stream.h"

/* For each turn. A ticket without a stream costs almost nothing. */
enum { TURN_STREAMS = 256, TURN_PLACES = 16384 };

struct stream_walk {
    uv_idle_t idle;
    struct streams *streams;
    struct stream_question question;
    size_t at, left; /* tickets */
    size_t ended;
};

static void ask(struct stream_walk *walk, struct stream *stream)
{
    const struct stream_question *question = &walk->question;

    if (!stream_goes_on(stream) || !question->ask(question->context, stream_token(stream)))
        return;
    stream_evict(stream, question->reason);
    walk->ended++;
}

static void on_idle(uv_idle_t *idle)
{
    struct stream_walk *walk = idle->data;
    struct streams *streams = walk->streams;
    size_t size = admission_size(streams->settings.admission), asked = 0;

    for (size_t i = 0; walk->left > 0 && i < TURN_PLACES && asked < TURN_STREAMS; i++) {
        struct stream *stream = streams->by_ticket[walk->at];

        walk->at = (walk->at + 1) % size;
        walk->left--;
        if (stream)
            ask(walk, stream);
        asked += stream != NULL;
    }
    if (walk->left > 0)
        return;
    uv_idle_stop(idle);
    if (walk->question.done)
        walk->question.done(walk->question.context, walk->ended);
}

void stream_walk_begin(struct stream_walk *walk)
{
    if (walk->left == 0)
        walk->ended = 0;
    walk->left = admission_size(walk->streams->settings.admission);
    uv_idle_start(&walk->idle, on_idle);
}

struct stream_walk *stream_walk_new(struct streams *streams, const struct stream_question *question)
{
    struct stream_walk *walk = mem_zalloc(sizeof(*walk));

    if (!walk)
        return NULL;
    walk->streams = streams;
    walk->question = *question;
    uv_idle_init(streams->settings.loop, &walk->idle);
    walk->idle.data = walk;
    return walk;
}

static void on_closed(uv_handle_t *handle)
{
    mem_free(handle->data);
}

void stream_walk_free(struct stream_walk *walk)
{
    if (walk)
        uv_close((uv_handle_t *)&walk->idle, on_closed);
}
