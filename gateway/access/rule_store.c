/* rule_store.c - one Redis command for each request; all of them may be repeated.
 *
 * A change contains a random number, so that it takes effect once, however often it is sent. The
 * caller limits the number of outstanding requests (streams/rule_request.c). */
#include "gateway/access/rule_store.h"

#include <errno.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "gateway/front/stream_pass.h"
#include "gateway/redis/redis_commands.h"
#include "src/database/stream_rules.h"

struct rule_store {
    struct redis_commands *commands;
    uint32_t shards; /* 0: unknown */
};

struct question {
    rule_store_got_fn got; /* exactly one of `got` and `told` is set */
    rule_store_version_fn told;
    void *owner;
    bool is_change;
};

struct rule_store *rule_store_new(struct redis_commands *commands)
{
    struct rule_store *store = mem_zalloc(sizeof(*store));

    if (store)
        store->commands = commands;
    return store;
}

void rule_store_free(struct rule_store *store)
{
    mem_free(store);
}

void rule_store_set_shards(struct rule_store *store, uint32_t shards)
{
    store->shards = shards;
}

/* Rules that cannot be parsed are skipped: a newer program may have written them. */
static int read_rules(const redisReply *reply, struct subject_rules *rules, struct failure *failure)
{
    struct sl_slice text;
    size_t count;
    uint64_t id;
    int r = sl_rules_get_reply(reply, &rules->version, &count, failure);

    for (size_t i = 0; r == 0 && i < count; i++) {
        if (sl_rules_at(reply, i, &id, &text))
            r = subject_rules_add(rules, id, text);
        if (r == -EBADMSG)
            r = 0;
    }
    if (r == -ENOMEM)
        failure_set(failure, r, "out of memory");
    subject_rules_sort(rules);
    return r;
}

static void on_rules(const struct question *question, const redisReply *reply, const char *why)
{
    struct subject_rules rules = {.list = NULL};
    struct failure failure = {""};
    int r = reply ? read_rules(reply, &rules, &failure) : -EAGAIN;

    question->got(question->owner, r, &rules, why ? why : failure.text);
    subject_rules_done(&rules);
}

static void on_answer(void *owner, const redisReply *reply, const char *why)
{
    struct question question = *(struct question *)owner;
    struct failure failure = {""};
    uint64_t version = 0;
    int r = -EAGAIN;

    mem_free(owner);
    if (question.got) {
        on_rules(&question, reply, why);
        return;
    }
    if (reply)
        r = question.is_change ? sl_rules_change_reply(reply, &version, &failure)
                               : sl_rules_version_reply(reply, &version, &failure);
    question.told(question.owner, r, version, why ? why : failure.text);
}

/* `r` is the result of building the call. */
static int ask(struct rule_store *store, int r, struct sl_call *call, const struct question *asked)
{
    struct question *question = r == 0 ? mem_copy(asked, sizeof(*asked)) : NULL;

    if (!question) {
        sl_call_done(call);
        return r < 0 ? r : -ENOMEM;
    }
    r = redis_commands_run_take(store->commands, call, on_answer, question);
    if (r < 0)
        mem_free(question);
    return r == -ECANCELED ? -EAGAIN : r;
}

int rule_store_get(struct rule_store *store, struct sl_slice holder, rule_store_got_fn done,
                   void *owner)
{
    char name[STREAM_PASS_NAME_SIZE];
    struct sl_call call = SL_CALL_INIT;
    int r = store->shards ? stream_pass_hash(holder, name) : -EAGAIN;

    if (r == 0)
        r = sl_rules_get_call(&call, store->shards, name, NULL);
    return ask(store, r, &call, &(struct question){.got = done, .owner = owner});
}

int rule_store_look(struct rule_store *store, struct sl_slice holder, rule_store_version_fn done,
                    void *owner)
{
    char name[STREAM_PASS_NAME_SIZE];
    struct sl_call call = SL_CALL_INIT;
    int r = store->shards ? stream_pass_hash(holder, name) : -EAGAIN;

    if (r == 0)
        r = sl_rules_version_call(&call, store->shards, name, NULL);
    return ask(store, r, &call, &(struct question){.told = done, .owner = owner});
}

int rule_store_change(struct rule_store *store, struct sl_slice holder, uint64_t version,
                      const struct rules_change *change, rule_store_version_fn done, void *owner)
{
    const struct sl_rules_change sent = {.version = version,
                                         .by = hash_key_random().k0 >> 12,
                                         .removed = change->removed,
                                         .removed_count = change->removed_count,
                                         .added = change->added,
                                         .added_count = change->added_count};
    char name[STREAM_PASS_NAME_SIZE];
    struct sl_call call = SL_CALL_INIT;
    int r = store->shards ? stream_pass_hash(holder, name) : -EAGAIN;

    if (r == 0)
        r = sl_rules_change_call(&call, store->shards, name, &sent, NULL);
    return ask(store, r, &call,
               &(struct question){.told = done, .owner = owner, .is_change = true});
}
