/* control_wait.c - outstanding questions, from asking until all workers have answered or the time
 * is over.
 *
 * Redis returns the number of workers that received the question, and each of them answers for
 * itself. An answer also contains the number of workers of its gateway, so a worker that has lost
 * Redis is noticed as long as another worker of its gateway is subscribed. A gateway of which no
 * worker is subscribed is not noticed, and its connections cannot be ended through Redis. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "gateway/access/control_channel_parts.h"
#include "gateway/redis/redis_commands.h"
#include "src/call/call_build.h"

enum {
    GATEWAYS_MAX = 256, /* with more gateways, answers are always incomplete */
    GATEWAY_DIGITS = 8
};

/* A gateway that has answered. */
struct answered_gateway {
    char digits[GATEWAY_DIGITS];
    uint16_t workers, answers;
};

struct control_wait {
    struct control_channel *channel;
    struct deadline deadline;
    control_answered_fn answered; /* NULL: already called, or not wanted */
    void *owner;
    struct control_answer sum;
    bool is_of_one;     /* only one worker is asked */
    bool is_publishing; /* the reply to PUBLISH is outstanding */
    bool is_told;       /* `told`, the number of workers that received the question, is known */
    uint64_t told, answers;
    unsigned gateway_count;
    bool has_too_many;
    struct answered_gateway gateways[GATEWAYS_MAX];
};

static void free_wait(struct control_wait *wait)
{
    struct control_channel *channel = wait->channel;

    deadline_list_remove(&channel->waits, &wait->deadline);
    control_answer_done(&wait->sum);
    mem_free(wait);
    channel->wait_count--;
    control_channel_release(channel);
}

void control_channel_release(struct control_channel *channel)
{
    if (channel->is_freed && channel->closing == 0 && channel->wait_count == 0)
        mem_free(channel);
}

/* --- publishing ---------------------------------------------------------------------------- */

int control_publish(struct control_channel *channel, const char *name, struct buffer *message,
                    void (*done)(void *owner, const redisReply *reply, const char *why),
                    void *owner)
{
    struct sl_call call = SL_CALL_INIT;
    int r = message->failed || channel->is_freed ? -ENOMEM : 0;

    if (r == 0) {
        sl_call_begin(&call, 0, false);
        sl_call_add_str(&call, control_channel_is_clustered(channel) ? "SPUBLISH" : "PUBLISH");
        sl_call_add_str(&call, name);
        sl_call_add(&call, buffer_slice(message));
        r = sl_call_finish(&call, NULL);
    }
    if (r == 0)
        r = redis_commands_run_take(channel->settings.commands, &call, done, owner);
    else
        sl_call_done(&call);
    buffer_done(message);
    return r;
}

/* --- who has answered ---------------------------------------------------------------------- */

static struct answered_gateway *gateway_of(struct control_wait *wait, const char *from)
{
    struct answered_gateway *gateway;

    for (unsigned i = 0; i < wait->gateway_count; i++) {
        if (memcmp(wait->gateways[i].digits, from, GATEWAY_DIGITS) == 0)
            return &wait->gateways[i];
    }
    if (wait->gateway_count == GATEWAYS_MAX)
        return NULL;
    gateway = &wait->gateways[wait->gateway_count++];
    memcpy(gateway->digits, from, GATEWAY_DIGITS);
    return gateway;
}

static void note_gateway(struct control_wait *wait, const struct control_answer *answer)
{
    struct answered_gateway *gateway = gateway_of(wait, answer->from);

    if (!gateway) {
        wait->has_too_many = true;
        return;
    }
    gateway->answers++;
    gateway->workers = answer->workers <= UINT16_MAX ? (uint16_t)answer->workers : 0;
}

static bool has_all_workers(const struct control_wait *wait)
{
    for (unsigned i = 0; i < wait->gateway_count; i++) {
        if (wait->gateways[i].answers < wait->gateways[i].workers)
            return false;
    }
    return !wait->has_too_many;
}

static void add_up(struct control_wait *wait, const struct control_answer *answer)
{
    struct control_answer *sum = &wait->sum;

    note_gateway(wait, answer);
    sum->matched += answer->matched;
    if (answer->result != CONTROL_NO_SUCH_CONNECTION)
        sum->result = answer->result;
    for (size_t i = 0; i < answer->row_count; i++)
        control_answer_add(sum, &answer->rows[i]);
}

/* --- the end ------------------------------------------------------------------------------- */

static bool has_all_answers(const struct control_wait *wait)
{
    return wait->is_told && wait->answers >= wait->told;
}

static void finish(struct control_wait *wait)
{
    control_answered_fn answered = wait->answered;
    bool is_complete = has_all_answers(wait) && (wait->is_of_one || has_all_workers(wait)) &&
                       (wait->is_of_one || wait->told > 0);

    deadline_list_remove(&wait->channel->waits, &wait->deadline);
    wait->answered = NULL;
    if (answered)
        answered(wait->owner, &wait->sum, is_complete);
    if (!wait->is_publishing)
        free_wait(wait);
}

void control_wait_forget(struct control_wait *wait)
{
    if (!wait)
        return;
    wait->answered = NULL;
    finish(wait);
}

/* Finishes if no more answers can come: without the subscription none arrive. */
static void go_on(struct control_wait *wait)
{
    if (wait->answered && !wait->is_publishing &&
        (has_all_answers(wait) || !wait->is_told || !wait->channel->is_hearing))
        finish(wait);
}

static void on_published(void *owner, const redisReply *reply, const char *why)
{
    struct control_wait *wait = owner;

    (void)why;
    wait->is_publishing = false;
    wait->is_told = reply && reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0;
    wait->told = wait->is_told ? (uint64_t)reply->integer : 0;
    if (wait->answered)
        go_on(wait);
    else
        free_wait(wait);
}

/* --- answers ------------------------------------------------------------------------------- */

static struct control_wait *find(struct control_channel *channel, uint64_t number)
{
    LIST_EACH(&channel->waits.list, node)
    {
        struct control_wait *wait =
            DEADLINE_OWNER(LIST_OWNER(node, struct deadline, node), struct control_wait, deadline);

        if (wait->sum.number == number)
            return wait;
    }
    return NULL;
}

static void arm(struct control_channel *channel);

static void on_timer(uv_timer_t *timer)
{
    control_waits_check(timer->data);
}

static void arm(struct control_channel *channel)
{
    uint64_t due = deadline_list_next_due_ms(&channel->waits), now = uv_now(channel->settings.loop);

    if (due != UINT64_MAX && !channel->is_freed)
        uv_timer_start(&channel->timer, on_timer, due > now ? due - now : 0, 0);
}

void control_waits_check(struct control_channel *channel)
{
    uint64_t now = uv_now(channel->settings.loop);
    struct deadline *due;

    while ((due = deadline_list_take_due(&channel->waits, now)) != NULL)
        finish(DEADLINE_OWNER(due, struct control_wait, deadline));
    arm(channel);
}

void control_waits_end_all(struct control_channel *channel)
{
    struct deadline *first;

    while ((first = deadline_list_first(&channel->waits)) != NULL)
        finish(DEADLINE_OWNER(first, struct control_wait, deadline));
}

void control_waits_take(struct control_channel *channel, const struct control_answer *answer)
{
    struct control_wait *wait = find(channel, answer->number);

    if (!wait)
        return; /* it is too late */
    wait->answers++;
    add_up(wait, answer);
    go_on(wait);
}

void control_waits_heard_own(struct control_channel *channel, uint64_t number)
{
    struct control_wait *wait = find(channel, number);

    if (!wait)
        return;
    wait->answers++;
    go_on(wait);
}

/* --- questions ----------------------------------------------------------------------------- */

void control_answer_own(struct control_channel *channel, const struct control_question *question,
                        struct control_answer *ret_answer)
{
    *ret_answer = (struct control_answer){
        .number = question->number,
        .workers = channel->is_draining ? 0 : channel->settings.workers,
        .result = CONTROL_NO_SUCH_CONNECTION,
    };
    memcpy(ret_answer->from, channel->name, sizeof(ret_answer->from));
    if (channel->asked)
        channel->asked(channel->context, question, ret_answer);
}

static int ask_others(struct control_wait *wait, const struct control_question *question,
                      const char *name)
{
    struct buffer message = BUFFER_INIT;
    int r;

    control_question_print(question, &message);
    wait->is_publishing = true;
    r = control_publish(wait->channel, name, &message, on_published, wait);
    if (r < 0)
        wait->is_publishing = false;
    return r;
}

static void answer_own(struct control_wait *wait, const struct control_question *question)
{
    struct control_answer own;

    control_answer_own(wait->channel, question, &own);
    add_up(wait, &own);
    control_answer_done(&own);
}

/* NULL: out of memory. */
static struct control_wait *wait_new(struct control_channel *channel, control_answered_fn answered,
                                     void *owner)
{
    struct control_wait *wait = mem_zalloc(sizeof(*wait));

    if (!wait)
        return NULL;
    wait->channel = channel;
    wait->answered = answered;
    wait->owner = owner;
    wait->sum.result = CONTROL_NO_SUCH_CONNECTION;
    if (control_answer_make_room(&wait->sum) < 0) {
        mem_free(wait);
        return NULL;
    }
    channel->wait_count++;
    deadline_list_add(&channel->waits, &wait->deadline, uv_now(channel->settings.loop));
    return wait;
}

int control_channel_ask(struct control_channel *channel, struct control_question *question,
                        control_answered_fn answered, void *owner, struct control_wait **ret_wait)
{
    char worker[WORKER_NAME_SIZE], name[SL_KEY_SIZE], suffix[sizeof("control:") + WORKER_NAME_SIZE];
    struct control_wait *wait;
    int r = 0;

    *ret_wait = NULL;
    if (channel->wait_count >= CONTROL_QUESTIONS_MAX)
        return -EBUSY;
    wait = wait_new(channel, answered, owner);
    if (!wait)
        return -ENOMEM;
    question->number = wait->sum.number = ++channel->numbers;
    memcpy(question->from, channel->name, sizeof(question->from));
    wait->is_of_one = question->id[0] != '\0';
    if (wait->is_of_one)
        connection_id_worker(question->id, worker);
    if (!wait->is_of_one || strcmp(worker, channel->name) == 0)
        answer_own(wait, question);
    if (wait->is_of_one && strcmp(worker, channel->name) == 0) {
        wait->is_told = true;
    } else {
        snprintf(suffix, sizeof(suffix), "control%s%s", wait->is_of_one ? ":" : "",
                 wait->is_of_one ? worker : "");
        r = ask_others(wait, question, sl_key(0, suffix, name));
    }
    if (r < 0 && wait->is_of_one) {
        wait->answered = NULL;
        finish(wait);
        return r;
    }
    if (wait->is_publishing) {
        *ret_wait = wait;
        arm(channel);
        return 0;
    }
    finish(wait);
    return 0;
}
