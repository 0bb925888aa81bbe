/* gateway/redis/sentinel_line.h - a connection to one sentinel, on the loop.
 *
 * It logs in and asks where the master is. A line that listens is also told, after that answer,
 * whenever a master is replaced (src/redis/sentinel.h), and checks regularly whether the sentinel
 * is alive. */
#pragma once

#include <stdbool.h>
#include <uv.h>

#include "src/redis/redis_address.h"
#include "src/redis/sentinel.h"

struct sentinel_line;

/* A subscribed sentinel that is silent for this time is sent a PING; after three times as long it
 * is given up. */
enum { SENTINEL_LINE_PING_MS = 3000 };

/* All are called from the loop, and may open or close the line. */
struct sentinel_line_callbacks {
    void (*on_answer)(void *context, const struct sl_redis_endpoint *master);
    /* Only when listening. Other messages of the sentinel are ignored. */
    void (*on_news)(void *context, const struct sl_sentinel_news *news);
    /* The sentinel cannot be asked, does not answer in time, has gone away, or knows no such
     * master; the line is already closed. */
    void (*on_lost)(void *context, const char *reason);
};

/* `address` must have sentinels; each has `answer_ms` to accept the connection, and as much to
 * answer. NULL: out of memory. */
struct sentinel_line *sentinel_line_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                        bool listens, uint32_t answer_ms,
                                        const struct sentinel_line_callbacks *callbacks,
                                        void *context);
/* No callback is called any more. The loop must run once more to close the handles. May be called
 * from a callback only if the line is freed after it, from the loop. */
void sentinel_line_free(struct sentinel_line *line);

/* Connects to sentinel number `number` of the address. on_answer follows, or on_lost. */
void sentinel_line_open(struct sentinel_line *line, uint32_t number);
void sentinel_line_close(struct sentinel_line *line);
