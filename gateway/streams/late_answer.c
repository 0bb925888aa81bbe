/* late_answer.c - the list of answers in progress.
 *
 * late_answer_end() may be called from anywhere. The answer is sent and its memory freed at the end
 * of that turn, so that nothing is freed during a walk over clients. */
#include "gateway/streams/late_answer.h"

#include <errno.h>
#include <string.h>

int late_answer_check_room(const struct streams *streams, const struct late_answer_kind *kind,
                           const char *holder, struct http_refusal *refusal)
{
    unsigned own = 0, all = 0;

    LIST_EACH(&streams->late_answers, node)
    {
        const struct late_answer *answer = LIST_OWNER(node, struct late_answer, node);

        all += answer->kind == kind;
        own += answer->kind == kind && strcmp(answer->holder, holder) == 0;
    }
    if (own < kind->per_holder && all < kind->max)
        return 0;
    http_refuse(refusal, 429, kind->code, NULL,
                own < kind->per_holder ? "this server has too many %s in progress"
                                       : "this token's subject has too many %s in progress",
                kind->what);
    refusal->retry_after_s = HTTP_RETRY_AFTER_S;
    return -EPROTO;
}

static void refuse(const struct late_answer *answer)
{
    struct http_refusal refusal;

    http_refuse(&refusal, 503, "busy", NULL, "the log cannot be read now");
    refusal.retry_after_s = HTTP_RETRY_AFTER_S;
    http_answer_refusal(answer->connection, &refusal);
}

static void run_turn_end(struct turn_task *task)
{
    struct late_answer *answer = LIST_OWNER(task, struct late_answer, turn_end);
    struct buffer json = BUFFER_INIT;

    if (answer->is_there && answer->kind->print(answer, &json) == 0 && !json.failed)
        http_answer(answer->connection, &(struct http_answer){.status = 200,
                                                              .content_type = "application/json",
                                                              .body = buffer_slice(&json)});
    else
        refuse(answer);
    buffer_done(&json);
    answer->kind->done(answer);
}

void late_answer_init(struct late_answer *answer, const struct late_answer_kind *kind,
                      struct streams *streams, struct http_connection *connection,
                      const char *holder)
{
    answer->kind = kind;
    answer->streams = streams;
    answer->connection = connection;
    answer->holder = holder;
    answer->turn_end.run = run_turn_end;
    answer->moved_ms = uv_now(streams->settings.loop);
    list_append(&streams->late_answers, &answer->node);
}

void late_answer_done(struct late_answer *answer)
{
    turn_cancel(answer->streams->settings.turn, &answer->turn_end);
    list_remove(&answer->streams->late_answers, &answer->node);
}

static void on_abandoned(void *owner)
{
    struct late_answer *answer = owner;

    answer->kind->done(answer);
}

void late_answer_wait(struct late_answer *answer)
{
    http_answer_later(answer->connection, on_abandoned, answer);
}

void late_answer_end(struct late_answer *answer, bool is_there)
{
    answer->is_there = is_there;
    turn_schedule(answer->streams->settings.turn, &answer->turn_end);
}

void late_answers_check(struct streams *streams)
{
    const uint64_t now_ms = uv_now(streams->settings.loop);

    LIST_EACH(&streams->late_answers, node)
    {
        struct late_answer *answer = LIST_OWNER(node, struct late_answer, node);
        uint64_t progress = answer->kind->progress(answer);

        if (progress != answer->progress) {
            answer->progress = progress;
            answer->moved_ms = now_ms;
        } else if (now_ms - answer->moved_ms >= LATE_ANSWER_STALL_MS) {
            late_answer_end(answer, false);
        }
    }
}

void late_answers_end_all(struct streams *streams)
{
    LIST_EACH(&streams->late_answers, node)
    late_answer_end(LIST_OWNER(node, struct late_answer, node), false);
}
