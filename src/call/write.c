/* write.c - user references in the form of the scripts ("=ID" or "@folded login") and their shard.
 *
 * A login is folded and its shard computed before the call is built, so that the script runs in the
 * shard that stores the login. The reply to a write is a flag, whether it is a repetition, and for
 * each item an id or an error. */
#include "src/call/write.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <hiredis/hiredis.h>

#include "src/call/reply_read.h"
#include "src/call/write_build.h"
#include "src/model/id.h"
#include "src/model/id_check.h"
#include "src/model/login.h"

enum { REQUEST_ID_MAX = 128 };

static int check_request_id(struct sl_slice request_id, struct failure *reterr)
{
    if (request_id.data && request_id.size == 0)
        return failure_set(reterr, -EINVAL, "the request id is empty");
    if (request_id.size > REQUEST_ID_MAX)
        return failure_set(reterr, -EINVAL, "the request id is longer than %d bytes",
                           REQUEST_ID_MAX);
    for (size_t i = 0; i < request_id.size; i++) {
        if (request_id.data[i] <= ' ' || request_id.data[i] > '~')
            return failure_set(reterr, -EINVAL,
                               "the request id holds something else than printable ASCII");
    }
    return 0;
}

static int by_login(struct sl_write_user *user, struct sl_slice login, uint32_t shards,
                    struct failure *reterr)
{
    struct sl_slice folded;
    int r;

    user->text[0] = '@';
    r = sl_login_fold(login, user->text + 1, &folded, reterr);
    if (r < 0)
        return r;
    user->slice = sl_slice(user->text, folded.size + 1);
    user->shard = sl_login_shard(folded, shards);
    return 0;
}

int sl_write_user_init(struct sl_write_user *user, const struct sl_user_ref *ref,
                       const struct sl_meta *meta, struct failure *reterr)
{
    int r;

    if (ref->id == 0)
        return by_login(user, ref->login, meta->shards, reterr);
    r = sl_id_check(ref->id, meta, reterr);
    if (r < 0)
        return r;
    snprintf(user->text, sizeof(user->text), "=%" PRIu64, ref->id);
    user->slice = sl_slice_str(user->text);
    user->shard = sl_id_shard(ref->id);
    return 0;
}

int sl_write_begin(struct sl_call *call, const struct sl_script *script, uint32_t shard,
                   const struct sl_meta *meta, struct sl_slice request_id, struct failure *reterr)
{
    int r = check_request_id(request_id, reterr);

    if (r < 0)
        return r;
    sl_call_begin_script(call, script, shard, meta->shards, request_id);
    call->is_write = true;
    return 0;
}

int sl_write_many_reply(const struct redisReply *reply, size_t count, bool *ret_is_repeated,
                        struct failure *reterr)
{
    int r;

    r = sl_reply_check_array(reply, 1 + count, reterr);
    return r < 0 ? r : sl_reply_read_flag(reply, 0, ret_is_repeated, reterr);
}

int sl_write_many_at(const struct redisReply *reply, size_t i, uint64_t *ret_id,
                     struct failure *reterr)
{
    int r = sl_reply_check(reply->element[1 + i], reterr);

    return r < 0 ? r : sl_reply_read_number(reply, 1 + i, ret_id, reterr);
}

int sl_write_reply(const struct redisReply *reply, struct sl_written *ret_written,
                   struct failure *reterr)
{
    struct sl_written written = {0};
    int r;

    r = sl_write_many_reply(reply, 1, &written.is_repeated, reterr);
    if (r == 0)
        r = sl_write_many_at(reply, 0, &written.id, reterr);
    if (r == 0)
        *ret_written = written;
    return r;
}
