/* gateway/serve/key_watch.h - watches files of key sets for changes.
 *
 * Each is checked twice a second, and read if it has changed, both in the loop's thread pool,
 * because the largest set takes 30 ms. A valid set replaces the old one at once; an invalid or
 * missing one is logged and counted, and the old keys stay. */
#pragma once

#include <uv.h>

#include "gateway/front/token.h"
#include "gateway/metrics/metrics.h"

struct key_watch;

struct key_watch_settings {
    uv_loop_t *loop;
    struct metrics *metrics;
    bool tells; /* logs changes: one worker is enough */
};

struct key_watch *key_watch_new(const struct key_watch_settings *settings);
/* Watches the files of this policy from now on, and no others; NULL: none. The policy must exist
 * until another one is set. 0; -ENOMEM. */
int key_watch_set(struct key_watch *watch, struct token_policy *policy);
/* The loop must run to close its handle. */
void key_watch_free(struct key_watch *watch);
