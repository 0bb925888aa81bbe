#include "gateway/intake/master_finder.h"

#include <assert.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/failure.h"
#include "gateway/intake/redis_socket.h"
#include "src/reply.h"
#include "src/sentinel.h"

enum { SENTINEL_MS = 1000 };

struct master_finder {
    uv_timer_t timer; /* how long this sentinel may take */
    struct sl_redis_address address;
    master_found_fn found;
    void *context;
    struct redis_socket *socket;
    redisReader *reader; /* of this connection or the last one */
    uint32_t current;    /* which sentinel is asked */
    uint32_t failed;     /* in a row */
    bool expects_login;  /* the next reply is about the password */
};

static void ask(struct master_finder *finder);

static void pass_over(struct master_finder *finder, const char *why)
{
    char place[SL_REDIS_PLACE_TEXT_SIZE];
    struct failure failure;

    redis_socket_close(finder->socket);
    uv_timer_stop(&finder->timer);
    sl_redis_place_print(&finder->address.sentinels[finder->current], place, sizeof(place));
    finder->current = (finder->current + 1) % finder->address.sentinel_count;
    if (++finder->failed < finder->address.sentinel_count) {
        ask(finder);
        return;
    }
    failure_set(&failure, 0, "no sentinel says which Redis is the master; %s: %s", place, why);
    finder->found(finder->context, NULL, failure.text);
}

static void send_command(struct master_finder *finder, int argc, const char **argv,
                         const size_t *sizes)
{
    char *bytes;
    int size = redisFormatCommandArgv(&bytes, argc, argv, sizes);

    if (size < 0)
        return; /* the time runs out */
    redis_socket_send(finder->socket, sl_slice(bytes, (size_t)size));
    redisFreeCommand(bytes);
}

static void on_open(void *context)
{
    struct master_finder *finder = context;
    const struct sl_redis_login *login = &finder->address.sentinel_login;
    const char *with_user[] = {"AUTH", login->user, login->password};
    const char *without[] = {"AUTH", login->password};
    struct sl_call call = SL_CALL_INIT;

    finder->expects_login = login->password[0] != '\0';
    if (finder->expects_login && login->user[0])
        send_command(finder, 3, with_user, NULL);
    else if (finder->expects_login)
        send_command(finder, 2, without, NULL);
    if (sl_sentinel_master_call(&call, finder->address.master_name, NULL) == 0)
        send_command(finder, call.argc, call.argv, call.argvlen);
    sl_call_done(&call);
}

static void take_reply(struct master_finder *finder, const redisReply *reply)
{
    struct sl_redis_place place;
    struct failure failure;
    int r;

    if (finder->expects_login) {
        finder->expects_login = false;
        if (sl_reply_check(reply, &failure) < 0)
            pass_over(finder, failure.text);
        return;
    }
    r = sl_sentinel_master_reply(reply, &place, &failure);
    if (r < 0) {
        pass_over(finder, failure.text);
        return;
    }
    master_finder_stop(finder);
    finder->found(finder->context, &place, NULL);
}

static void on_bytes(void *context, struct sl_slice bytes)
{
    struct master_finder *finder = context;
    uint32_t failed = finder->failed;
    void *reply = NULL;

    redisReaderFeed(finder->reader, bytes.data, bytes.size);
    while (uv_is_active((uv_handle_t *)&finder->timer) && finder->failed == failed) {
        if (redisReaderGetReply(finder->reader, &reply) != REDIS_OK) {
            pass_over(finder, finder->reader->errstr);
            return;
        }
        if (!reply)
            return;
        take_reply(finder, reply);
        freeReplyObject(reply);
    }
}

static void on_turn_end(void *context)
{
    (void)context;
}

static void on_lost(void *context, const char *reason)
{
    pass_over(context, reason);
}

static void on_timeout(uv_timer_t *timer)
{
    pass_over(timer->data, "it does not answer");
}

static void ask(struct master_finder *finder)
{
    int r;

    if (finder->reader)
        redisReaderFree(finder->reader);
    finder->reader = redisReaderCreate();
    redis_socket_set_place(finder->socket, &finder->address.sentinels[finder->current]);
    r = finder->reader ? redis_socket_open(finder->socket) : UV_ENOMEM;
    uv_timer_start(&finder->timer, on_timeout, r < 0 ? 0 : SENTINEL_MS, 0);
}

void master_finder_start(struct master_finder *finder)
{
    redis_socket_close(finder->socket);
    finder->failed = 0;
    ask(finder);
}

void master_finder_stop(struct master_finder *finder)
{
    redis_socket_close(finder->socket);
    uv_timer_stop(&finder->timer);
}

struct master_finder *master_finder_new(uv_loop_t *loop, const struct sl_redis_address *address,
                                        master_found_fn found, void *context)
{
    static const struct redis_socket_callbacks callbacks = {
        .on_open = on_open,
        .on_bytes = on_bytes,
        .on_turn_end = on_turn_end,
        .on_lost = on_lost,
    };
    struct master_finder *finder = mem_zalloc(sizeof(*finder));

    if (!finder)
        return NULL;
    assert(address->sentinel_count > 0);
    finder->address = *address;
    finder->found = found;
    finder->context = context;
    finder->socket = redis_socket_new(loop, address, &callbacks, finder);
    if (!finder->socket) {
        mem_free(finder);
        return NULL;
    }
    uv_timer_init(loop, &finder->timer);
    finder->timer.data = finder;
    return finder;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct master_finder *finder = handle->data;

    redis_socket_free(finder->socket);
    if (finder->reader)
        redisReaderFree(finder->reader);
    mem_free(finder);
}

void master_finder_free(struct master_finder *finder)
{
    if (!finder)
        return;
    redis_socket_close(finder->socket);
    uv_close((uv_handle_t *)&finder->timer, on_timer_closed);
}
