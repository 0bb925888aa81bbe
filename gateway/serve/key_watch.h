/* gateway/serve/key_watch.h - files of key sets that change while everything runs.
 *
 * Each is looked at twice a second, and read when it is another one than the last that was read,
 * both by a thread of the loop's pool, for the largest set takes 30 ms. A good set takes the place
 * of the one before at once; a bad one, or none, is told in the log and counted, and the keys of
 * before stay. */
#pragma once

#include <uv.h>

#include "gateway/front/token.h"
#include "gateway/metrics/metrics.h"

struct key_watch;

struct key_watch_settings {
    uv_loop_t *loop;
    struct metrics *metrics;
    bool tells; /* in the log: one worker is enough for what all read */
};

struct key_watch *key_watch_new(const struct key_watch_settings *settings);
/* Watches the files of this policy from now on, and no others; NULL: none. The policy must live
 * until another one is set. 0; -ENOMEM. */
int key_watch_set(struct key_watch *watch, struct token_policy *policy);
/* Its handle closes after this. */
void key_watch_free(struct key_watch *watch);
