/* sentinel_line.c - a session with a sentinel, and whether what arrives is the answer or an
 * announcement.
 *
 * The question for the master is sent as soon as the session is ready, and for a line that
 * listens together with the subscription, so that no change in between is missed. The session has
 * the timeouts for the answer and for later silence. Anything unexpected ends the line, with a
 * reason. */
#include "gateway/redis/sentinel_line.h"

#include <errno.h>
#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "base/failure.h"
#include "gateway/redis/redis_session.h"
#include "src/call/call.h"

/* Its commands are few and short. */
enum { UNSENT_MAX_BYTES = 64 * 1024 };

struct sentinel_line {
    struct sl_redis_address address;
    bool listens;
    struct sentinel_line_callbacks callbacks;
    void *context;
    struct redis_session *session;
    bool is_answered; /* what arrives now is an announcement */
};

static void lose(struct sentinel_line *line, const char *reason)
{
    redis_session_close(line->session);
    line->callbacks.on_lost(line->context, reason);
}

/* `r`: the result of building the call. */
static int send_call_take(struct sentinel_line *line, int r, struct sl_call *call)
{
    if (r == 0)
        r = redis_session_send_call(line->session, call);
    sl_call_done(call);
    return r;
}

static void on_ready(void *context)
{
    struct sentinel_line *line = context;
    struct sl_call call = SL_CALL_INIT;
    int r;

    line->is_answered = false;
    r = send_call_take(line, sl_sentinel_master_call(&call, line->address.master_name, NULL),
                       &call);
    if (r == 0 && line->listens)
        r = send_call_take(line, sl_sentinel_listen_call(&call, NULL), &call);
    if (r < 0)
        lose(line, "out of memory");
}

static void take_answer(struct sentinel_line *line, const redisReply *reply)
{
    struct sl_redis_endpoint master;
    struct failure failure;

    line->is_answered = true;
    if (sl_sentinel_master_reply(reply, &master, &failure) < 0) {
        lose(line, failure.text);
        return;
    }
    redis_session_settle(line->session, line->listens ? SENTINEL_LINE_PING_MS : 0);
    line->callbacks.on_answer(line->context, &master);
}

static void take_news(struct sentinel_line *line, const redisReply *reply)
{
    struct sl_sentinel_news news;
    struct failure failure;
    int r;

    r = sl_sentinel_news_reply(reply, line->address.master_name, &news, &failure);
    if (r == 0)
        line->callbacks.on_news(line->context, &news);
    else if (r != -ENOENT)
        lose(line, failure.text);
}

static void on_reply(void *context, const redisReply *reply)
{
    struct sentinel_line *line = context;

    if (line->is_answered)
        take_news(line, reply);
    else
        take_answer(line, reply);
}

static void on_lost(void *context, const char *reason)
{
    lose(context, reason);
}

void sentinel_line_open(struct sentinel_line *line, uint32_t number)
{
    redis_session_close(line->session);
    redis_session_set_endpoint(line->session, &line->address.sentinels[number]);
    redis_session_open(line->session);
}

void sentinel_line_close(struct sentinel_line *line)
{
    redis_session_close(line->session);
}

struct sentinel_line *sentinel_line_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                        bool listens, uint32_t answer_ms,
                                        const struct sentinel_line_callbacks *callbacks,
                                        void *context)
{
    static const struct redis_session_callbacks session_callbacks = {
        .on_ready = on_ready,
        .on_reply = on_reply,
        .on_lost = on_lost,
    };
    const struct redis_session_settings settings = {
        .loop = loop,
        .address = address,
        .is_sentinel = true,
        .connect_ms = answer_ms,
        .timeout_ms = answer_ms,
        .max_unsent_bytes = UNSENT_MAX_BYTES,
    };
    struct sentinel_line *line = mem_zalloc(sizeof(*line));

    if (!line)
        return NULL;
    line->address = *address;
    line->listens = listens;
    line->callbacks = *callbacks;
    line->context = context;
    line->session = redis_session_new(&settings, &session_callbacks, line);
    if (!line->session) {
        mem_free(line);
        return NULL;
    }
    return line;
}

void sentinel_line_free(struct sentinel_line *line)
{
    if (!line)
        return;
    redis_session_free(line->session);
    mem_free(line);
}
