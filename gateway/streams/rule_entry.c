/* rule_entry.c - a request for a stream whose filters are the kept rules of its subject.
 *
 *     parse the request -> read the rules from Redis -> all checks of a stream -> begin
 *
 * The connection waits, and its head is kept. If the client closes it meanwhile, the entry exists
 * until Redis answers. Limits: TICKETS_WAITED_FOR_MAX on a worker, shared with tickets, and the
 * time limit of commands.
 *
 * Calls in a circle with streams.c: streams.c begins such a stream like any other, and its checks
 * are needed when the rules have been read. */
#include <errno.h>

#include "base/alloc.h"
#include "gateway/access/rule_store.h"
#include "gateway/front/dialect.h"
#include "gateway/front/use_check.h"
#include "gateway/streams/kept_rules.h"
#include "gateway/streams/ticket_wait.h"

struct rule_entry {
    struct streams *streams;
    struct http_connection *connection; /* NULL: it has been closed */
    streams_refused_in_fn refused;
    struct buffer text; /* of the head */
    struct http_head head;
    struct stream_opening opening;
    bool has_request; /* `opening.request` is owned */
    struct rule_wait wait;
};

static void entry_free(struct rule_entry *entry)
{
    if (entry->has_request)
        stream_request_done(&entry->opening.request);
    buffer_done(&entry->text);
    entry->streams->tickets_waited_for--;
    list_remove(&entry->streams->rule_waits, &entry->wait.node);
    mem_free(entry);
}

static void refuse(struct rule_entry *entry, const struct dialect *dialect,
                   const struct http_refusal *refusal)
{
    if (entry->connection)
        entry->refused(entry->connection, dialect, refusal);
    entry_free(entry);
}

static void start(struct rule_entry *entry, struct stream *stream, struct kept_rules *kept,
                  const struct subject_rules *rules, const struct ready_rules *ready)
{
    struct buffer rest = BUFFER_INIT;
    struct buffer headers = http_connection_take_headers(entry->connection);

    http_take_over_late(entry->connection, &stream->wire, &stream_wire_callbacks, &rest);
    kept_rules_join(kept, stream);
    stream_start(stream, &entry->head, buffer_slice(&headers));
    buffer_done(&headers);
    buffer_done(&rest); /* data that a client sends after its request is never used */
    if (!stream_goes_on(stream))
        return;
    kept_rules_put(stream, rules, ready);
    deliver_rules_ready(&stream->own.client);
}

/* Makes all checks, and begins the stream. */
static int begin(struct rule_entry *entry, const struct subject_rules *rules,
                 struct http_refusal *refusal)
{
    struct streams *streams = entry->streams;
    struct kept_rules *kept = kept_rules_new();
    struct ready_rules ready;
    struct stream *stream;
    int r = kept ? 0 : -ENOMEM;

    entry->has_request = r < 0; /* a failed check frees it */
    if (r == 0)
        r = stream_opening_check(streams, http_connection_wire(entry->connection), &entry->opening,
                                 refusal);
    if (r < 0) {
        kept_rules_free(kept);
        return r;
    }
    r = ready_rules_read(streams, &entry->opening.request, rules, 0, true, &entry->opening.share,
                         &ready, refusal);
    if (r < 0) {
        stream_opening_undo(streams, &entry->opening);
        kept_rules_free(kept);
        return r;
    }
    stream = stream_opening_take(streams, &entry->opening, refusal);
    if (stream)
        start(entry, stream, kept, rules, &ready);
    else
        kept_rules_free(kept);
    ready_rules_done(&ready);
    return stream ? 0 : -EPROTO;
}

static void on_rules(void *owner, int r, struct subject_rules *rules, const char *why);

static int ask(struct rule_entry *entry)
{
    return rule_store_get(entry->streams->settings.rules,
                          sl_slice_str(entry->opening.request.token.holder), on_rules, entry);
}

/* The rules may be older than a version that has been reported as complete. */
static void on_rules(void *owner, int r, struct subject_rules *rules, const char *why)
{
    struct rule_entry *entry = owner;
    const struct dialect *dialect = entry->opening.request.dialect;
    struct http_refusal refusal;

    (void)why;
    if (!entry->connection) {
        entry_free(entry);
        return;
    }
    if (r == 0 && rules->version < entry->wait.version) {
        entry->wait.version = 0; /* only once: the database may have lost that version */
        r = ask(entry);
        if (r == 0)
            return;
    }
    if (r < 0 && r != -ENOMEM)
        r = ticket_refuse_for_redis(&refusal, "Redis does not answer now");
    if (r == 0)
        r = dialect->check_rules(rules, &refusal);
    if (r == 0)
        r = streams_check_readiness(entry->streams, &refusal);
    if (r == 0)
        r = begin(entry, rules, &refusal);
    if (r == -ENOMEM)
        stream_refuse_for_memory(&refusal);
    if (r < 0)
        refuse(entry, dialect, &refusal);
    else
        entry_free(entry);
}

static void on_abandoned(void *owner)
{
    ((struct rule_entry *)owner)->connection = NULL;
}

/* Copies and parses the head, which otherwise points into the connection. */
static int keep_head(struct rule_entry *entry, const struct http_head *head,
                     struct http_refusal *refusal)
{
    buffer_append_slice(&entry->text, head->text);
    if (entry->text.failed)
        return -ENOMEM;
    return http_head_read(buffer_slice(&entry->text), 0, &entry->head, refusal);
}

static int check(struct streams *streams, const struct stream_request *request,
                 const struct http_head *head, struct http_refusal *refusal)
{
    int r = streams_check_readiness(streams, refusal);

    if (r == 0 && !(request->token.scopes & TOKEN_SCOPE_FILTER)) {
        r = http_refuse(refusal, 403, "insufficient_scope", NULL,
                        "the token's scope does not cover this stream");
        refusal->www_authenticate = "Bearer error=\"insufficient_scope\", scope=\"stream:filter\"";
    }
    if (r == 0)
        r = ticket_wait_check_room(streams, refusal);
    return r < 0 ? r : stream_use_check_replay(head->request.use, request, refusal);
}

int rule_entry_begin(struct streams *streams, struct http_connection *connection,
                     struct stream_request *request, const struct http_head *head,
                     streams_refused_in_fn refused, struct http_refusal *refusal)
{
    struct rule_entry *entry = NULL;
    int r = check(streams, request, head, refusal);

    if (r == 0) {
        entry = mem_zalloc(sizeof(*entry));
        r = entry ? 0 : -ENOMEM;
    }
    if (r < 0) {
        stream_request_done(request);
        return r;
    }
    *entry = (struct rule_entry){.streams = streams,
                                 .connection = connection,
                                 .refused = refused,
                                 .opening = {.request = *request},
                                 .has_request = true};
    streams->tickets_waited_for++;
    entry->wait.holder = entry->opening.request.token.holder;
    list_append(&streams->rule_waits, &entry->wait.node);
    r = keep_head(entry, head, refusal);
    if (r == 0)
        r = ask(entry);
    if (r == 0) {
        http_answer_later(connection, on_abandoned, entry);
        return 0;
    }
    entry_free(entry);
    return r == -EAGAIN ? ticket_refuse_for_redis(refusal, "Redis does not answer now") : r;
}
