/* src/call/write_build.h - how the builders of writes name users. */
#pragma once

#include "src/call/call_build.h"
#include "src/call/write.h"

/* A user as the scripts take one: "=ID" or "@FOLDED LOGIN", and where that user lives. */
struct sl_write_user {
    char text[80];
    struct sl_slice slice; /* of `text`, which must not move */
    uint32_t shard;
};

/* 0; -EINVAL: no login, or an id of a shard that the database has not. */
int sl_write_user_init(struct sl_write_user *user, const struct sl_user_ref *ref,
                       const struct sl_meta *meta, struct failure *reterr);

/* Begins a write in `shard`. 0; -EINVAL: not a request id. */
int sl_write_begin(struct sl_call *call, const struct sl_script *script, uint32_t shard,
                   const struct sl_meta *meta, struct sl_slice request_id, struct failure *reterr);
