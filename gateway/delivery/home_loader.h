/* gateway/delivery/home_loader.h - reads the sets that home feeds begin with from Redis. */
#pragma once

#include <stdint.h>

#include "gateway/delivery/home.h"
#include "gateway/redis/redis_commands.h"

struct home_loader;

/* Answers the feeds of `home` from now on. NULL: out of memory. */
struct home_loader *home_loader_new(struct home *home, struct redis_commands *commands);
/* How many shards the database has; until it is known, every load fails. */
void home_loader_set_shards(struct home_loader *loader, uint32_t shards);
void home_loader_free(struct home_loader *loader); /* after the commands it uses */
