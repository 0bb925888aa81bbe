#include "gateway/redis/sentinel_line.h"

#include <errno.h>
#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "base/failure.h"
#include "gateway/redis/redis_socket.h"
#include "src/call/call.h"
#include "src/call/reply.h"

/* The next reply is about... */
enum expected { EXPECTED_LOGIN, EXPECTED_MASTER, EXPECTED_NEWS };

struct sentinel_line {
    struct sl_redis_address address;
    bool listens;
    struct sentinel_line_callbacks callbacks;
    void *context;
    struct redis_socket *socket;
    redisReader *reader; /* of this connection or the last one */
    enum expected expected;
    uint64_t openings; /* changes when it is opened or closed */
};

static void send_command(struct sentinel_line *line, int argc, const char **argv,
                         const size_t *sizes)
{
    char *bytes;
    int size = redisFormatCommandArgv(&bytes, argc, argv, sizes);

    if (size < 0)
        return; /* the owner's time runs out */
    redis_socket_send(line->socket, sl_slice(bytes, (size_t)size));
    redisFreeCommand(bytes);
}

static void send_call_take(struct sentinel_line *line, int r, struct sl_call *call)
{
    if (r == 0)
        send_command(line, call->argc, call->argv, call->argvlen);
    sl_call_done(call);
}

static void on_open(void *context)
{
    struct sentinel_line *line = context;
    const struct sl_redis_login *login = &line->address.sentinel_login;
    const char *with_user[] = {"AUTH", login->user, login->password};
    const char *without[] = {"AUTH", login->password};
    struct sl_call call = SL_CALL_INIT;

    line->expected = login->password[0] ? EXPECTED_LOGIN : EXPECTED_MASTER;
    if (login->password[0] && login->user[0])
        send_command(line, 3, with_user, NULL);
    else if (login->password[0])
        send_command(line, 2, without, NULL);
    send_call_take(line, sl_sentinel_master_call(&call, line->address.master_name, NULL), &call);
    if (line->listens)
        send_call_take(line, sl_sentinel_listen_call(&call, NULL), &call);
}

static void lose(struct sentinel_line *line, const char *reason)
{
    sentinel_line_close(line);
    line->callbacks.on_lost(line->context, reason);
}

static bool is_pong(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
           reply->element[0]->type == REDIS_REPLY_STRING &&
           sl_slice_is(sl_slice(reply->element[0]->str, reply->element[0]->len), "pong");
}

static void take_news(struct sentinel_line *line, const redisReply *reply)
{
    struct sl_sentinel_news news;
    struct failure failure;
    int r;

    if (is_pong(reply)) {
        line->callbacks.on_pong(line->context);
        return;
    }
    r = sl_sentinel_news_reply(reply, line->address.master_name, &news, &failure);
    if (r == 0)
        line->callbacks.on_news(line->context, &news);
    else if (r != -ENOENT)
        lose(line, failure.text);
}

static void take_reply(struct sentinel_line *line, const redisReply *reply)
{
    struct sl_redis_place master;
    struct failure failure;

    switch (line->expected) {
    case EXPECTED_LOGIN:
        if (sl_reply_check(reply, &failure) < 0)
            lose(line, failure.text);
        line->expected = EXPECTED_MASTER;
        break;
    case EXPECTED_MASTER:
        line->expected = EXPECTED_NEWS;
        if (sl_sentinel_master_reply(reply, &master, &failure) < 0)
            lose(line, failure.text);
        else
            line->callbacks.on_answer(line->context, &master);
        break;
    case EXPECTED_NEWS:
        take_news(line, reply);
        break;
    }
}

static void on_bytes(void *context, struct sl_slice bytes)
{
    struct sentinel_line *line = context;
    uint64_t openings = line->openings;
    void *reply = NULL;

    redisReaderFeed(line->reader, bytes.data, bytes.size);
    while (line->openings == openings) {
        if (redisReaderGetReply(line->reader, &reply) != REDIS_OK) {
            lose(line, line->reader->errstr);
            return;
        }
        if (!reply)
            return;
        take_reply(line, reply);
        freeReplyObject(reply);
    }
}

static void on_turn_end(void *context)
{
    (void)context;
}

static void on_lost(void *context, const char *reason)
{
    lose(context, reason);
}

static void free_reader(struct sentinel_line *line)
{
    if (line->reader)
        redisReaderFree(line->reader);
    line->reader = NULL;
}

int sentinel_line_open(struct sentinel_line *line, uint32_t number)
{
    sentinel_line_close(line);
    free_reader(line);
    line->reader = redisReaderCreate();
    if (!line->reader)
        return -ENOMEM;
    redis_socket_set_place(line->socket, &line->address.sentinels[number]);
    return redis_socket_open(line->socket);
}

void sentinel_line_close(struct sentinel_line *line)
{
    line->openings++;
    redis_socket_close(line->socket);
}

void sentinel_line_ping(struct sentinel_line *line)
{
    const char *argv[] = {"PING"};

    send_command(line, 1, argv, NULL);
}

struct sentinel_line *sentinel_line_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                        bool listens,
                                        const struct sentinel_line_callbacks *callbacks,
                                        void *context)
{
    static const struct redis_socket_callbacks socket_callbacks = {
        .on_open = on_open,
        .on_bytes = on_bytes,
        .on_turn_end = on_turn_end,
        .on_lost = on_lost,
    };
    struct sentinel_line *line = mem_zalloc(sizeof(*line));

    if (!line)
        return NULL;
    line->address = *address;
    line->listens = listens;
    line->callbacks = *callbacks;
    line->context = context;
    line->socket = redis_socket_new(loop, address, &socket_callbacks, line);
    if (!line->socket) {
        mem_free(line);
        return NULL;
    }
    return line;
}

void sentinel_line_free(struct sentinel_line *line)
{
    if (!line)
        return;
    redis_socket_free(line->socket);
    free_reader(line);
    mem_free(line);
}
