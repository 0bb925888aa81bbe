/* src/call/write_build.h - used by the builders of writes to refer to users. */
#pragma once

#include "src/call/call_build.h"
#include "src/call/write.h"

/* A user in the form that scripts take, "=ID" or "@FOLDED LOGIN", and the user's shard. */
struct sl_write_user {
    char text[80];
    struct sl_slice slice; /* of `text`; the struct must not be moved */
    uint32_t shard;
};

/* 0; -EINVAL: not a login, or an id of a shard that the database does not have. */
int sl_write_user_init(struct sl_write_user *user, const struct sl_user_ref *ref,
                       const struct sl_meta *meta, struct failure *reterr);

/* Begins a write in `shard`. 0; -EINVAL: not a request id. */
int sl_write_begin(struct sl_call *call, const struct sl_script *script, uint32_t shard,
                   const struct sl_meta *meta, struct sl_slice request_id, struct failure *reterr);
