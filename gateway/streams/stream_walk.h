/* gateway/streams/stream_walk.h - a question that is asked of every stream of a worker, by its
 * token: those for which it says true end with a reason.
 *
 * Asked of some streams at each turn of the loop, so that no turn is long however many there are.
 * One question can be asked again and again. */
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
    /* All were asked, of which `ended` are to end. May be NULL. */
    void (*done)(void *context, size_t ended);
    void *context;
};

/* NULL: out of memory. */
struct stream_walk *stream_walk_new(struct streams *streams,
                                    const struct stream_question *question);
/* Asks each stream that there is now. While a walk is under way it goes on until all have been
 * asked after this call. */
void stream_walk_begin(struct stream_walk *walk);
/* Before the streams are closed. The loop must run once more to let go of the handle. */
void stream_walk_free(struct stream_walk *walk);
