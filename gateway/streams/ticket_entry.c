/* ticket_entry.c - a request with a ticket: the ticket is looked up in Redis, the request is
 * checked, and only then is the ticket taken.
 *
 *     look up the ticket -> all checks of a stream -> take it -> (store a session) -> begin
 *           | none
 *           look up the session of the cookie -> all checks -> begin
 *
 * After the checks it counts as a stream, so that nothing it needs can be gone when the ticket has
 * been used up. The connection waits, and its head is kept. If the client closes it meanwhile, the
 * entry exists until Redis answers. Limits: TICKETS_WAITED_FOR_MAX on a worker, and the time limit
 * of commands. */
#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "gateway/access/pass_store.h"
#include "gateway/front/bearer.h"
#include "gateway/front/session_cookie.h"
#include "gateway/front/use_check.h"
#include "gateway/streams/stream.h"
#include "gateway/streams/ticket_wait.h"

struct ticket_entry {
    struct ticket_wait wait; /* must be the first member */
    enum stream_kind kind;
    struct buffer text; /* of the head */
    struct http_head head;
    struct sl_slice ticket; /* in the head */
    struct use_check use;   /* of the request, for its address */
    char address[WIRE_ADDRESS_SIZE];
    bool may_have_session;
    char session[STREAM_PASS_SECRET_SIZE]; /* the new one */
    bool is_open;                          /* `opening` is set */
    struct stream_opening opening;
};

static void entry_free(struct ticket_entry *entry)
{
    if (entry->is_open)
        stream_opening_undo(entry->wait.streams, &entry->opening);
    buffer_done(&entry->text);
    ticket_wait_done(&entry->wait);
    mem_free(entry);
}

static void refuse(struct ticket_entry *entry, const struct http_refusal *refusal)
{
    if (entry->is_open)
        stream_opening_undo(entry->wait.streams, &entry->opening);
    entry->is_open = false;
    ticket_wait_refuse(&entry->wait, refusal);
    entry_free(entry);
}

static void refuse_error(struct ticket_entry *entry, int r, struct http_refusal *refusal)
{
    if (r == -ENOMEM)
        stream_refuse_for_memory(refusal);
    refuse(entry, refusal);
}

static void refuse_ticket(struct ticket_entry *entry)
{
    struct http_refusal refusal;

    use_check_bad_token(&entry->use);
    stream_request_refuse_ticket(&refusal, "the ticket has been used, has expired, or is invalid");
    refuse(entry, &refusal);
}

static void refuse_for_redis(struct ticket_entry *entry, const char *message)
{
    struct http_refusal refusal;

    ticket_refuse_for_redis(&refusal, message);
    refuse(entry, &refusal);
}

/* --- beginning --- */

static void begin(struct ticket_entry *entry)
{
    struct streams *streams = entry->wait.streams;
    struct buffer rest = BUFFER_INIT, headers;
    struct http_refusal refusal;
    struct stream *stream;

    entry->is_open = false;
    stream = stream_opening_take(streams, &entry->opening, &refusal);
    if (!stream) {
        refuse(entry, &refusal);
        return;
    }
    headers = http_connection_take_headers(entry->wait.connection);
    http_take_over_late(entry->wait.connection, &stream->wire, &stream_wire_callbacks, &rest);
    stream_start(stream, &entry->head, buffer_slice(&headers));
    buffer_done(&headers);
    if (rest.size > 0)
        stream_wire_callbacks.received(&stream->wire, rest.data, rest.size);
    buffer_done(&rest);
    entry_free(entry);
}

/* --- a session --- */

static uint64_t session_ms(const struct ticket_entry *entry)
{
    uint64_t expires = entry->opening.request.token.expires_ms, now = clock_wall_ms();
    uint64_t left = expires > now ? expires - now : 0;

    return left < SESSION_MAX_MS ? left : SESSION_MAX_MS;
}

/* If storing fails, the stream begins without a session, and reconnecting needs a new ticket. */
static void on_session_put(void *owner, int r, const struct stream_pass *pass, const char *why)
{
    struct ticket_entry *entry = owner;
    struct stream_print print;

    (void)pass;
    (void)why;
    if (!entry->wait.connection) {
        entry_free(entry);
        return;
    }
    if (r == 0 && stream_request_print(entry->kind, entry->head.request.query, &print) == 0)
        session_cookie_append(&print, entry->session, session_ms(entry),
                              http_connection_headers(entry->wait.connection));
    begin(entry);
}

/* false: it gets none. */
static bool begin_session(struct ticket_entry *entry, const struct stream_pass *pass)
{
    struct streams *streams = entry->wait.streams;

    return entry->may_have_session && session_ms(entry) >= 1000 &&
           session_cookie_has_room(&entry->head.request, &pass->print) &&
           stream_pass_secret(entry->session) == 0 &&
           pass_store_put(streams->settings.passes, SL_PASS_SESSION, sl_slice_str(entry->session),
                          pass, session_ms(entry), on_session_put, entry) == 0;
}

/* --- checking and taking --- */

static void on_taken(void *owner, int r, const struct stream_pass *pass, const char *why)
{
    struct ticket_entry *entry = owner;

    (void)why;
    if (!entry->wait.connection)
        entry_free(entry);
    else if (r == -ENOENT)
        refuse_ticket(entry);
    else if (r < 0)
        refuse_for_redis(entry, "Redis did not answer: the ticket may have been used up");
    else if (!begin_session(entry, pass))
        begin(entry);
}

/* 0; 1: the request has been answered; -EPROTO: *refusal is set; -ENOMEM. */
static int check(struct ticket_entry *entry, const struct stream_pass *pass,
                 struct http_refusal *refusal)
{
    struct streams *streams = entry->wait.streams;
    const struct stream_times times = stream_times_now(streams);
    struct stream_request *request = &entry->opening.request;
    int r;

    r = stream_request_read_passed(streams->settings.front, entry->kind, &entry->head.request,
                                   &times, pass, request, refusal);
    if (r < 0)
        return r;
    if (request->format == FORMAT_SSE && stream_request_is_over(request)) {
        stream_request_done(request);
        http_answer(entry->wait.connection, &(struct http_answer){.status = 204});
        return 1;
    }
    r = stream_use_check(streams, entry->wait.connection, request,
                         http_connection_headers(entry->wait.connection), refusal);
    if (r < 0) {
        stream_request_done(request);
        return r;
    }
    r = stream_opening_check(streams, http_connection_wire(entry->wait.connection), &entry->opening,
                             refusal);
    entry->is_open = r == 0;
    return r;
}

static void on_session(void *owner, int r, const struct stream_pass *pass, const char *why)
{
    struct ticket_entry *entry = owner;
    struct http_refusal refusal;

    (void)why;
    if (!entry->wait.connection) {
        entry_free(entry);
        return;
    }
    if (r == -ENOENT) {
        refuse_ticket(entry);
        return;
    }
    if (r < 0) {
        refuse_for_redis(entry, "Redis does not answer now");
        return;
    }
    r = check(entry, pass, &refusal);
    if (r == 0)
        begin(entry);
    else if (r < 0)
        refuse_error(entry, r, &refusal);
    else
        entry_free(entry);
}

/* There is no such ticket. 0: the session is being looked up. */
static int look_for_session(struct ticket_entry *entry)
{
    struct streams *streams = entry->wait.streams;
    struct stream_print print;
    struct sl_slice secret;

    if (!entry->may_have_session ||
        stream_request_print(entry->kind, entry->head.request.query, &print) < 0)
        return -ENOENT;
    secret = session_cookie_find(&entry->head.request, &print);
    if (!stream_pass_is_secret(secret))
        return -ENOENT;
    return pass_store_look(streams->settings.passes, SL_PASS_SESSION, secret, on_session, entry);
}

static void take(struct ticket_entry *entry, const struct stream_pass *pass)
{
    struct pass_store *passes = entry->wait.streams->settings.passes;
    struct http_refusal refusal;
    int r = check(entry, pass, &refusal);

    if (r == 0)
        r = pass_store_take(passes, SL_PASS_TICKET, entry->ticket, on_taken, entry);
    if (r == -EAGAIN)
        refuse_for_redis(entry, "Redis does not answer now");
    else if (r < 0)
        refuse_error(entry, r, &refusal);
    else if (r > 0)
        entry_free(entry);
}

static void on_ticket(void *owner, int r, const struct stream_pass *pass, const char *why)
{
    struct ticket_entry *entry = owner;

    (void)why;
    if (!entry->wait.connection)
        entry_free(entry);
    else if (r == 0)
        take(entry, pass);
    else if (r != -ENOENT)
        refuse_for_redis(entry, "Redis does not answer now");
    else if (look_for_session(entry) < 0)
        refuse_ticket(entry);
}

/* --- the request --- */

/* Copies and parses the head, which otherwise points into the connection, and the address, for
 * counting invalid tickets. */
static int keep_head(struct ticket_entry *entry, const struct http_head *head,
                     struct http_refusal *refusal)
{
    struct sl_slice address = head->request.use->address;
    int r;

    entry->use = *head->request.use;
    if (address.size > 0)
        entry->use.address =
            sl_slice(memcpy(entry->address, address.data, address.size), address.size);
    buffer_append_slice(&entry->text, head->text);
    if (entry->text.failed)
        return -ENOMEM;
    r = http_head_read(buffer_slice(&entry->text), 0, &entry->head, refusal);
    if (r == 0)
        entry->ticket = stream_request_ticket(&entry->head.request);
    return r;
}

int streams_begin_with_ticket(struct streams *streams, struct http_connection *connection,
                              enum stream_kind kind, const struct http_head *head,
                              struct sl_slice ticket, bool may_have_session,
                              streams_refused_fn refused, struct http_refusal *refusal)
{
    struct ticket_entry *entry = NULL;
    int r = streams_check_readiness(streams, refusal);

    if (r < 0)
        return r;
    if (!stream_pass_is_secret(ticket)) {
        use_check_bad_token(head->request.use);
        return stream_request_refuse_ticket(refusal, "the ticket is not valid");
    }
    r = ticket_wait_check_room(streams, refusal);
    if (r < 0)
        return r;
    entry = mem_zalloc(sizeof(*entry));
    if (!entry)
        return stream_refuse_for_memory(refusal);
    ticket_wait_init(&entry->wait, streams, connection, refused);
    entry->kind = kind;
    entry->may_have_session = may_have_session && streams->settings.front->has_sessions;
    r = keep_head(entry, head, refusal);
    if (r == 0)
        r = pass_store_look(streams->settings.passes, SL_PASS_TICKET, entry->ticket, on_ticket,
                            entry);
    if (r == 0)
        ticket_wait_begin(&entry->wait);
    else
        entry_free(entry);
    if (r == -EAGAIN)
        return ticket_refuse_for_redis(refusal, "Redis is not reachable now");
    return r == -ENOMEM ? stream_refuse_for_memory(refusal) : r;
}
