/* revocations.c - the calls about revocations, and the parser of their JSON.
 *
 * A revocation has one form, that of its event without `type`, both in the stored list and when it
 * is shown. The members are checked here, for the API and the command line alike. */
#include "src/database/revocations.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include <hiredis/hiredis.h>
#include <jansson.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "src/call/reply_read.h"
#include "src/call/write_build.h"
#include "src/model/id.h"
#include "src/model/keys.h"
#include "src/model/moment.h"

#define AHEAD_MAX_MS UINT64_C(315360000000) /* ten years, as of settings */

static bool has_controls(struct sl_slice text)
{
    for (size_t i = 0; i < text.size; i++) {
        if ((unsigned char)text.data[i] < 0x20 || text.data[i] == 0x7f)
            return true;
    }
    return false;
}

static int check_name(struct sl_slice text, const char *member, size_t max, const char **ret_member,
                      struct failure *reterr)
{
    if (!text.data)
        return 0;
    *ret_member = member;
    if (text.size == 0 || text.size > max)
        return failure_set(reterr, -EINVAL, "%s has 1 to %zu bytes", member, max);
    if (!utf8_is_valid(text) || has_controls(text))
        return failure_set(reterr, -EINVAL, "%s is no text without control characters", member);
    return 0;
}

static int check_times(const struct sl_revocation *revocation, uint64_t now_ms,
                       const char **ret_member, struct failure *reterr)
{
    *ret_member = "before";
    if (revocation->before_ms > now_ms + AHEAD_MAX_MS)
        return failure_set(reterr, -EINVAL, "before is more than ten years ahead");
    if (revocation->before_ms && revocation->jti.data)
        return failure_set(reterr, -EINVAL,
                           "a jti names one token: when it was issued says "
                           "nothing more");
    *ret_member = "until";
    if (revocation->until_ms && revocation->until_ms <= now_ms)
        return failure_set(reterr, -EINVAL, "until has passed");
    if (revocation->until_ms > now_ms + AHEAD_MAX_MS)
        return failure_set(reterr, -EINVAL, "until is more than ten years ahead");
    return 0;
}

int sl_revocation_check(const struct sl_revocation *revocation, uint64_t now_ms,
                        const char **ret_member, struct failure *reterr)
{
    int r;

    *ret_member = "sub";
    if (!revocation->sub.data && !revocation->jti.data && !revocation->kid.data &&
        !revocation->before_ms)
        return failure_set(reterr, -EINVAL, "one of sub, jti, kid and before is needed");
    r = check_name(revocation->sub, "sub", SL_REVOCATION_SUB_MAX, ret_member, reterr);
    if (r == 0)
        r = check_name(revocation->jti, "jti", SL_REVOCATION_NAME_MAX, ret_member, reterr);
    if (r == 0)
        r = check_name(revocation->kid, "kid", SL_REVOCATION_NAME_MAX, ret_member, reterr);
    return r < 0 ? r : check_times(revocation, now_ms, ret_member, reterr);
}

int sl_revocation_time(struct sl_slice text, uint64_t now_ms, uint64_t *ret_ms,
                       struct failure *reterr)
{
    struct sl_moment moment = {.value = now_ms};
    int r = 0;

    if (sl_slice_is(text, "now"))
        moment.kind = SL_MOMENT_TIME;
    else
        r = sl_moment_parse(text, now_ms, &moment, reterr);
    if (r == 0)
        *ret_ms = sl_moment_ms(&moment);
    return r;
}

static void add_time(struct sl_call *call, uint64_t time_ms)
{
    if (time_ms)
        sl_call_add_id(call, time_ms);
    else
        sl_call_add_str(call, "");
}

int sl_revoke_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                   const struct sl_revocation *revocation, struct failure *reterr)
{
    int r = sl_write_begin(call, &sl_script_revoke, 0, meta, request_id, reterr);

    if (r < 0)
        return r;
    sl_call_add(call, revocation->sub);
    sl_call_add(call, revocation->jti);
    sl_call_add(call, revocation->kid);
    sl_call_add(call, revocation->by);
    add_time(call, revocation->before_ms);
    add_time(call, revocation->until_ms);
    return sl_call_finish(call, reterr);
}

int sl_unrevoke_call(struct sl_call *call, const struct sl_meta *meta, struct sl_slice request_id,
                     uint64_t id, struct failure *reterr)
{
    int r = sl_write_begin(call, &sl_script_unrevoke, 0, meta, request_id, reterr);

    if (r < 0)
        return r;
    sl_call_add_id(call, id);
    return sl_call_finish(call, reterr);
}

/* --- list --- */

static int read_range(struct sl_call *call, const char *command, const char *from, const char *to,
                      size_t limit, struct failure *reterr)
{
    char key[SL_KEY_SIZE];

    sl_call_begin(call, 0, true);
    sl_call_add_str(call, command);
    sl_call_add_str(call, sl_key(0, "revocations", key));
    sl_call_add_str(call, from);
    sl_call_add_str(call, to);
    sl_call_add_str(call, "LIMIT");
    sl_call_add_str(call, "0");
    sl_call_add_id(call, limit);
    return sl_call_finish(call, reterr);
}

int sl_revocations_call(struct sl_call *call, uint64_t after, size_t limit, struct failure *reterr)
{
    char from[32];

    snprintf(from, sizeof(from), "(%" PRIu64, after);
    return read_range(call, "ZRANGEBYSCORE", from, "+inf", limit, reterr);
}

int sl_revocations_back_call(struct sl_call *call, uint64_t before, size_t limit,
                             struct failure *reterr)
{
    char from[32] = "+inf";

    if (before)
        snprintf(from, sizeof(from), "(%" PRIu64, before);
    return read_range(call, "ZREVRANGEBYSCORE", from, "-inf", limit, reterr);
}

int sl_revocations_reply(const struct redisReply *reply, size_t *ret_count, struct failure *reterr)
{
    int r = sl_reply_check_array(reply, 0, reterr);

    if (r == 0)
        *ret_count = reply->elements;
    return r;
}

struct sl_slice sl_revocations_json(const struct redisReply *reply, size_t i)
{
    return sl_reply_at(reply, i);
}

/* --- a single revocation --- */

static struct sl_slice text_at(const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);

    return json_is_string(value) ? sl_slice(json_string_value(value), json_string_length(value))
                                 : SL_SLICE_NONE;
}

static int read_time(const json_t *json, const char *name, uint64_t *ret_ms)
{
    struct sl_slice text = text_at(json, name);

    return text.data ? clock_parse_rfc3339(text, ret_ms) : 0;
}

int sl_revocation_parse(struct sl_slice json, struct sl_revocation *ret_revocation,
                        struct failure *reterr)
{
    struct sl_revocation found = {.id = 0};
    json_t *object = json_loadb(json.data ? json.data : "", json.size, 0, NULL);
    bool is_one;

    is_one = sl_id_parse(text_at(object, "id"), &found.id) == 0 &&
             read_time(object, "at", &found.at_ms) == 0 &&
             read_time(object, "before", &found.before_ms) == 0 &&
             read_time(object, "until", &found.until_ms) == 0 && found.until_ms > 0;
    found.sub = text_at(object, "sub");
    found.jti = text_at(object, "jti");
    found.kid = text_at(object, "kid");
    found.by = text_at(object, "by");
    found.json = (struct json_t *)object;
    if (is_one && (found.sub.data || found.jti.data || found.kid.data || found.before_ms)) {
        *ret_revocation = found;
        return 0;
    }
    json_decref(object);
    return failure_set(reterr, -EBADMSG, "this is no revocation");
}

void sl_revocation_done(struct sl_revocation *revocation)
{
    json_decref(revocation->json);
    revocation->json = NULL;
}

int sl_unrevocation_parse(struct sl_slice json, uint64_t *ret_id, struct failure *reterr)
{
    json_t *object = json_loadb(json.data ? json.data : "", json.size, 0, NULL);
    int r = sl_id_parse(text_at(object, "revocation"), ret_id);

    json_decref(object);
    return r < 0 ? failure_set(reterr, -EBADMSG, "it names no revocation") : 0;
}
