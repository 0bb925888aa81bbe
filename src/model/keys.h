/* src/model/keys.h - the names of all keys and channels. The scripts build the same ones.
 *
 * Every key of a shard is `sluice:{S}:...`, so that a shard is one hash slot of Redis Cluster and
 * one script may touch all of it. docs/core.md lists what each key holds. */
#pragma once

#include <stdint.h>

#include "base/export.h"

enum { SL_KEY_SIZE = 64 };

/* The key `name` of a shard: sl_key(3, "log", room) is "sluice:{3}:log". `name` is one of meta,
 * clock, log, live, tasks, logins, or a prefix that belongs in front of an id. Returns `room`. */
SL_EXPORT const char *sl_key(uint32_t shard, const char *name, char room[static SL_KEY_SIZE]);

/* The key of one user or post, in the shard that its id says: sl_key_of("following", id, room) is
 * "sluice:{3}:following:114677036875776". */
SL_EXPORT const char *sl_key_of(const char *name, uint64_t id, char room[static SL_KEY_SIZE]);
