/* gateway/delivery/drawing.h - draws the events that an estimate is made of.
 *
 * They are drawn evenly from a stretch of time that ends now: from the ring, where it reaches so
 * far back, every n-th event; from the logs, at the end of each of some slots of equal length as
 * many of one shard as a batch has, the shards in turn. Examples are taken from the ring, since
 * only there it is known which posts have been deleted.
 *
 * Reads and judges in the time of those who catch up. Inside of delivery; belongs to the thread of
 * its loop. */
#pragma once

#include <stdint.h>

#include "gateway/counts/estimate.h"
#include "gateway/delivery/deliver.h"

struct drawing;

/* What has happened behind the id `from` (0: what the ring has of the last hour) until now. The
 * estimate is the caller's, and complete when `done` is called, later: 0 or a negative errno. NULL:
 * out of memory. */
typedef void (*drawing_done_fn)(void *owner, int error);
struct drawing *drawing_begin(struct deliver *deliver, struct estimate *estimate, uint64_t from,
                              drawing_done_fn done, void *owner);
/* Counts what it has done. */
uint64_t drawing_steps(const struct drawing *drawing);
/* Whether it is done or not; then `done` is not called any more. NULL is fine. */
void drawing_free(struct drawing *drawing);
