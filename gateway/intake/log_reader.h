/* gateway/intake/log_reader.h - reads batches of the shards' logs from Redis, on the loop. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/intake/shard_order.h"
#include "gateway/redis/redis_commands.h"

enum { LOG_BATCH_EVENTS = 128 };

struct log_reader;

/* The requested batch, valid during the call; or NULL, an error as in sl_reply_check(), and why. */
typedef void (*log_batch_fn)(void *owner, const struct log_batch *batch, int error,
                             const char *why);

/* NULL: out of memory. */
struct log_reader *log_reader_new(struct redis_commands *commands);
void log_reader_free(struct log_reader *reader); /* call it after freeing the commands */

/* Reads the first LOG_BATCH_EVENTS of (after, to]. 0: `done` will be called, later; -ENOMEM: it
 * will not. */
int log_reader_read(struct log_reader *reader, uint32_t shard, uint64_t after, uint64_t to,
                    log_batch_fn done, void *owner);
/* The same with the last LOG_BATCH_EVENTS up to and including `to`, in the order of the log. */
int log_reader_read_back(struct log_reader *reader, uint32_t shard, uint64_t to, log_batch_fn done,
                         void *owner);
