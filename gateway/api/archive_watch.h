/* gateway/api/archive_watch.h - checks whether the archive can be read.
 *
 * It opens the archive and reads a post every five seconds, and records the result
 * (gateway/metrics/health.h). It uses a reader of its own, so that no request waits for it, and
 * opens the archive each time, to notice a file that is gone. Belongs to the thread of its loop. */
#pragma once

#include <uv.h>

#include "gateway/metrics/metrics.h"

struct archive_watch;

enum { ARCHIVE_WATCH_MS = 5000 };

/* Starts at once. `url` is borrowed as long as the watch exists. NULL: out of memory. */
struct archive_watch *archive_watch_new(uv_loop_t *loop, const char *url, struct metrics *metrics);
/* The loop must run until the current read has returned. */
void archive_watch_free(struct archive_watch *watch);
