/* cli/cache_url.h - opens the cache named by --cache, if any. */
#pragma once

#include "cli/database.h"
#include "src/cache/cache.h"

/* *ret_cache NULL: there is none. 0; -EINVAL: invalid URL; -ENOMEM. */
int cache_url_open(struct sl_cache **ret_cache, const struct database *database,
                   const struct cli *cli, struct failure *reterr);

/* Removes a deleted post from the cache, if there is one. */
void cache_url_forget_post(const struct database *database, const struct cli *cli, uint64_t post);
