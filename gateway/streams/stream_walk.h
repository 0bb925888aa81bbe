/* gateway/streams/stream_walk.h - asks a question about the token of every stream of a worker, and
 * ends the streams for which the answer is true.
 *
 * Each turn of the loop processes a part of the streams, so that no turn takes long. A walk can be
 * repeated. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "gateway/front/disconnect.h"
#include "gateway/front/token.h"

struct streams;
struct stream_walk;

struct stream_question {
    enum disconnect_reason reason;
    bool (*ask)(void *context, const struct token *token);
    /* The walk is complete; `ended` streams end. May be NULL. */
    void (*done)(void *context, size_t ended);
    void *context;
};

/* NULL: out of memory. */
struct stream_walk *stream_walk_new(struct streams *streams,
                                    const struct stream_question *question);
/* Asks about all streams that exist now. If a walk is in progress, it continues until all have been
 * asked after this call. */
void stream_walk_begin(struct stream_walk *walk);
/* Must be called before the streams are closed. The loop must run once more to close the handle. */
void stream_walk_free(struct stream_walk *walk);
