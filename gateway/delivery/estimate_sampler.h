/* gateway/delivery/estimate_sampler.h - draws the events for an estimate.
 *
 * They are drawn evenly from a period that ends now. If the ring reaches far enough back, every
 * n-th event of it is used. Otherwise the period is divided into slots of equal length, and a batch
 * of events is read from a log at the end of each slot, from the shards in turn. Examples are taken
 * from the ring only, because only there deleted posts are known.
 *
 * Works within the time budget of clients that catch up. Internal to delivery; belongs to the
 * thread of its loop. */
#pragma once

#include <stdint.h>

#include "gateway/counts/estimate.h"
#include "gateway/delivery/deliver.h"

struct estimate_sampler;

/* Draws events after the id `from` (0: what the ring has of the last hour) until now. The caller
 * owns the estimate, which is complete when `done` is called, later, with 0 or a negative errno.
 * NULL: out of memory. */
typedef void (*estimate_sampler_done_fn)(void *owner, int error);
struct estimate_sampler *estimate_sampler_begin(struct deliver *deliver, struct estimate *estimate,
                                                uint64_t from, estimate_sampler_done_fn done,
                                                void *owner);
/* A counter of its progress. */
uint64_t estimate_sampler_steps(const struct estimate_sampler *sampler);
/* May be called before or after it is done; `done` is not called after this. NULL is allowed. */
void estimate_sampler_free(struct estimate_sampler *sampler);
