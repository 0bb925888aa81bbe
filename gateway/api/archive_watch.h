/* gateway/api/archive_watch.h - can the archive be read? Opens it and asks for a post every five
 * seconds, and notes the answer (gateway/metrics/health.h). It has a reader of its own, so that
 * nobody waits for it, and opens it anew each time, so that a file which is gone is found, too.
 * Belongs to the thread of its loop. */
#pragma once

#include <uv.h>

#include "gateway/metrics/metrics.h"

struct archive_watch;

enum { ARCHIVE_WATCH_MS = 5000 };

/* Begins at once. `url` lives as long as the watch. NULL: out of memory. */
struct archive_watch *archive_watch_new(uv_loop_t *loop, const char *url, struct metrics *metrics);
/* The loop must run until what is under way has come back. */
void archive_watch_free(struct archive_watch *watch);
