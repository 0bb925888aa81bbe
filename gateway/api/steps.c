/* steps.c - sends the calls of steps to Redis and the archive, and continues with the next step.
 *
 * A request that was abandoned or answered exists until the last of its calls has returned. */
#include "gateway/api/engine.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "src/call/reply.h"

static void on_reply(void *owner, const redisReply *reply, const char *why)
{
    struct api_request *request = owner;
    struct failure failure;

    if (api_request_reap(request))
        return;
    if (reply)
        api_settle(request, request->next(request, reply));
    else
        api_settle(request, api_fail(request, failure_set(&failure, -EPIPE, "%s", why), &failure));
}

struct sl_meta api_meta(const struct api_request *request)
{
    return request->api->meta;
}

int api_send(struct api_request *request, int r, const struct failure *failure, api_step_fn next)
{
    if (r < 0)
        return api_fail(request, r, failure);
    request->next = next;
    if (redis_commands_run_take(request->api->settings.commands, &request->call, on_reply,
                                request) < 0)
        return api_fail_for_memory(request);
    return API_WAITS;
}

int api_send_only(struct api_request *request, int r, const struct failure *failure,
                  api_step_fn next)
{
    if (r == 0) {
        assert(request->calls.count == 1);
        sl_call_done(&request->call);
        request->call = request->calls.calls[0];
        request->calls.calls[0] = SL_CALL_INIT;
    }
    return api_send(request, r, failure, next);
}

/* --- several calls at once --- */

struct part {
    struct api_request *request;
    size_t number;
};

/* All replies are there. `request->refusal` contains the first refusal. */
static void finish_parts(struct api_request *request)
{
    if (api_request_reap(request))
        return;
    if (request->refusal.status)
        api_settle(request, -EPROTO);
    else
        api_settle(request, request->next(request, NULL));
}

static void on_part(void *owner, const redisReply *reply, const char *why)
{
    struct part *part = owner;
    struct api_request *request = part->request;
    struct failure failure;

    if (request->answered && !request->refusal.status) {
        if (reply)
            request->part(request, part->number, reply);
        else
            api_fail(request, failure_set(&failure, -EPIPE, "%s", why), &failure);
    }
    mem_free(part);
    if (--request->parts_left == 0)
        finish_parts(request);
}

static int send_part(struct api_request *request, struct sl_call *call, size_t number)
{
    struct part *part = mem_alloc(sizeof(*part));

    if (!part)
        return -ENOMEM;
    *part = (struct part){request, number};
    if (redis_commands_run_take(request->api->settings.commands, call, on_part, part) < 0) {
        mem_free(part);
        return -ENOMEM;
    }
    request->parts_left++;
    return 0;
}

int api_send_many(struct api_request *request, struct sl_call *calls, size_t count,
                  api_part_fn part, api_step_fn next)
{
    int r = 0;

    request->part = part;
    request->next = next;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = send_part(request, &calls[i], i);
    if (r < 0)
        r = api_fail_for_memory(request); /* what was sent must be waited for */
    if (request->parts_left > 0)
        return API_WAITS;
    return r < 0 ? r : next(request, NULL);
}

int api_send_all(struct api_request *request, int r, const struct failure *failure,
                 api_part_fn part, api_step_fn next)
{
    if (r < 0)
        return api_fail(request, r, failure);
    return api_send_many(request, request->calls.calls, request->calls.count, part, next);
}

int api_each_user(struct api_request *request, const struct sl_shard_calls *calls, size_t part,
                  const redisReply *reply, api_user_fn each)
{
    struct sl_user_row row;
    struct failure failure;
    const uint32_t *items;
    size_t count;
    int r;

    items = sl_shard_calls_items(calls, part, &count);
    r = sl_users_reply(reply, count, &failure);
    if (r < 0)
        return api_fail(request, r, &failure);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = sl_users_at(reply, i, &row, &failure);
        if (r < 0 && r != -ENOENT)
            return api_fail(request, r, &failure);
        r = each(request, items[i], r == 0 ? &row : NULL, &failure);
    }
    return r;
}

/* --- the archive --- */

bool api_has_archive(const struct api_request *request)
{
    return request->api->settings.archive;
}

/* -EAGAIN of the archive has another meaning than that of Redis. */
static int fail_for_archive(struct api_request *request, int r, const struct failure *failure)
{
    static const struct {
        int error, told;
    } rows[] = {{-ENOMEM, -ENOMEM},
                {-ECANCELED, -EAGAIN},
                {-EAGAIN, -EHOSTUNREACH},
                {-ENOENT, -EHOSTUNREACH},
                {-ESTALE, -EHOSTUNREACH}};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (rows[i].error == r)
            return api_fail(request, rows[i].told, failure);
    }
    return api_fail(request, -EIO, failure);
}

/* `r`: the result of a function of archive_reader.h. */
static int wait_for_archive(struct api_request *request, int r)
{
    struct failure failure;

    if (r == 0)
        return API_WAITS;
    failure_set(&failure, r, r == -ENOMEM ? "out of memory" : "too many wait for the archive");
    return fail_for_archive(request, r, &failure);
}

static void on_archived(void *owner, int r, struct sl_archive_page *page,
                        const struct failure *failure)
{
    struct api_request *request = owner;

    if (api_request_reap(request))
        return;
    if (r < 0) {
        api_settle(request, fail_for_archive(request, r, failure));
        return;
    }
    sl_archive_page_done(&request->archived);
    request->archived = *page;
    *page = SL_ARCHIVE_PAGE_INIT;
    api_settle(request, request->next(request, NULL));
}

int api_find_archived(struct api_request *request, const uint64_t *posts, size_t count,
                      api_step_fn next)
{
    request->next = next;
    return wait_for_archive(request, archive_reader_find(request->api->settings.archive, posts,
                                                         count, on_archived, request));
}

int api_try_archive(struct api_request *request, const redisReply *reply, api_step_fn next,
                    api_step_fn ask_again)
{
    if (!api_has_archive(request) || sl_reply_check(reply, NULL) != -ENOENT)
        return next(request, reply);
    return api_find_archived(request, &request->post, 1, ask_again);
}

int api_no_post(struct api_request *request)
{
    struct failure failure;
    int r = failure_set(&failure, -ENOENT, "there is no post %" PRIu64, request->post);

    return api_fail(request, r, &failure);
}

int api_list_archived(struct api_request *request, uint64_t user, uint64_t before, size_t limit,
                      api_step_fn next)
{
    request->next = next;
    return wait_for_archive(request, archive_reader_list(request->api->settings.archive, user,
                                                         before, limit, on_archived, request));
}

/* --- writes --- */

void api_say_replayed(struct api_request *request)
{
    buffer_append_str(&request->headers, "Idempotency-Replayed: true\r\n");
}

int api_take_written(struct api_request *request, const redisReply *reply)
{
    struct sl_written written;
    struct failure failure;
    int r;

    r = sl_write_reply(reply, &written, &failure);
    if (r < 0)
        return api_fail(request, r, &failure);
    request->id = written.id;
    if (written.is_repeated)
        api_say_replayed(request);
    return 0;
}

int api_answer_written(struct api_request *request, const redisReply *reply)
{
    int r = api_take_written(request, reply);

    return r < 0 ? r : api_answer(request, 204);
}
