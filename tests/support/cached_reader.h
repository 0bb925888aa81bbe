/* tests/support/cached_reader.h - reads with a cache, as a program does: by ids, a user's posts, a
 * home timeline; it fills the cache with what was missing, and asks the archive for what Redis
 * lacks. */
#pragma once

#include "base/buffer.h"
#include "src/archive/archive.h"
#include "src/cache/cached_rows.h"
#include "src/redis/redis_link.h"

struct cached_reader {
    struct sl_redis_link *link;
    struct sl_meta meta;
    struct sl_cache *cache;
    struct sl_archive *archive; /* NULL: none */
    struct failure failure;     /* of the last error */
};

/* JSON of posts as they are shown; empty for one that is not visible. */
struct cached_posts {
    size_t count;
    uint64_t ids[64];
    struct buffer json[64];
};

void cached_posts_done(struct cached_posts *posts);

/* All fill an empty `ret_posts`. 0; a negative errno: reader->failure. */
int cached_reader_find(struct cached_reader *reader, uint64_t as, const uint64_t *ids, size_t count,
                       struct cached_posts *ret_posts);
/* Reads the newest 20, each of them visible for `as`, or empty if it has disappeared meanwhile. */
int cached_reader_profile(struct cached_reader *reader, uint64_t as, uint64_t user,
                          struct cached_posts *ret_posts);
int cached_reader_home(struct cached_reader *reader, uint64_t as, struct cached_posts *ret_posts);
