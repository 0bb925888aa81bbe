/* sentinels.c - asks one sentinel after the other, and stays subscribed to the one that answered.
 *
 * It begins with the one that knew the master last. Each has the timeout to connect and to answer.
 * Between calls, messages of the subscription are read without waiting. If the connection is lost
 * another sentinel is asked, at most every ASK_AGAIN_MS. There is one connection at a time. */
#include "src/redis/sentinels.h"

#include <errno.h>

#include <hiredis/hiredis.h>

#include "base/alloc.h"
#include "src/call/call.h"
#include "src/redis/redis_connection.h"
#include "src/redis/redis_dial.h"
#include "src/redis/sentinel.h"

enum { ASK_AGAIN_MS = 5000 };

struct sl_sentinels {
    const struct sl_redis_address *address;
    uint32_t timeout_ms;
    uint32_t known;                       /* index of the sentinel that knew the master last */
    struct sl_redis_connection *listened; /* subscribed connection; NULL: none */
    uint64_t ask_ms;                      /* without one: when to ask again */
    struct sl_redis_endpoint master;
};

struct sl_sentinels *sl_sentinels_new(const struct sl_redis_address *address, uint32_t timeout_ms)
{
    struct sl_sentinels *sentinels = mem_zalloc(sizeof(*sentinels));

    if (!sentinels)
        return NULL;
    sentinels->address = address;
    sentinels->timeout_ms = timeout_ms;
    return sentinels;
}

static void stop_listening(struct sl_sentinels *sentinels)
{
    sl_redis_connection_close(sentinels->listened);
    sentinels->listened = NULL;
    sentinels->ask_ms = 0;
}

void sl_sentinels_free(struct sl_sentinels *sentinels)
{
    if (!sentinels)
        return;
    stop_listening(sentinels);
    mem_free(sentinels);
}

/* ---- asking ---- */

static int append_take(struct sl_redis_connection *connection, int r, struct sl_call *call,
                       struct failure *reterr)
{
    if (r == 0)
        r = sl_redis_connection_append(connection, call->argc, call->argv, call->argvlen, reterr);
    sl_call_done(call);
    return r;
}

/* Subscribes and asks in one batch, so that no change after the answer is missed. */
static int ask_and_listen(struct sl_sentinels *sentinels, struct sl_redis_connection *connection,
                          struct failure *reterr)
{
    struct sl_call call = SL_CALL_INIT;
    redisReply *reply = NULL;
    int r;

    r = sl_sentinel_master_call(&call, sentinels->address->master_name, reterr);
    r = append_take(connection, r, &call, reterr);
    if (r == 0)
        r = append_take(connection, sl_sentinel_listen_call(&call, reterr), &call, reterr);
    if (r == 0)
        r = sl_redis_connection_read(connection, &reply, reterr);
    if (r == 0)
        r = sl_sentinel_master_reply(reply, &sentinels->master, reterr);
    freeReplyObject(reply);
    return r;
}

static int ask(struct sl_sentinels *sentinels, uint32_t number, struct failure *reterr)
{
    const struct sl_redis_address *address = sentinels->address;
    struct sl_redis_connection *connection = NULL;
    int r;

    r = sl_redis_dial(address, &address->sentinels[number], sentinels->timeout_ms,
                      sentinels->timeout_ms, &connection, reterr);
    if (r == 0)
        r = sl_redis_log_in(connection, &address->sentinel_login, reterr);
    if (r == 0)
        r = ask_and_listen(sentinels, connection, reterr);
    if (r < 0) {
        sl_redis_connection_close(connection);
        return r;
    }
    sl_redis_connection_keep_alive(connection); /* a dead peer is noticed eventually */
    sentinels->listened = connection;
    sentinels->known = number;
    return 0;
}

int sl_sentinels_find(struct sl_sentinels *sentinels, struct sl_redis_endpoint *ret_master,
                      struct failure *reterr)
{
    uint32_t count = sentinels->address->sentinel_count, first = sentinels->known;
    struct failure failure = {""};

    stop_listening(sentinels);
    for (uint32_t i = 0; i < count; i++) {
        if (ask(sentinels, (first + i) % count, &failure) == 0) {
            *ret_master = sentinels->master;
            return 0;
        }
    }
    return failure_set(reterr, -ECONNREFUSED, "no sentinel says which Redis is the master: %s",
                       failure.text);
}

/* ---- the subscription ---- */

static void listen_to_all(struct sl_sentinels *sentinels)
{
    struct sl_sentinel_news news;
    redisReply *reply;

    for (;;) {
        if (sl_redis_connection_poll(sentinels->listened, &reply, NULL) < 0) {
            stop_listening(sentinels);
            return;
        }
        if (!reply)
            return;
        if (sl_sentinel_news_reply(reply, sentinels->address->master_name, &news, NULL) == 0)
            sentinels->master = news.new_master;
        freeReplyObject(reply);
    }
}

bool sl_sentinels_have_moved(struct sl_sentinels *sentinels, uint64_t now_ms,
                             struct sl_redis_endpoint *ret_master)
{
    struct sl_redis_endpoint before = sentinels->master;

    if (sentinels->listened)
        listen_to_all(sentinels);
    if (!sentinels->listened && now_ms >= sentinels->ask_ms) {
        sl_sentinels_find(sentinels, &sentinels->master, NULL);
        sentinels->ask_ms = now_ms + ASK_AGAIN_MS;
    }
    *ret_master = sentinels->master;
    return !sl_redis_endpoint_equals(&before, &sentinels->master);
}
