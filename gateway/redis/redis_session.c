/* redis_session.c - a socket, a parser, a handshake and a timer.
 *
 *     closed -> connecting -> greeting -> ready
 *       ^           |            |          |
 *       +-----------+------------+----------+   closed by the owner, or lost
 *
 * The greeting (AUTH, SELECT, CLIENT SETNAME, as far as needed) is sent at once and costs one round
 * trip. Nothing else is sent before all of it is answered, so that a Redis that hangs gets nothing
 * that it might execute later.
 *
 * One timer serves for everything: the time to connect, then the time until the session is settled,
 * then the periods of silence; or for a failure to open, which is reported from the loop like all
 * others. Replies are parsed from pieces of 16 KiB (hiredis moves the rest of a piece after each
 * reply). A reply of more than 64 MiB is refused; Redis itself disconnects a subscriber with 32 MiB
 * of unsent data. */
#include "gateway/redis/redis_session.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/failure.h"
#include "gateway/redis/redis_socket.h"
#include "src/call/reply.h"

enum { REPLY_MAX_BYTES = 64 * 1024 * 1024 };

/* Periods without a byte. The third one counts only if the loop has run in between, so that a
 * process that was stopped reads what has arrived before it gives up. */
enum { SILENT_TICKS_ASK = 1, SILENT_TICKS_MAX = 3 };

enum { WORDS_MAX = 4, CONNECT_TRIES = 4 };

enum state { STATE_CLOSED, STATE_CONNECTING, STATE_GREETING, STATE_READY };

/* The part of the greeting that the next reply answers. */
enum greeting { GREETING_LOGIN, GREETING_DATABASE, GREETING_NAME, GREETING_DONE };

struct redis_session {
    uv_timer_t timer;
    struct sl_redis_address address;
    bool is_sentinel;
    const char *name;
    uint32_t connect_ms, timeout_ms;
    struct redis_session_callbacks callbacks;
    void *context;
    struct redis_socket *socket;
    redisReader *reader; /* of this connection or the last one */
    enum state state;
    enum greeting greeting;
    uint64_t openings; /* changes when it is opened or closed */
    bool pings;        /* settled, on a connection that has subscribed */
    unsigned silent_ticks;
    struct failure failure; /* why it was lost */
};

static const struct sl_redis_login *login_of(const struct redis_session *session)
{
    return session->is_sentinel ? &session->address.sentinel_login : &session->address.login;
}

/* ---- closing ---- */

void redis_session_close(struct redis_session *session)
{
    session->openings++;
    session->state = STATE_CLOSED;
    redis_socket_close(session->socket);
    if (!uv_is_closing((uv_handle_t *)&session->timer))
        uv_timer_stop(&session->timer);
}

static void lose(struct redis_session *session, const char *reason)
{
    if (reason != session->failure.text)
        failure_set(&session->failure, 0, "%s", reason);
    redis_session_close(session);
    session->callbacks.on_lost(session->context, session->failure.text);
}

/* ---- sending ---- */

int redis_session_send_call(struct redis_session *session, const struct sl_call *call)
{
    assert(session->state >= STATE_GREETING);
    return redis_socket_send(session->socket, call->argc, call->argv, call->argvlen);
}

int redis_session_send_words(struct redis_session *session, const char *const *words)
{
    size_t sizes[WORDS_MAX];
    int count = 0;

    assert(session->state >= STATE_GREETING);
    for (; words[count]; count++) {
        assert(count < WORDS_MAX);
        sizes[count] = strlen(words[count]);
    }
    return redis_socket_send(session->socket, count, words, sizes);
}

/* ---- the greeting ---- */

static bool has_to_say(const struct redis_session *session, enum greeting greeting)
{
    switch (greeting) {
    case GREETING_LOGIN:
        return login_of(session)->password[0] != '\0';
    case GREETING_DATABASE:
        return !session->is_sentinel && session->address.db > 0;
    case GREETING_NAME:
        return !session->is_sentinel;
    case GREETING_DONE:
        break;
    }
    return true;
}

static int say(struct redis_session *session, enum greeting greeting)
{
    const struct sl_redis_login *login = login_of(session);
    char db[sizeof("4294967295")];

    switch (greeting) {
    case GREETING_LOGIN:
        return redis_session_send_words(
            session, login->user[0] ? (const char *[]){"AUTH", login->user, login->password, NULL}
                                    : (const char *[]){"AUTH", login->password, NULL});
    case GREETING_DATABASE:
        snprintf(db, sizeof(db), "%u", session->address.db);
        return redis_session_send_words(session, (const char *[]){"SELECT", db, NULL});
    case GREETING_NAME:
        return redis_session_send_words(session,
                                        (const char *[]){"CLIENT", "SETNAME", session->name, NULL});
    case GREETING_DONE:
        break;
    }
    return 0;
}

/* Awaits the next part of the greeting for which something was sent. */
static void await_greeting(struct redis_session *session, enum greeting next)
{
    while (!has_to_say(session, next))
        next++;
    session->greeting = next;
    if (next != GREETING_DONE)
        return;
    session->state = STATE_READY;
    session->callbacks.on_ready(session->context);
}

/* A failure of CLIENT SETNAME is ignored, because the name only serves readers of CLIENT LIST. But
 * this may be the first answer, from a Redis that is about to close the connection because it has
 * too many clients. */
static bool is_welcome(struct redis_session *session, const redisReply *reply)
{
    return sl_reply_check(reply, &session->failure) == 0 ||
           (session->greeting == GREETING_NAME &&
            !strstr(session->failure.text, "max number of clients"));
}

static void take_greeting(struct redis_session *session, const redisReply *reply)
{
    if (is_welcome(session, reply))
        await_greeting(session, session->greeting + 1);
    else
        lose(session, session->failure.text);
}

/* ---- replies ---- */

/* The answer to the PING of on_period(), which has no text; those of the owner have one. */
static bool is_own_pong(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
           reply->element[0]->type == REDIS_REPLY_STRING &&
           sl_slice_is(sl_slice(reply->element[0]->str, reply->element[0]->len), "pong") &&
           reply->element[1]->type == REDIS_REPLY_STRING && reply->element[1]->len == 0;
}

bool redis_session_is_refused_ping(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR &&
           sl_slice_starts_with(sl_slice(reply->str, reply->len), SL_SLICE("MISCONF "));
}

static void take_reply(struct redis_session *session, const redisReply *reply)
{
    if (session->state == STATE_GREETING)
        take_greeting(session, reply);
    else if (!session->pings || !is_own_pong(reply))
        session->callbacks.on_reply(session->context, reply);
}

static void on_bytes(void *context, struct sl_slice bytes)
{
    struct redis_session *session = context;
    uint64_t openings = session->openings;
    void *reply = NULL;

    session->silent_ticks = 0;
    redisReaderFeed(session->reader, bytes.data, bytes.size);
    for (;;) {
        if (redisReaderGetReply(session->reader, &reply) != REDIS_OK) {
            lose(session, session->reader->errstr);
            return;
        }
        if (!reply)
            break;
        take_reply(session, reply);
        freeReplyObject(reply);
        if (session->openings != openings)
            return;
    }
    if (session->reader->len > REPLY_MAX_BYTES)
        lose(session, "Redis sent too long a message");
}

static void on_turn_end(void *context)
{
    struct redis_session *session = context;

    if (session->callbacks.on_turn_end)
        session->callbacks.on_turn_end(session->context);
}

static void on_lost(void *context, const char *reason)
{
    lose(context, reason);
}

/* ---- timers ---- */

static void on_timeout(uv_timer_t *timer)
{
    struct redis_session *session = timer->data;

    lose(session, session->state == STATE_CONNECTING ? redis_socket_why_not_open(session->socket)
                                                     : "Redis does not answer");
}

static void on_period(uv_timer_t *timer)
{
    struct redis_session *session = timer->data;

    session->silent_ticks++;
    if (session->silent_ticks >= SILENT_TICKS_MAX)
        lose(session, "Redis is silent");
    else if (session->silent_ticks == SILENT_TICKS_ASK)
        redis_session_send_words(session, (const char *[]){"PING", NULL});
}

void redis_session_rest(struct redis_session *session, uint32_t ms)
{
    redis_socket_rest(session->socket, ms);
}

void redis_session_settle(struct redis_session *session, uint32_t ping_ms)
{
    session->pings = ping_ms > 0;
    session->silent_ticks = 0;
    if (session->pings)
        uv_timer_start(&session->timer, on_period, ping_ms, ping_ms);
    else
        uv_timer_stop(&session->timer);
}

/* ---- opening ---- */

static void on_open(void *context)
{
    struct redis_session *session = context;

    session->state = STATE_GREETING;
    uv_timer_start(&session->timer, on_timeout, session->timeout_ms, 0);
    for (enum greeting part = 0; part < GREETING_DONE; part++) {
        if (has_to_say(session, part) && say(session, part) < 0) {
            lose(session, "out of memory");
            return;
        }
    }
    await_greeting(session, GREETING_LOGIN);
}

static void on_failed_opening(uv_timer_t *timer)
{
    struct redis_session *session = timer->data;

    lose(session, session->failure.text);
}

static void free_reader(struct redis_session *session)
{
    if (session->reader)
        redisReaderFree(session->reader);
    session->reader = NULL;
}

void redis_session_open(struct redis_session *session)
{
    int r = -ENOMEM;

    assert(session->state == STATE_CLOSED);
    session->openings++;
    session->state = STATE_CONNECTING;
    session->pings = false;
    free_reader(session);
    session->reader = redisReaderCreate();
    if (session->reader)
        r = redis_socket_open(session->socket);
    if (r < 0) {
        failure_set(&session->failure, 0, "%s", uv_strerror(r));
        uv_timer_start(&session->timer, on_failed_opening, 0, 0);
    } else {
        uv_timer_start(&session->timer, on_timeout, session->connect_ms, 0);
    }
}

void redis_session_set_endpoint(struct redis_session *session,
                                const struct sl_redis_endpoint *endpoint)
{
    redis_socket_set_endpoint(session->socket, endpoint);
    session->address.endpoint = *endpoint;
}

const struct sl_redis_endpoint *redis_session_endpoint(const struct redis_session *session)
{
    return &session->address.endpoint;
}

bool redis_session_is_open(const struct redis_session *session)
{
    return session->state != STATE_CLOSED;
}

bool redis_session_is_ready(const struct redis_session *session)
{
    return session->state == STATE_READY;
}

/* ---- creating and freeing ---- */

struct redis_session *redis_session_new(const struct redis_session_settings *settings,
                                        const struct redis_session_callbacks *callbacks,
                                        void *context)
{
    static const struct redis_socket_callbacks socket_callbacks = {
        .on_open = on_open,
        .on_bytes = on_bytes,
        .on_turn_end = on_turn_end,
        .on_lost = on_lost,
    };
    struct redis_session *session = mem_zalloc(sizeof(*session));

    if (!session)
        return NULL;
    session->socket = redis_socket_new(settings->loop, settings->address,
                                       settings->max_unsent_bytes, &socket_callbacks, session);
    if (!session->socket) {
        mem_free(session);
        return NULL;
    }
    session->address = *settings->address;
    session->is_sentinel = settings->is_sentinel;
    session->name = settings->name;
    session->connect_ms =
        settings->connect_ms > 0 ? settings->connect_ms : settings->timeout_ms / CONNECT_TRIES;
    session->timeout_ms = settings->timeout_ms;
    session->callbacks = *callbacks;
    session->context = context;
    uv_timer_init(settings->loop, &session->timer);
    session->timer.data = session;
    if (settings->endpoint)
        redis_session_set_endpoint(session, settings->endpoint);
    return session;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct redis_session *session = handle->data;

    redis_socket_free(session->socket);
    free_reader(session);
    explicit_bzero(&session->address, sizeof(session->address));
    mem_free(session);
}

/* The caller may be a callback of this session: what is on the stack exists until the next turn of
 * the loop. */
void redis_session_free(struct redis_session *session)
{
    if (!session)
        return;
    redis_session_close(session);
    uv_close((uv_handle_t *)&session->timer, on_timer_closed);
}
