/* pass_store.c - one Redis command for each request.
 *
 * If the reply is lost, reading may be repeated, and so may storing, because nobody else has the
 * secret. Taking is not repeated: it would be unknown who has taken the pass, so the ticket is
 * lost. */
#include "gateway/access/pass_store.h"

#include <errno.h>

#include "base/alloc.h"
#include "gateway/redis/redis_commands.h"

struct pass_store {
    struct redis_commands *commands;
    uint32_t shards; /* 0: unknown */
};

struct question {
    pass_store_fn done;
    void *owner;
    bool is_put;
};

struct pass_store *pass_store_new(struct redis_commands *commands)
{
    struct pass_store *store = mem_zalloc(sizeof(*store));

    if (store)
        store->commands = commands;
    return store;
}

void pass_store_free(struct pass_store *store)
{
    mem_free(store);
}

void pass_store_set_shards(struct pass_store *store, uint32_t shards)
{
    store->shards = shards;
}

static void on_answer(void *owner, const redisReply *reply, const char *why)
{
    struct question question = *(struct question *)owner;
    struct failure failure = {""};
    struct stream_pass pass;
    struct sl_slice text;
    int r;

    mem_free(owner);
    if (question.is_put)
        r = sl_pass_put_reply(reply, &failure);
    else
        r = sl_pass_reply(reply, &text, &failure);
    if (r == 0 && !question.is_put && stream_pass_read(text, &pass) < 0)
        r = failure_set(&failure, -EBADMSG, "the data stored for this ticket are invalid");
    question.done(question.owner, r, r == 0 && !question.is_put ? &pass : NULL,
                  why ? why : failure.text);
}

/* `r` is the result of building the call. */
static int ask(struct pass_store *store, int r, struct sl_call *call, bool is_put,
               pass_store_fn done, void *owner)
{
    struct question *question = r == 0 ? mem_alloc(sizeof(*question)) : NULL;

    if (!question) {
        sl_call_done(call);
        return r < 0 ? r : -ENOMEM;
    }
    *question = (struct question){done, owner, is_put};
    r = redis_commands_run_take(store->commands, call, on_answer, question);
    if (r < 0)
        mem_free(question);
    return r;
}

int pass_store_put(struct pass_store *store, enum sl_pass_kind kind, struct sl_slice secret,
                   const struct stream_pass *pass, uint64_t ttl_ms, pass_store_fn done, void *owner)
{
    char name[STREAM_PASS_NAME_SIZE];
    struct sl_call call = SL_CALL_INIT;
    struct buffer json = BUFFER_INIT;
    int r = store->shards ? stream_pass_name(secret, name) : -EAGAIN;

    if (r == 0)
        r = stream_pass_write(pass, &json);
    if (r == 0)
        r = sl_pass_put_call(&call, store->shards, kind, name, buffer_slice(&json), ttl_ms, NULL);
    buffer_done(&json);
    return ask(store, r, &call, true, done, owner);
}

int pass_store_look(struct pass_store *store, enum sl_pass_kind kind, struct sl_slice secret,
                    pass_store_fn done, void *owner)
{
    char name[STREAM_PASS_NAME_SIZE];
    struct sl_call call = SL_CALL_INIT;
    int r = store->shards ? stream_pass_name(secret, name) : -EAGAIN;

    if (r == 0)
        r = sl_pass_get_call(&call, store->shards, kind, name, NULL);
    return ask(store, r, &call, false, done, owner);
}

int pass_store_take(struct pass_store *store, enum sl_pass_kind kind, struct sl_slice secret,
                    pass_store_fn done, void *owner)
{
    char name[STREAM_PASS_NAME_SIZE];
    struct sl_call call = SL_CALL_INIT;
    int r = store->shards ? stream_pass_name(secret, name) : -EAGAIN;

    if (r == 0)
        r = sl_pass_take_call(&call, store->shards, kind, name, NULL);
    return ask(store, r, &call, false, done, owner);
}
