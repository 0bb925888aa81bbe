/* dialect_connection_query.c - asks all workers one question after the other until the response is
 * complete.
 *
 * A list is read page by page. Connections to be ended are ended one by one, page after page, or
 * all with one question. Each question takes at most CONTROL_ANSWER_MS, and a subject may have
 * CONNECTION_QUERIES_MAX requests of this kind in progress on a worker. All ended connections are
 * counted, and the first DIALECT_CONNECTIONS_MAX of them are described. */
#include "gateway/streams/dialect_connection_query.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/access/control_channel.h"
#include "gateway/front/bearer.h"
#include "gateway/streams/connections.h"
#include "gateway/streams/stream.h"
#include "gateway/streams/streams.h"

enum { CONNECTION_QUERIES_MAX = 4 };

_Static_assert((int)DIALECT_CONNECTION_ID_SIZE == (int)CONNECTION_ID_SIZE, "ids are ids");
_Static_assert((int)DIALECT_CONNECTIONS_MAX <= (int)CONTROL_ROWS_MAX, "a page has them");

struct query {
    struct streams *streams;
    struct http_connection *connection;
    struct list_node node; /* in streams->connection_queries */
    const struct dialect *dialect;
    const struct dialect_connections *how;
    dialect_refuse_late_fn refuse_late;
    char holder[TOKEN_SUBJECT_SIZE];
    struct dialect_connection_query asked;
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
    struct dialect_connection_result result;
};

static void query_free(struct query *query)
{
    list_remove(&query->streams->connection_queries, &query->node);
    mem_free(query);
}

static void on_abandoned(void *owner)
{
    struct query *query = owner;

    control_wait_forget(query->wait);
    query_free(query);
}

/* --- result -------------------------------------------------------------------------------- */

static void tell(struct query *query, const struct control_row *row, bool is_ended)
{
    struct dialect_connection_result *result = &query->result;
    struct control_row *kept = &query->rows[result->count];

    if (result->count == DIALECT_CONNECTIONS_MAX)
        return;
    *kept = *row;
    query->told[result->count++] = (struct dialect_connection){
        .id = kept->id,
        .path = kept->path[0] ? kept->path : stream_path_of(kept->stream),
        .address = kept->address,
        .since_ms = kept->since_ms,
        .is_ended = is_ended,
    };
}

static void tell_end(struct query *query, bool is_ended)
{
    struct control_row row = {.stream = STREAM_MANY};

    memcpy(row.id, query->ids[query->next_id++], sizeof(row.id));
    query->result.ended += is_ended;
    query->result.not_ended += !is_ended;
    tell(query, &row, is_ended);
}

/* Skips texts that cannot be ids. */
static void skip_bad_ids(struct query *query)
{
    while (query->next_id < query->id_count &&
           !connection_id_is_valid(sl_slice_str(query->ids[query->next_id])))
        tell_end(query, false);
}

static void take_row(struct query *query, const struct control_row *row)
{
    const char *path = row->path[0] ? row->path : stream_path_of(row->stream);

    memcpy(query->after, row->id, sizeof(query->after));
    if (!query->asked.is_all && !query->how->wants(&query->asked, path))
        return;
    if (query->asked.ends) {
        memcpy(query->ids[query->id_count++], row->id, sizeof(row->id));
    } else if (query->result.count < query->asked.max) {
        tell(query, row, false);
    } else {
        query->result.has_more = true;
        query->is_read = true;
    }
}

static void take_page(struct query *query, const struct control_answer *answer)
{
    query->id_count = query->next_id = 0;
    for (size_t i = 0; i < answer->row_count && !query->is_read; i++)
        take_row(query, &answer->rows[i]);
    if (answer->row_count < CONTROL_ROWS_MAX)
        query->is_read = true;
}

static void take(struct query *query, const struct control_answer *answer, bool is_complete)
{
    query->result.is_complete = query->result.is_complete && is_complete;
    if (query->question.operation == CONTROL_LIST) {
        take_page(query, answer);
    } else if (query->question.id[0]) {
        tell_end(query, answer->result == CONTROL_DONE && answer->matched > 0);
    } else {
        query->result.ended = answer->matched;
        query->is_read = true;
    }
}

/* --- the next question ----------------------------------------------------------------------- */

static bool ask_for(struct query *query, enum control_operation operation, const char *id)
{
    struct control_question *question = &query->question;

    *question = (struct control_question){.operation = operation};
    memcpy(question->holder, query->holder, sizeof(question->holder));
    if (operation == CONTROL_LIST)
        memcpy(question->after, query->after, sizeof(question->after));
    if (id)
        memcpy(question->id, id, sizeof(question->id));
    return true;
}

/* false: no question is left. */
static bool next_question(struct query *query)
{
    skip_bad_ids(query);
    if (query->next_id < query->id_count)
        return ask_for(query, CONTROL_END, query->ids[query->next_id]);
    if (query->is_read)
        return false;
    if (query->asked.ends && query->asked.is_all)
        return ask_for(query, CONTROL_END, NULL);
    return ask_for(query, CONTROL_LIST, NULL);
}

/* --- asking ---------------------------------------------------------------------------------- */

static void refuse(struct query *query, int r)
{
    struct http_refusal refusal;

    http_refuse(&refusal, 503, r == -EBUSY ? "busy" : "no_memory", NULL, "%s",
                r == -EBUSY ? "this server has too many requests about connections in progress"
                            : "out of memory");
    refusal.retry_after_s = HTTP_RETRY_AFTER_S;
    query->refuse_late(query->connection, query->dialect, &refusal);
}

static void finish(struct query *query)
{
    struct buffer body = BUFFER_INIT;

    query->result.connections = query->told;
    if (query->how->answer(&query->asked, &query->result, &body) < 0 || body.failed)
        refuse(query, -ENOMEM);
    else
        http_answer(query->connection,
                    &(struct http_answer){.status = 200,
                                          .content_type = "application/json; charset=utf-8",
                                          .body = buffer_slice(&body)});
    buffer_done(&body);
    query_free(query);
}

static void run(struct query *query);

static void on_answered(void *owner, const struct control_answer *answer, bool is_complete)
{
    struct query *query = owner;

    query->wait = NULL;
    query->is_answered = true;
    take(query, answer, is_complete);
    if (!query->is_asking)
        run(query);
}

/* Returns when it waits for an answer, or when the query has ended. */
static void run(struct query *query)
{
    while (next_question(query)) {
        struct control_wait *wait;
        int r;

        query->is_asking = true;
        query->is_answered = false;
        r = control_channel_ask(query->streams->settings.control, &query->question, on_answered,
                                query, &wait);
        query->is_asking = false;
        if (r < 0) {
            refuse(query, r);
            query_free(query);
            return;
        }
        if (!query->is_answered) {
            query->wait = wait;
            return;
        }
    }
    finish(query);
}

/* --- the request ----------------------------------------------------------------------------- */

static int check_room(const struct streams *streams, const char *holder,
                      struct http_refusal *refusal)
{
    unsigned own = 0;

    LIST_EACH(&streams->connection_queries, node)
    own += strcmp(LIST_OWNER(node, struct query, node)->holder, holder) == 0;
    return own < CONNECTION_QUERIES_MAX ? 0 : connections_refuse_subject(refusal);
}

static int understand(struct streams *streams, const struct dialect_route *route,
                      const struct http_request *http, struct query *query,
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
        r = route->connections->read(&asking, &query->asked, refusal);
    if (r == 0)
        r = connections_check_scope(&token, query->asked.ends, refusal);
    if (r == 0)
        r = check_room(streams, token.holder, refusal);
    if (r < 0)
        return r;
    memcpy(query->holder, token.holder, sizeof(query->holder));
    return 0;
}

int dialect_connection_query_begin(struct streams *streams, struct http_connection *connection,
                                   const struct dialect *dialect, const struct dialect_route *route,
                                   const struct http_head *head, dialect_refuse_late_fn refuse_late,
                                   struct http_refusal *refusal, enum token_fault *ret_fault)
{
    struct query *query = mem_zalloc(sizeof(*query));
    int r = query ? understand(streams, route, &head->request, query, refusal, ret_fault) : -ENOMEM;

    if (r < 0) {
        mem_free(query);
        return r == -ENOMEM ? http_refuse(refusal, 503, "no_memory", NULL, "out of memory") : r;
    }
    query->streams = streams;
    query->connection = connection;
    query->dialect = dialect;
    query->how = route->connections;
    query->refuse_late = refuse_late;
    query->result.is_complete = true;
    memcpy(query->after, query->asked.after, sizeof(query->after));
    memcpy(query->ids, query->asked.ids, sizeof(query->asked.ids));
    query->id_count = query->asked.id_count;
    query->is_read = query->asked.ends ? query->asked.id_count > 0 : query->asked.max == 0;
    list_append(&streams->connection_queries, &query->node);
    http_answer_later(connection, on_abandoned, query);
    run(query);
    return 0;
}
