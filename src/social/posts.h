/* src/social/posts.h - post, and take a post back. */
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
    SL_USER_ID_TEXT_MAX = 64, /* users of elsewhere have opaque ids */
};

/* Another post that a post refers to. `post` alone: one of this database, in the author's shard;
 * its author is looked up. With `user` (and `login`, if known) it is taken as it is: a post of
 * another shard (sl_post_author_call() tells its author), or of elsewhere.
 *
 * Of a post that is not public others keep the id alone, and nobody reposts it. */
struct sl_post_reference {
    struct sl_slice post;  /* 1 .. 2^63 - 1 as decimal text; absent: no reference */
    struct sl_slice user;  /* up to SL_USER_ID_TEXT_MAX bytes */
    struct sl_slice login; /* up to 64 bytes */
    bool is_restricted;    /* of another shard of this database, and not public: no `user` */
};

struct sl_post_place {
    struct sl_slice name;    /* absent: no name */
    struct sl_slice country; /* two letters; absent: none */
    bool has_box;
    double west, south, east, north; /* west > east crosses the antimeridian */
};

/* What a user posts. All but `text` may be zero. */
struct sl_post {
    struct sl_slice text; /* 1 .. SL_POST_TEXT_MAX bytes of UTF-8 without NUL */
    struct sl_slice lang; /* a BCP 47 tag */
    bool has_point;
    double lon, lat;
    struct sl_post_place place;
    struct sl_post_reference reply_to, repost_of, quote_of;
    bool is_comment; /* reply_to, with its `user` or restricted, is of another shard of this
                        database, and gets this post as a comment; as `post` alone it does anyway */
    const struct sl_slice *urls; /* expanded links: http or https, up to 2,048 bytes each */
    size_t url_count;
    struct sl_slice media;    /* a JSON array; what is in it is the application's affair */
    struct sl_slice source;   /* the program it was written with */
    struct sl_slice audience; /* see audience.h; absent: public */
};

/* The answer (sl_write_reply) holds the post's id, which is its event's id too.
 * 0; -EINVAL: *reterr says what is wrong with the post; -EXDEV: a reference that is `post` alone is
 * to another shard; -EOPNOTSUPP: it reposts what is restricted; -ENOMEM. */
SL_EXPORT int sl_post_call(struct sl_call *call, const struct sl_meta *meta,
                           struct sl_slice request_id, const struct sl_user_ref *author,
                           const struct sl_post *post, struct failure *reterr);

/* `user` takes `post` back; only its author may, and who may not see it is told that there is none
 * (-ENOENT). The answer (sl_write_reply) holds the id of the delete event. 0; -EINVAL; -ENOMEM. */
SL_EXPORT int sl_delete_call(struct sl_call *call, const struct sl_meta *meta,
                             struct sl_slice request_id, const struct sl_user_ref *user,
                             uint64_t post, struct failure *reterr);

/* The same of a post that the archive has and Redis has not: `json` is what sl_archive_find() gave.
 * Send it when Redis has answered -ENOENT to the call above, with the same request id. */
SL_EXPORT int sl_delete_archived_call(struct sl_call *call, const struct sl_meta *meta,
                                      struct sl_slice request_id, const struct sl_user_ref *user,
                                      uint64_t post, struct sl_slice json, struct failure *reterr);

/* Whose post is that, for `reader` (src/call/read.h) who wants to refer to it?
 * 0; -EINVAL: no id of this database; -ENOMEM. */
SL_EXPORT int sl_post_author_call(struct sl_call *call, const struct sl_meta *meta, uint64_t reader,
                                  uint64_t post, struct failure *reterr);
/* Adds to the reference what the reply has, `user` and `login` being the reply's. 0; -ENOENT: no
 * such post, or the reader may not see it; else as sl_reply_check(). */
SL_EXPORT int sl_post_author_reply(const struct redisReply *reply,
                                   struct sl_post_reference *reference, struct failure *reterr);
