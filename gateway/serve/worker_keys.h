/* gateway/serve/worker_keys.h - what a worker does about keys that come and go.
 *
 * It watches the files of key sets (key_watch.h), has a set fetched when a token names a key that
 * nobody knows (front/key_board.h), and ends streams whose key is gone (removed_keys.h). */
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
    bool tells; /* what all find out: in the log, and as the health of the keys */
};

/* NULL: out of memory. */
struct worker_keys *worker_keys_new(const struct worker_keys_settings *settings);

/* Once there are streams. 0; -ENOMEM. */
int worker_keys_watch_streams(struct worker_keys *keys, struct streams *streams);

/* front_config_read() was called, and was good: its policy is another one. 0; -ENOMEM: the files of
 * sets are not watched any more. */
int worker_keys_renew(struct worker_keys *keys);

/* Before the streams are closed. The loop must run once more to let go of the handles. */
void worker_keys_free(struct worker_keys *keys);
