#include "cli/cache_url.h"

enum { TIMEOUT_MS = 1000 }; /* a single program uses it */

int cache_url_open(struct sl_cache **ret_cache, const struct database *database,
                   const struct cli *cli, struct failure *reterr)
{
    const struct sl_cache_options options = {.timeout_ms = TIMEOUT_MS};

    *ret_cache = NULL;
    if (!cli->cache_url)
        return 0;
    return sl_cache_open(cli->cache_url, database->meta.database_id, &options, ret_cache, reterr);
}

void cache_url_forget_post(const struct database *database, const struct cli *cli, uint64_t post)
{
    const struct sl_cache_item item = {SL_CACHE_POST, post, SL_SLICE_NONE};
    struct sl_cache *cache;

    if (cache_url_open(&cache, database, cli, NULL) == 0 && cache) {
        sl_cache_drop(cache, &item, 1);
        sl_cache_close(cache);
    }
}
