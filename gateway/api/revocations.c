/* revocations.c - revokes tokens, lists revocations, and withdraws them.
 *
 * Times are relative to the clock of this server, because they are compared with times in tokens.
 * The answer to a new revocation is as in the list, so it is read back by its id. */
#include "src/database/revocations.h"

#include <errno.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "gateway/api/body.h"
#include "gateway/api/request.h"

/* --- creating --- */

static int on_read_back(struct api_request *request, const redisReply *reply)
{
    struct failure failure;
    size_t count = 0;
    int r = sl_revocations_reply(reply, &count, &failure);

    if (r == 0 && count == 0) { /* it was withdrawn meanwhile */
        failure_set(&failure, -ENOENT, "there is no revocation %" PRIu64, request->id);
        r = -ENOENT;
    }
    if (r < 0)
        return api_fail(request, r, &failure);
    buffer_append_slice(&request->json, sl_revocations_json(reply, 0));
    return api_answer(request, 201);
}

static void log_made(const struct api_request *request, const char *what, uint64_t id)
{
    char room[LOG_QUOTE_SIZE];

    log_info(what, "id=%" PRIu64 " by=%s", id, log_quote(sl_slice_str(request->subject), room));
}

static int on_made(struct api_request *request, const redisReply *reply)
{
    struct sl_written written;
    struct failure failure;
    int r = sl_write_reply(reply, &written, &failure);

    if (r == -EDQUOT)
        return api_refuse(request, 409, "too_many_revocations", NULL, "%s", failure.text);
    if (r < 0)
        return api_fail(request, r, &failure);
    request->id = written.id;
    if (written.is_repeated)
        api_say_replayed(request);
    log_made(request, "revocation_made", written.id);
    r = sl_revocations_call(&request->call, written.id - 1, 1, &failure);
    return api_send(request, r, &failure, on_read_back);
}

static int read_time(struct api_request *request, const char *member, struct sl_slice text,
                     uint64_t *ret_ms)
{
    struct failure failure;

    if (!text.data || sl_revocation_time(text, clock_wall_ms(), ret_ms, &failure) == 0)
        return 0;
    return api_refuse(request, 400, "bad_time", member, "%s: %s", member, failure.text);
}

int revocations_create(struct api_request *request, const redisReply *reply)
{
    struct sl_revocation revocation = {.by = sl_slice_str(request->subject)};
    struct sl_slice before = SL_SLICE_NONE, until = SL_SLICE_NONE;
    const struct api_member members[] = {
        {"sub", API_STRING, false, .ret_string = &revocation.sub},
        {"jti", API_STRING, false, .ret_string = &revocation.jti},
        {"kid", API_STRING, false, .ret_string = &revocation.kid},
        {"before", API_STRING, false, .ret_string = &before},
        {"until", API_STRING, false, .ret_string = &until},
    };
    const struct sl_meta meta = api_meta(request);
    const char *member = NULL;
    struct failure failure;
    int r;

    (void)reply;
    r = api_members_read(request->body, NULL, members, sizeof(members) / sizeof(members[0]),
                         &request->refusal);
    if (r == 0)
        r = read_time(request, "before", before, &revocation.before_ms);
    if (r == 0)
        r = read_time(request, "until", until, &revocation.until_ms);
    if (r < 0)
        return r;
    if (sl_revocation_check(&revocation, clock_wall_ms(), &member, &failure) < 0)
        return api_refuse(request, 400, "bad_revocation", member, "%s", failure.text);
    r = sl_revoke_call(&request->call, &meta, request->request_id, &revocation, &failure);
    return api_send(request, r, &failure, on_made);
}

/* --- the list --- */

/* Newest first. Expired revocations are skipped, so a page may have fewer than requested; `next` is
 * present whenever there was a row. */
static int on_list(struct api_request *request, const redisReply *reply)
{
    struct sl_revocation one = {.id = 0};
    struct failure failure;
    const char *comma = "";
    uint64_t next = 0;
    size_t count = 0;
    int r = sl_revocations_reply(reply, &count, &failure);

    if (r < 0)
        return api_fail(request, r, &failure);
    buffer_append_str(&request->json, "{\"items\":[");
    for (size_t i = 0; i < count; i++) {
        struct sl_slice json = sl_revocations_json(reply, i);

        if (sl_revocation_parse(json, &one, &failure) < 0)
            return api_fail(request, -EBADMSG, &failure);
        next = one.id;
        if (one.until_ms > clock_wall_ms()) {
            buffer_append_str(&request->json, comma);
            buffer_append_slice(&request->json, json);
            comma = ",";
        }
        sl_revocation_done(&one);
    }
    buffer_append_char(&request->json, ']');
    if (next)
        buffer_append_format(&request->json, ",\"next\":\"%" PRIu64 "\"", next);
    buffer_append_char(&request->json, '}');
    return api_answer(request, 200);
}

int revocations_list(struct api_request *request, const redisReply *reply)
{
    struct failure failure;
    int r;

    (void)reply;
    r = sl_revocations_back_call(&request->call, request->page.before, request->page.limit,
                                 &failure);
    return api_send(request, r, &failure, on_list);
}

/* --- withdrawing --- */

static int on_undone(struct api_request *request, const redisReply *reply)
{
    int r = api_take_written(request, reply);

    if (r < 0)
        return r;
    log_made(request, "revocation_taken_back", request->revocation);
    return api_answer(request, 204);
}

int revocations_delete(struct api_request *request, const redisReply *reply)
{
    const struct sl_meta meta = api_meta(request);
    struct failure failure;
    int r;

    (void)reply;
    r = sl_unrevoke_call(&request->call, &meta, request->request_id, request->revocation, &failure);
    return api_send(request, r, &failure, on_undone);
}
