/* gateway/process/private_redis.h - a redis-server of our own, for whoever has none.
 *
 * It lives in the data directory: append-only file, log, unix socket, no TCP port. It belongs to no
 * terminal and outlives a crash of sluiced: the next sluiced adopts it. Two locks keep that safe:
 * `sluiced.lock` is held by the one sluiced that uses the directory; `redis.lock` is held through
 * an inherited descriptor by the redis-server itself, from before its first instruction until its
 * last, so that there are never two on the same data.
 *
 * The owner calls private_redis_step() when private_redis_fd() becomes readable, and every few
 * milliseconds while Redis does not answer. Nothing here blocks for long but private_redis_stop().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"

struct private_redis;

/* Makes the directory (mode 0700) when it is missing, and takes its lock. `program` is found in
 * PATH. 0; -EBUSY: another sluiced uses the directory; -ENAMETOOLONG: too long for a unix socket;
 * other errnos. *reterr says why. */
int private_redis_new(const char *data_dir, const char *program, struct private_redis **ret_redis,
                      struct failure *reterr);

/* The same with a lock that a predecessor holds and has shared with us: `lock`, taken whatever
 * happens. The lock file names the predecessor until private_redis_sign(). */
int private_redis_inherit(const char *data_dir, const char *program, int lock,
                          struct private_redis **ret_redis, struct failure *reterr);
void private_redis_sign(struct private_redis *redis);
/* The lock's descriptor, borrowed: sharing it shares the lock. */
int private_redis_lock(const struct private_redis *redis);

/* Lets go of the directory, and of Redis without stopping it. */
void private_redis_free(struct private_redis *redis);

/* In a forked worker: closes what is the parent's. Of the functions below only private_redis_url()
 * is left to it. */
void private_redis_let_go(struct private_redis *redis);

/* unix:///..., borrowed. */
const char *private_redis_url(const struct private_redis *redis);

/* Times that it was started again after it had answered. */
unsigned private_redis_restarts(const struct private_redis *redis);

/* Readable as soon as Redis has died; -1: none is known. */
int private_redis_fd(const struct private_redis *redis);

/* Does what is next: adopt, start, ask whether it answers, see that it died, start again when its
 * back-off is over. true in *ret_answers: Redis serves. 0; a negative errno: it cannot be started
 * in the first place, *reterr says why. `now_ms`: clock_monotonic_ms(). */
int private_redis_step(struct private_redis *redis, uint64_t now_ms, bool *ret_answers,
                       struct failure *reterr);

/* Asks Redis to write everything down and end; kills it after `timeout_ms`. */
void private_redis_stop(struct private_redis *redis, unsigned timeout_ms);
