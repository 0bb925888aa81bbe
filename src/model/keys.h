/* src/model/keys.h - the names of all Redis keys and channels. The scripts build the same names.
 *
 * Every key of a shard is `sluice:{S}:...`, so that all keys of a shard are in one hash slot of
 * Redis Cluster, and one script may access all of them. docs/core.md lists what each key holds. */
#pragma once

#include <stdint.h>

#include "base/export.h"

enum { SL_KEY_SIZE = 64 };

/* Writes the key `name` of a shard: sl_key(3, "log", room) is "sluice:{3}:log". `name` is meta,
 * clock, log, live, tasks, logins, or a prefix to be followed by an id. Returns `room`. */
SL_EXPORT const char *sl_key(uint32_t shard, const char *name, char room[static SL_KEY_SIZE]);

/* Writes the key of a user or post, in the shard that its id contains: sl_key_of("following", id,
 * room) is "sluice:{3}:following:114677036875776". Returns `room`. */
SL_EXPORT const char *sl_key_of(const char *name, uint64_t id, char room[static SL_KEY_SIZE]);
