/* gateway/process/private_redis.h - a private redis-server, for users who have none.
 *
 * Everything of it is in the data directory: append-only file, log, Unix socket; no TCP port. It
 * belongs to no terminal and outlives a crash of sluiced: the next sluiced adopts it. Two locks
 * make this safe. `sluiced.lock` is held by the one sluiced that uses the directory. `redis.lock`
 * is held through an inherited descriptor by the redis-server itself, from before its first
 * instruction until its last, so that there are never two on the same data.
 *
 * The owner calls private_redis_step() when private_redis_fd() is readable, and every few
 * milliseconds while Redis does not answer. Only private_redis_stop() blocks for long. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"

struct private_redis;

/* Creates the directory (mode 0700) if it is missing, and locks it. `program` is looked up in PATH.
 * 0; -EBUSY: another sluiced uses the directory; -ENAMETOOLONG: too long for a Unix socket; other
 * errnos. *reterr says why. */
int private_redis_new(const char *data_dir, const char *program, struct private_redis **ret_redis,
                      struct failure *reterr);

/* The same with a lock that a predecessor holds and shares with us; takes ownership of `lock`, even
 * on failure. The lock file names the predecessor until private_redis_sign(). */
int private_redis_inherit(const char *data_dir, const char *program, int lock,
                          struct private_redis **ret_redis, struct failure *reterr);
void private_redis_sign(struct private_redis *redis);
/* The descriptor of the lock, borrowed: sharing it shares the lock. */
int private_redis_lock(const struct private_redis *redis);

/* Releases the directory, without stopping Redis. */
void private_redis_free(struct private_redis *redis);

/* In a forked worker: closes what belongs to the parent. After this only private_redis_url() may be
 * called. */
void private_redis_detach(struct private_redis *redis);

/* unix:///..., borrowed. */
const char *private_redis_url(const struct private_redis *redis);

/* The number of restarts after it had answered. */
unsigned private_redis_restarts(const struct private_redis *redis);

/* Readable as soon as Redis has died; -1: none is known. */
int private_redis_fd(const struct private_redis *redis);

/* Does the next step: adopt, start, check whether it answers, notice its death, restart it when its
 * delay is over. *ret_answers: Redis serves. 0; a negative errno: it cannot be started at all,
 * *reterr says why. `now_ms`: clock_monotonic_ms(). */
int private_redis_step(struct private_redis *redis, uint64_t now_ms, bool *ret_answers,
                       struct failure *reterr);

/* Asks Redis to save everything and exit; kills it after `timeout_ms`. */
void private_redis_stop(struct private_redis *redis, unsigned timeout_ms);
