/* gateway/serve/worker_keys.h - what a worker does when keys appear or disappear.
 *
 * It watches the files of key sets (key_watch.h), requests a set when a token names an unknown key
 * (front/key_board.h), and ends streams whose key was removed (removed_keys.h). */
#pragma once

#include <uv.h>

#include "gateway/config/config.h"
#include "gateway/metrics/metrics.h"
#include "gateway/serve/front_config.h"

struct key_board;
struct streams;
struct worker_keys;

struct worker_keys_settings {
    uv_loop_t *loop;
    const struct config *config;
    const struct front_config *front;
    struct key_board *board;
    struct metrics *metrics;
    bool tells; /* reports for all workers: in the log, and as the health of the keys */
};

/* NULL: out of memory. */
struct worker_keys *worker_keys_new(const struct worker_keys_settings *settings);

/* To be called when there are streams. 0; -ENOMEM. */
int worker_keys_watch_streams(struct worker_keys *keys, struct streams *streams);

/* Must be called when the front has another policy. 0;
 * -ENOMEM: the set files are no longer watched. */
int worker_keys_renew(struct worker_keys *keys);

/* Call it before the streams are closed. The loop must run once more to close the handles. */
void worker_keys_free(struct worker_keys *keys);
