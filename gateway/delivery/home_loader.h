/* gateway/delivery/home_loader.h - reads the sets of home feeds from Redis. */
#pragma once

#include <stdint.h>

#include "gateway/delivery/home.h"
#include "gateway/redis/redis_commands.h"

struct home_loader;

/* Serves the feeds of `home` from now on. NULL: out of memory. */
struct home_loader *home_loader_new(struct home *home, struct redis_commands *commands);
/* Sets the number of shards; until then every load fails. */
void home_loader_set_shards(struct home_loader *loader, uint32_t shards);
void home_loader_free(struct home_loader *loader); /* after freeing the commands */
