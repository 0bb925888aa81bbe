/* user_check.c - one command at a time for each stream, in the order of its subscriptions.
 *
 * A question contains the logins of one filter, SL_FILTER_LOGINS_MAX at most. The questions of a
 * stream are in a list, of which the first one is outstanding. So a stream has one command in
 * flight and at most QUESTIONS_MAX questions in memory; further ones are dropped. If the stream
 * ends before the reply, the reply owns and frees the outstanding question. */
#include "gateway/streams/user_check.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "filters/filter.h"
#include "gateway/redis/redis_commands.h"
#include "src/social/users.h"

enum { QUESTIONS_MAX = 32, ID_SIZE = 65 };

struct user_checks {
    struct redis_commands *commands;
    uint32_t shards; /* 0: unknown */
};

struct user_question {
    struct list_node node;         /* in asking->list */
    struct user_questions *asking; /* NULL: the stream has ended */
    char id[ID_SIZE];              /* of the subscription; empty: none */
    size_t at, count;              /* logins[at] is being checked */
    struct sl_filter_login logins[SL_FILTER_LOGINS_MAX];
};

struct user_checks *user_checks_new(struct redis_commands *commands)
{
    struct user_checks *checks = mem_zalloc(sizeof(*checks));

    if (checks)
        checks->commands = commands;
    return checks;
}

void user_checks_free(struct user_checks *checks)
{
    mem_free(checks);
}

void user_checks_set_shards(struct user_checks *checks, uint32_t shards)
{
    checks->shards = shards;
}

void user_questions_init(struct user_questions *questions, struct user_checks *checks,
                         user_unknown_fn unknown, void *owner)
{
    questions->checks = checks;
    questions->unknown = unknown;
    questions->owner = owner;
    list_init(&questions->list);
}

static struct user_question *first_of(const struct user_questions *questions)
{
    struct list_node *node = list_first(&questions->list);

    return node ? LIST_OWNER(node, struct user_question, node) : NULL;
}

static void say_unknown(const struct user_question *question)
{
    const struct user_questions *questions = question->asking;

    questions->unknown(questions->owner, question->id, &question->logins[question->at]);
}

static void on_answer(void *owner, const redisReply *reply, const char *why);

/* 0: a reply will come; -ENOENT: not a valid login; other: not possible. */
static int ask(struct user_question *question)
{
    struct user_checks *checks = question->asking->checks;
    const struct sl_meta meta = {.shards = checks->shards};
    struct sl_user_ref user = sl_user_by_login(sl_slice_str(question->logins[question->at].text));
    struct sl_call call = SL_CALL_INIT;
    int r;

    if (checks->shards == 0)
        return -EAGAIN;
    r = sl_user_find_call(&call, &meta, &user, NULL);
    if (r < 0) {
        sl_call_done(&call);
        return r == -EINVAL ? -ENOENT : r;
    }
    return redis_commands_run_take(checks->commands, &call, on_answer, question);
}

/* true: a reply will come; false: no login is left. */
static bool ask_next(struct user_question *question)
{
    int r = -ENOENT;

    for (; question->at < question->count && r == -ENOENT; question->at++) {
        r = ask(question);
        if (r == 0)
            return true;
        if (r == -ENOENT)
            say_unknown(question);
    }
    return false;
}

static void go_on(struct user_questions *questions)
{
    struct user_question *question;

    while ((question = first_of(questions)) && !ask_next(question)) {
        list_remove(&questions->list, &question->node);
        mem_free(question);
    }
}

static void on_answer(void *owner, const redisReply *reply, const char *why)
{
    struct user_question *question = owner;
    struct sl_user user;

    (void)why;
    if (!question->asking) {
        mem_free(question);
        return;
    }
    if (reply && sl_user_find_reply(reply, &user, NULL) == -ENOENT)
        say_unknown(question);
    question->at = reply ? question->at + 1 : question->count; /* Redis is down */
    go_on(question->asking);
}

void user_questions_add(struct user_questions *questions, struct sl_slice id,
                        const struct sl_filter_warnings *warnings)
{
    bool is_first = list_is_empty(&questions->list);
    struct user_question *question;

    if (!questions->checks || warnings->login_count == 0 || questions->list.count == QUESTIONS_MAX)
        return;
    question = mem_zalloc(sizeof(*question));
    if (!question)
        return;
    question->asking = questions;
    question->count = warnings->login_count;
    memcpy(question->logins, warnings->logins, sizeof(question->logins));
    if (id.data && id.size < ID_SIZE)
        memcpy(question->id, id.data, id.size);
    list_append(&questions->list, &question->node);
    if (is_first)
        go_on(questions);
}

void user_questions_forget(struct user_questions *questions)
{
    struct user_question *question;
    bool is_asked = true; /* the first one has been sent */

    while ((question = first_of(questions))) {
        list_remove(&questions->list, &question->node);
        question->asking = NULL;
        if (!is_asked)
            mem_free(question);
        is_asked = false;
    }
}
