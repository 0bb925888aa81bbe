/* src/social/posts.h - creates and deletes posts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/call/call.h"
#include "src/call/write.h"
#include "src/model/audience.h"
#include "src/model/database.h"

enum {
    SL_POST_TEXT_MAX = 20000, /* bytes */
    SL_POST_LANG_MAX = 35,
    SL_POST_SOURCE_MAX = 64,
    SL_POST_PLACE_NAME_MAX = 200,
    SL_POST_URLS_MAX = 16,
    SL_POST_MEDIA_MAX = 16384,
    SL_USER_ID_TEXT_MAX = 64, /* users of other systems have opaque ids */
};

/* Another post that a post refers to. With `post` alone it is a post of this database, in the
 * author's shard, and its author is looked up. With `user` (and `login`, if known) it is used as
 * given: a post of another shard, whose author sl_post_author_call() returns, or of another system.
 *
 * References to a post that is not public contain only its id, and such a post cannot be
 * reposted. */
struct sl_post_reference {
    struct sl_slice post;  /* 1 .. 2^63 - 1 as decimal text; absent: no reference */
    struct sl_slice user;  /* up to SL_USER_ID_TEXT_MAX bytes */
    struct sl_slice login; /* up to 64 bytes */
    bool is_restricted;    /* a post of another shard of this database that is not public: no
                              `user` */
};

struct sl_post_place {
    struct sl_slice name;    /* absent: no name */
    struct sl_slice country; /* two letters; absent: none */
    bool has_box;
    double west, south, east, north; /* west > east: the box crosses the antimeridian */
};

/* A new post. All members but `text` may be zero. */
struct sl_post {
    struct sl_slice text; /* 1 .. SL_POST_TEXT_MAX bytes of UTF-8 without NUL */
    struct sl_slice lang; /* a BCP 47 tag */
    bool has_point;
    double lon, lat;
    struct sl_post_place place;
    struct sl_post_reference reply_to, repost_of, quote_of;
    bool is_comment; /* reply_to, given with `user` or as restricted, is in another shard of this
                        database and gets this post as a comment; implied if reply_to is `post`
                        alone */
    const struct sl_slice *urls; /* expanded links: http or https, up to 2,048 bytes each */
    size_t url_count;
    struct sl_slice media;    /* a JSON array, whose elements are opaque */
    struct sl_slice source;   /* the application it was written with */
    struct sl_slice audience; /* see audience.h; absent: public */
};

/* The answer (sl_write_reply) contains the post's id, which is also the id of its event.
 *
 * 0; -EINVAL: *reterr says what is wrong with the post; -EXDEV: a reference given as `post` alone
 * belongs to another shard; -EOPNOTSUPP: it reposts a restricted post; -ENOMEM. */
SL_EXPORT int sl_post_call(struct sl_call *call, const struct sl_meta *meta,
                           struct sl_slice request_id, const struct sl_user_ref *author,
                           const struct sl_post *post, struct failure *reterr);

/* Deletes `post`, which must be by `user`. A user who may not see the post gets -ENOENT. The answer
 * (sl_write_reply) contains the id of the delete event. 0; -EINVAL; -ENOMEM. */
SL_EXPORT int sl_delete_call(struct sl_call *call, const struct sl_meta *meta,
                             struct sl_slice request_id, const struct sl_user_ref *user,
                             uint64_t post, struct failure *reterr);

/* The same for a post that only the archive has. `json` is what sl_archive_find() returned. Send
 * the call when Redis has answered -ENOENT to sl_delete_call(), with the same request id. */
SL_EXPORT int sl_delete_archived_call(struct sl_call *call, const struct sl_meta *meta,
                                      struct sl_slice request_id, const struct sl_user_ref *user,
                                      uint64_t post, struct sl_slice json, struct failure *reterr);

/* Asks for the author of a post that `reader` (src/call/read.h) wants to refer to.
 *
 * 0; -EINVAL: not an id of this database; -ENOMEM. */
SL_EXPORT int sl_post_author_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                                  uint64_t post, struct failure *reterr);
/* Completes the reference with `user` and `login`, which are slices of the reply. 0; -ENOENT: no
 * such post, or the reader may not see it; else as sl_reply_check(). */
SL_EXPORT int sl_post_author_reply(const struct redisReply *reply,
                                   struct sl_post_reference *reference, struct failure *reterr);
