/* src/social/users.h - creates, changes, finds and reads users. */
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

/* Creates a user; the `user` event has the user's id. `name` is the display name; absent: the
 * login. The answer (sl_write_reply) contains the user's id, or is -EEXIST: the login is taken, in
 * this or another spelling.
 *
 * 0; -EINVAL: invalid login or name, *reterr says why; -ENOMEM. */
SL_EXPORT int sl_user_create_call(struct sl_call *call, const struct sl_meta *meta,
                                  struct sl_slice request_id, struct sl_slice login,
                                  struct sl_slice name, struct failure *reterr);

/* Changes the display name, also in existing posts. A `user` event says so if the name is
 * different. The answer (sl_write_reply) contains the user's id. 0; -EINVAL; -ENOMEM. */
SL_EXPORT int sl_user_rename_call(struct sl_call *call, const struct sl_meta *meta,
                                  struct sl_slice request_id, const struct sl_user_ref *user,
                                  struct sl_slice name, struct failure *reterr);

struct sl_user_field {
    struct sl_slice name, value;
};

/* A change of a user. Absent members stay as they are. */
struct sl_user_change {
    struct sl_slice name;
    struct sl_slice login;  /* the old login continues to name this user, and is not available to
                               others */
    struct sl_slice bio;    /* text of up to SL_BIO_MAX bytes; empty: removed */
    struct sl_slice avatar; /* a link, http or https, of up to 2,048 bytes; empty: removed */
    const struct sl_user_field *fields; /* replace all existing fields */
    size_t field_count;                 /* up to SL_USER_FIELDS_MAX; 0: all are removed */
    bool changes_fields;
};

/* Changes a user. A `user` event says what is different, if anything is. The answer
 * (sl_write_reply) contains the user's id, or is -EEXIST: the login belongs to another user;
 * -EDQUOT: the user has had too many logins. 0; -EINVAL: *reterr says what is wrong; -EXDEV: the
 * login belongs to another shard than `user`, who is given by id; -ENOMEM. */
SL_EXPORT int sl_user_change_call(struct sl_call *call, const struct sl_meta *meta,
                                  struct sl_slice request_id, const struct sl_user_ref *user,
                                  const struct sl_user_change *change, struct failure *reterr);

/* Reads or sets the id up to which `user` has read. `last_read` 0: only read it. 0; -EINVAL;
 * -ENOMEM. */
SL_EXPORT int sl_last_read_call(struct sl_call *call, const struct sl_meta *meta,
                                const struct sl_user_ref *user, uint64_t last_read,
                                struct failure *reterr);
/* *ret_last_read 0: never set. 0; -ENOENT: no such user; else as sl_reply_check(). */
SL_EXPORT int sl_last_read_reply(const struct redisReply *reply, uint64_t *ret_last_read,
                                 struct failure *reterr);

/* Looks up a user. 0; -EINVAL: neither a login nor an id of this database; -ENOMEM. */
SL_EXPORT int sl_user_find_call(struct sl_call *call, const struct sl_meta *meta,
                                const struct sl_user_ref *user, struct failure *reterr);

struct sl_user {
    uint64_t id;
    struct sl_slice login; /* as it was given when the user was created */
    struct sl_slice name;
};

/* The slices are those of the reply. 0; -ENOENT: no such user; else as sl_reply_check(). */
SL_EXPORT int sl_user_find_reply(const struct redisReply *reply, struct sl_user *ret_user,
                                 struct failure *reterr);

/* A user with everything that is shown of it. A bare row, which is returned only if requested,
 * lacks login, signup and profile, because a cache has them (src/cache/cached_rows.h). */
struct sl_user_row {
    struct sl_user user;
    struct sl_slice signup;  /* RFC 3339 */
    struct sl_slice profile; /* JSON members, as in "bio":"...","avatar":"..."; empty: none */
    uint64_t version;        /* of login and profile; 0: never changed */
    uint64_t followers, following, posts;
};

/* Reads `count` users in one round trip. 0; -EINVAL: one is neither a login nor an id of this
 * database; -ENOMEM. */
SL_EXPORT int sl_users_calls(struct sl_shard_calls *calls, const struct sl_meta *meta,
                             const struct sl_user_ref *users, size_t count, struct failure *reterr);
/* The same for one user: one call, whose reply has one row. */
SL_EXPORT int sl_user_row_call(struct sl_call *call, const struct sl_meta *meta,
                               const struct sl_user_ref *user, struct failure *reterr);
/* Checks that a reply has rows for `count` users. 0, or as sl_reply_check(). */
SL_EXPORT int sl_users_reply(const struct redisReply *reply, size_t count, struct failure *reterr);
/* Row `i` < count of a reply that sl_users_reply() accepted. The slices are those of the reply. 0;
 * -ENOENT: no such user; -EBADMSG. */
SL_EXPORT int sl_users_at(const struct redisReply *reply, size_t i, struct sl_user_row *ret_row,
                          struct failure *reterr);
