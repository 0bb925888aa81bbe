/* src/social/users.h - make a user, give one another name, find one, read many. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/call/call.h"
#include "src/call/shard_calls.h"
#include "src/call/write.h"
#include "src/model/database.h"

enum {
    SL_NAME_MAX = 200, /* bytes of a display name */
    SL_BIO_MAX = 2000,
    SL_USER_FIELDS_MAX = 8,
    SL_USER_FIELD_NAME_MAX = 64, /* bytes */
    SL_USER_FIELD_VALUE_MAX = 500,
};

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

struct sl_user_field {
    struct sl_slice name, value;
};

/* What is to be another; what is absent stays. */
struct sl_user_change {
    struct sl_slice name;
    struct sl_slice login;  /* the one before goes on naming this user, and nobody else */
    struct sl_slice bio;    /* text of up to SL_BIO_MAX bytes; empty: none any more */
    struct sl_slice avatar; /* a link, http or https, of up to 2,048 bytes; the same */
    const struct sl_user_field *fields; /* the user's own, which take the place of those before */
    size_t field_count;                 /* up to SL_USER_FIELDS_MAX; 0: none any more */
    bool changes_fields;
};

/* Changes a user, and makes no event. The answer (sl_write_reply) holds the user's id, or -EEXIST:
 * the login is somebody else's; -EDQUOT: the user has had as many as may be. 0; -EINVAL: *reterr
 * says what is wrong; -EXDEV: the login belongs to another shard than `user`, who is given by id;
 * -ENOMEM. */
SL_EXPORT int sl_user_change_call(struct sl_call *call, const struct sl_meta *meta,
                                  struct sl_slice request_id, const struct sl_user_ref *user,
                                  const struct sl_user_change *change, struct failure *reterr);

/* How far has `user` read? `last_read`: up to this id from now on; 0: that is only asked. 0;
 * -EINVAL; -ENOMEM. */
SL_EXPORT int sl_last_read_call(struct sl_call *call, const struct sl_meta *meta,
                                const struct sl_user_ref *user, uint64_t last_read,
                                struct failure *reterr);
/* *ret_last_read 0: nobody has said. 0; -ENOENT: no such user; else as sl_reply_check(). */
SL_EXPORT int sl_last_read_reply(const struct redisReply *reply, uint64_t *ret_last_read,
                                 struct failure *reterr);

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

/* All that is shown of a user. A bare row, which only those get who ask for it, lacks login,
 * signup and profile: a cache is to have them (src/cache/cached_rows.h). */
struct sl_user_row {
    struct sl_user user;
    struct sl_slice signup;  /* RFC 3339 */
    struct sl_slice profile; /* members of JSON, as in "bio":"...","avatar":"..."; empty: none */
    uint64_t version;        /* of login and profile; 0: as they were made */
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
