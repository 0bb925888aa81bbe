/* src/users.h - make a user, find one. */
#pragma once

#include <stdint.h>

#include "src/call.h"
#include "src/meta.h"
#include "src/write.h"

enum { SL_NAME_MAX = 200 }; /* bytes of a display name */

/* A new user. `name` is what others read; absent: the login. The answer (sl_write_reply) holds the
 * user's id, or -EEXIST: the login is taken, in this or another spelling.
 * 0; -EINVAL: login or name is none, *reterr says why; -ENOMEM. */
SL_EXPORT int sl_user_create_call(struct sl_call *call, const struct sl_meta *meta,
                                  struct sl_slice request_id, struct sl_slice login,
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
