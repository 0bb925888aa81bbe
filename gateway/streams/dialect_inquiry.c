/* dialect_inquiry.c - asks all workers one question after the other until the response is complete.
 *
 * A list is read page by page. Connections to be ended are ended one by one, page after page, or
 * all with one question. Each question takes at most CONTROL_ANSWER_MS, and a subject may have
 * INQUIRIES_MAX requests of this kind in progress on a worker. All ended connections are counted,
 * and the first DIALECT_CONNECTIONS_MAX of them are described. */
#include "gateway/streams/dialect_inquiry.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/access/control_channel.h"
#include "gateway/front/bearer.h"
#include "gateway/streams/connections.h"
#include "gateway/streams/stream.h"
#include "gateway/streams/streams.h"

enum { INQUIRIES_MAX = 4 };

_Static_assert((int)DIALECT_CONNECTION_ID_SIZE == (int)CONNECTION_ID_SIZE, "ids are ids");
_Static_assert((int)DIALECT_CONNECTIONS_MAX <= (int)CONTROL_ROWS_MAX, "a page has them");

struct inquiry {
    struct streams *streams;
    struct http_connection *connection;
    struct list_node node; /* in streams->inquiries */
    const struct dialect *dialect;
    const struct dialect_connections *how;
    dialect_refuse_late_fn refuse_late;
    char holder[TOKEN_SUBJECT_SIZE];
    struct dialect_inquiry asked;
    struct control_question question;
    struct control_wait *wait; /* NULL: not waiting for an answer */
    bool is_asking;            /* an answer may arrive before run() returns */
    bool is_answered;
    bool is_read; /* there are no more pages */
    char after[CONNECTION_ID_SIZE];
    char ids[CONTROL_ROWS_MAX][CONNECTION_ID_SIZE]; /* to be ended */
    unsigned id_count, next_id;
    struct control_row rows[DIALECT_CONNECTIONS_MAX]; /* to be described */
    struct dialect_connection told[DIALECT_CONNECTIONS_MAX];
    struct dialect_findings findings;
};

static void inquiry_free(struct inquiry *inquiry)
{
    list_remove(&inquiry->streams->inquiries, &inquiry->node);
    mem_free(inquiry);
}

static void on_abandoned(void *owner)
{
    struct inquiry *inquiry = owner;

    control_wait_forget(inquiry->wait);
    inquiry_free(inquiry);
}

/* --- findings -------------------------------------------------------------------------------- */

static void tell(struct inquiry *inquiry, const struct control_row *row, bool is_ended)
{
    struct dialect_findings *findings = &inquiry->findings;
    struct control_row *kept = &inquiry->rows[findings->count];

    if (findings->count == DIALECT_CONNECTIONS_MAX)
        return;
    *kept = *row;
    inquiry->told[findings->count++] = (struct dialect_connection){
        .id = kept->id,
        .path = kept->path[0] ? kept->path : stream_path_of(kept->stream),
        .address = kept->address,
        .since_ms = kept->since_ms,
        .is_ended = is_ended,
    };
}

static void tell_end(struct inquiry *inquiry, bool is_ended)
{
    struct control_row row = {.stream = STREAM_MANY};

    memcpy(row.id, inquiry->ids[inquiry->next_id++], sizeof(row.id));
    inquiry->findings.ended += is_ended;
    inquiry->findings.not_ended += !is_ended;
    tell(inquiry, &row, is_ended);
}

/* Skips texts that cannot be ids. */
static void skip_bad_ids(struct inquiry *inquiry)
{
    while (inquiry->next_id < inquiry->id_count &&
           !connection_id_is_valid(sl_slice_str(inquiry->ids[inquiry->next_id])))
        tell_end(inquiry, false);
}

static void take_row(struct inquiry *inquiry, const struct control_row *row)
{
    const char *path = row->path[0] ? row->path : stream_path_of(row->stream);

    memcpy(inquiry->after, row->id, sizeof(inquiry->after));
    if (!inquiry->asked.is_all && !inquiry->how->wants(&inquiry->asked, path))
        return;
    if (inquiry->asked.ends) {
        memcpy(inquiry->ids[inquiry->id_count++], row->id, sizeof(row->id));
    } else if (inquiry->findings.count < inquiry->asked.max) {
        tell(inquiry, row, false);
    } else {
        inquiry->findings.has_more = true;
        inquiry->is_read = true;
    }
}

static void take_page(struct inquiry *inquiry, const struct control_answer *answer)
{
    inquiry->id_count = inquiry->next_id = 0;
    for (size_t i = 0; i < answer->row_count && !inquiry->is_read; i++)
        take_row(inquiry, &answer->rows[i]);
    if (answer->row_count < CONTROL_ROWS_MAX)
        inquiry->is_read = true;
}

static void take(struct inquiry *inquiry, const struct control_answer *answer, bool is_complete)
{
    inquiry->findings.is_complete = inquiry->findings.is_complete && is_complete;
    if (inquiry->question.operation == CONTROL_LIST) {
        take_page(inquiry, answer);
    } else if (inquiry->question.id[0]) {
        tell_end(inquiry, answer->result == CONTROL_DONE && answer->matched > 0);
    } else {
        inquiry->findings.ended = answer->matched;
        inquiry->is_read = true;
    }
}

/* --- the next question ----------------------------------------------------------------------- */

static bool ask_for(struct inquiry *inquiry, enum control_operation operation, const char *id)
{
    struct control_question *question = &inquiry->question;

    *question = (struct control_question){.operation = operation};
    memcpy(question->holder, inquiry->holder, sizeof(question->holder));
    if (operation == CONTROL_LIST)
        memcpy(question->after, inquiry->after, sizeof(question->after));
    if (id)
        memcpy(question->id, id, sizeof(question->id));
    return true;
}

/* false: no question is left. */
static bool next_question(struct inquiry *inquiry)
{
    skip_bad_ids(inquiry);
    if (inquiry->next_id < inquiry->id_count)
        return ask_for(inquiry, CONTROL_END, inquiry->ids[inquiry->next_id]);
    if (inquiry->is_read)
        return false;
    if (inquiry->asked.ends && inquiry->asked.is_all)
        return ask_for(inquiry, CONTROL_END, NULL);
    return ask_for(inquiry, CONTROL_LIST, NULL);
}

/* --- asking ---------------------------------------------------------------------------------- */

static void refuse(struct inquiry *inquiry, int r)
{
    struct http_refusal refusal;

    http_refuse(&refusal, 503, r == -EBUSY ? "busy" : "no_memory", NULL, "%s",
                r == -EBUSY ? "this server has too many requests about connections in progress"
                            : "out of memory");
    refusal.retry_after_s = HTTP_RETRY_AFTER_S;
    inquiry->refuse_late(inquiry->connection, inquiry->dialect, &refusal);
}

static void finish(struct inquiry *inquiry)
{
    struct buffer body = BUFFER_INIT;

    inquiry->findings.connections = inquiry->told;
    if (inquiry->how->answer(&inquiry->asked, &inquiry->findings, &body) < 0 || body.failed)
        refuse(inquiry, -ENOMEM);
    else
        http_answer(inquiry->connection,
                    &(struct http_answer){.status = 200,
                                          .content_type = "application/json; charset=utf-8",
                                          .body = buffer_slice(&body)});
    buffer_done(&body);
    inquiry_free(inquiry);
}

static void run(struct inquiry *inquiry);

static void on_answered(void *owner, const struct control_answer *answer, bool is_complete)
{
    struct inquiry *inquiry = owner;

    inquiry->wait = NULL;
    inquiry->is_answered = true;
    take(inquiry, answer, is_complete);
    if (!inquiry->is_asking)
        run(inquiry);
}

/* Returns when it waits for an answer, or when the inquiry has ended. */
static void run(struct inquiry *inquiry)
{
    while (next_question(inquiry)) {
        struct control_wait *wait;
        int r;

        inquiry->is_asking = true;
        inquiry->is_answered = false;
        r = control_channel_ask(inquiry->streams->settings.control, &inquiry->question, on_answered,
                                inquiry, &wait);
        inquiry->is_asking = false;
        if (r < 0) {
            refuse(inquiry, r);
            inquiry_free(inquiry);
            return;
        }
        if (!inquiry->is_answered) {
            inquiry->wait = wait;
            return;
        }
    }
    finish(inquiry);
}

/* --- the request ----------------------------------------------------------------------------- */

static int check_room(const struct streams *streams, const char *holder,
                      struct http_refusal *refusal)
{
    unsigned own = 0;

    LIST_EACH(&streams->inquiries, node)
    own += strcmp(LIST_OWNER(node, struct inquiry, node)->holder, holder) == 0;
    return own < INQUIRIES_MAX ? 0 : connections_refuse_subject(refusal);
}

static int understand(struct streams *streams, const struct dialect_route *route,
                      const struct http_request *http, struct inquiry *inquiry,
                      struct http_refusal *refusal, enum token_fault *ret_fault)
{
    const struct dialect_request asking = {.http = http,
                                           .front = streams->settings.front,
                                           .times = {.now_ms = clock_wall_ms()},
                                           .fault = ret_fault};
    struct token token;
    int r = bearer_check(streams->settings.front->policy, http, SL_SLICE_NONE, asking.times.now_ms,
                         &token, refusal, ret_fault);

    if (r == 0)
        r = route->connections->read(&asking, &inquiry->asked, refusal);
    if (r == 0)
        r = connections_check_scope(&token, inquiry->asked.ends, refusal);
    if (r == 0)
        r = check_room(streams, token.holder, refusal);
    if (r < 0)
        return r;
    memcpy(inquiry->holder, token.holder, sizeof(inquiry->holder));
    return 0;
}

int dialect_inquiry_begin(struct streams *streams, struct http_connection *connection,
                          const struct dialect *dialect, const struct dialect_route *route,
                          const struct http_head *head, dialect_refuse_late_fn refuse_late,
                          struct http_refusal *refusal, enum token_fault *ret_fault)
{
    struct inquiry *inquiry = mem_zalloc(sizeof(*inquiry));
    int r =
        inquiry ? understand(streams, route, &head->request, inquiry, refusal, ret_fault) : -ENOMEM;

    if (r < 0) {
        mem_free(inquiry);
        return r == -ENOMEM ? http_refuse(refusal, 503, "no_memory", NULL, "out of memory") : r;
    }
    inquiry->streams = streams;
    inquiry->connection = connection;
    inquiry->dialect = dialect;
    inquiry->how = route->connections;
    inquiry->refuse_late = refuse_late;
    inquiry->findings.is_complete = true;
    memcpy(inquiry->after, inquiry->asked.after, sizeof(inquiry->after));
    memcpy(inquiry->ids, inquiry->asked.ids, sizeof(inquiry->asked.ids));
    inquiry->id_count = inquiry->asked.id_count;
    inquiry->is_read = inquiry->asked.ends ? inquiry->asked.id_count > 0 : inquiry->asked.max == 0;
    list_append(&streams->inquiries, &inquiry->node);
    http_answer_later(connection, on_abandoned, inquiry);
    run(inquiry);
    return 0;
}
