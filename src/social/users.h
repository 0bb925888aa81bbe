/* src/social/users.h - make a user, give one another name, find one, read many. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/call/call.h"
#include "src/call/shard_calls.h"
#include "src/call/write.h"
#include "src/model/database.h"

enum { SL_NAME_MAX = 200 }; /* bytes of a display name */

/* A new user. `name` is what others read; absent: the login. The answer (sl_write_reply) holds the
 * user's id, or -EEXIST: the login is taken, in this or another spelling.
 * 0; -EINVAL: login or name is none, *reterr says why; -ENOMEM. */
SL_EXPORT int sl_user_create_call(struct sl_call *call, const struct sl_meta *meta,
                                  struct sl_slice request_id, struct sl_slice login,
                                  struct sl_slice name, struct failure *reterr);

/* `user` is called `name` from now on, in posts that were written before, too. It makes no event.
 * The answer (sl_write_reply) holds the user's id. 0; -EINVAL; -ENOMEM. */
SL_EXPORT int sl_user_rename_call(struct sl_call *call, const struct sl_meta *meta,
                                  struct sl_slice request_id, const struct sl_user_ref *user,
                                  struct sl_slice name, struct failure *reterr);

/* Who is that? 0; -EINVAL: neither a login nor an id of this database; -ENOMEM. */
SL_EXPORT int sl_user_find_call(struct sl_call *call, const struct sl_meta *meta,
                                const struct sl_user_ref *user, struct failure *reterr);

struct sl_user {
    uint64_t id;
    struct sl_slice login; /* as it was given when the user was made */
    struct sl_slice name;
};

/* The slices are the reply's. 0; -ENOENT: nobody; else as sl_reply_check(). */
SL_EXPORT int sl_user_find_reply(const struct redisReply *reply, struct sl_user *ret_user,
                                 struct failure *reterr);

/* All that is shown of a user. A bare row, which only those get who ask for it, lacks login and
 * signup: a cache is to have them (src/cache/cached_rows.h). */
struct sl_user_row {
    struct sl_user user;
    struct sl_slice signup; /* RFC 3339 */
    uint64_t followers, following, posts;
};

/* `count` users, one or many, in one round trip. 0; -EINVAL: one of them is neither a login nor an
 * id of this database; -ENOMEM. */
SL_EXPORT int sl_users_calls(struct sl_shard_calls *calls, const struct sl_meta *meta,
                             const struct sl_user_ref *users, size_t count, struct failure *reterr);
/* The same for one user, in one call whose reply has one row. */
SL_EXPORT int sl_user_row_call(struct sl_call *call, const struct sl_meta *meta,
                               const struct sl_user_ref *user, struct failure *reterr);
/* One call's reply: are there rows for `count` users? 0, or as sl_reply_check(). */
SL_EXPORT int sl_users_reply(const struct redisReply *reply, size_t count, struct failure *reterr);
/* Row `i` < count of a reply that sl_users_reply() accepted; the slices are the reply's.
 * 0; -ENOENT: there is no such user; -EBADMSG. */
SL_EXPORT int sl_users_at(const struct redisReply *reply, size_t i, struct sl_user_row *ret_row,
                          struct failure *reterr);
