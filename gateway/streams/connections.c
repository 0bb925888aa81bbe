/* connections.c - answers questions about the connections of this worker.
 *
 * A question is answered by one walk over all streams, at about 0.1 us each; nothing is stored for
 * it. The asking side limits the number of questions (connection_request.c). An id contains the
 * index of its stream, so no walk is needed for it. */
#include "gateway/streams/connections.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "gateway/delivery/catch_up.h"
#include "gateway/delivery/outbox.h"
#include "gateway/delivery/rule_set.h"
#include "gateway/streams/kept_rules.h"
#include "gateway/streams/renewal.h"
#include "gateway/streams/stream.h"

/* --- a connection --- */

static uint64_t lag_ms(const struct channel *channel, uint64_t now_ms)
{
    const struct client *client = &channel->client;
    struct client_owed owed;
    uint64_t events, lag;

    if (client->catcher) {
        catch_up_distance(client->catcher, clock_wall_ms(), &events, &lag);
        return lag;
    }
    outbox_client_owed(client, now_ms, &owed);
    return owed.waited_ms;
}

static void add_channel(const struct channel *channel, uint64_t now_ms, struct control_row *row)
{
    uint64_t lag = lag_ms(channel, now_ms);

    row->streams += channel_is_opened(channel);
    row->filters +=
        channel->rules ? rule_set_count(channel->rules) : channel->request.filter != NULL;
    row->filter_bytes += channel->filters.bytes;
    row->events += channel->client.sent_events;
    row->bytes += channel->client.sent_bytes;
    if (lag > row->lag_ms)
        row->lag_ms = lag;
}

static void print_address(const struct wire *wire, char ret_text[static CONTROL_ADDRESS_SIZE])
{
    char room[WIRE_ADDRESS_SIZE];
    struct sl_slice address = wire_client_address(wire, room);

    ret_text[0] = '\0';
    if (address.size == 4 || address.size == 16)
        inet_ntop(address.size == 4 ? AF_INET : AF_INET6, address.data, ret_text,
                  CONTROL_ADDRESS_SIZE);
}

static void describe(const struct stream *stream, struct control_row *ret_row)
{
    const struct stream_request *request = &stream->own.request;
    uint64_t now_ms = uv_now(stream->streams->settings.loop);

    *ret_row = (struct control_row){
        .stream = request->stream,
        .format = request->format,
        .since_ms = clock_wall_ms() - (now_ms - stream->own.opened_ms),
        .expires_ms = request->token.expires_ms,
    };
    memcpy(ret_row->id, stream->connection_id, sizeof(ret_row->id));
    memcpy(ret_row->subject, request->token.subject, sizeof(ret_row->subject));
    print_address(&stream->wire, ret_row->address);
    if (request->path)
        snprintf(ret_row->path, sizeof(ret_row->path), "%s", request->path);
    LIST_EACH(&stream->channels, node)
    add_channel(LIST_OWNER(node, struct channel, node), now_ms, ret_row);
}

/* --- questions --- */

static bool is_asked_for(const struct stream *stream, const struct control_question *question)
{
    return stream_goes_on(stream) &&
           (!question->holder[0] ||
            strcmp(stream->own.request.token.holder, question->holder) == 0);
}

/* NULL: there is none, or the question is about another subject. */
static struct stream *find(const struct streams *streams, const struct control_question *question)
{
    uint32_t slot = connection_id_slot(question->id);
    struct stream *stream =
        slot < admission_size(streams->settings.admission) ? streams->by_ticket[slot] : NULL;

    if (!stream || strcmp(stream->connection_id, question->id) != 0 ||
        !is_asked_for(stream, question))
        return NULL;
    return stream;
}

/* Describing a stream costs more than looking at it, so only those that will stay on the page are
 * described. */
static void list(const struct stream *stream, const struct control_question *question,
                 struct control_answer *answer)
{
    bool is_full = answer->row_count == CONTROL_ROWS_MAX;
    struct control_row row;

    if (!answer->rows || strcmp(stream->connection_id, question->after) <= 0 ||
        (is_full && strcmp(stream->connection_id, answer->rows[CONTROL_ROWS_MAX - 1].id) > 0))
        return;
    describe(stream, &row);
    control_answer_add(answer, &row);
}

static void apply(struct stream *stream, const struct control_question *question,
                  struct control_answer *answer)
{
    answer->matched++;
    answer->result = CONTROL_DONE;
    switch (question->operation) {
    case CONTROL_LIST:
        list(stream, question, answer);
        break;
    case CONTROL_END:
        stream_evict(stream, DISCONNECT_ENDED);
        break;
    case CONTROL_RENEW:
        answer->result = stream_renew(stream, &question->token);
        break;
    case CONTROL_RULES: /* handled by the caller */
    case CONTROL_OPERATION_COUNT:
        break;
    }
}

void connections_answer(void *owner, const struct control_question *question,
                        struct control_answer *ret_answer)
{
    struct streams *streams = owner;

    if (question->operation == CONTROL_LIST && control_answer_make_room(ret_answer) < 0)
        ret_answer->workers = UINT16_MAX; /* more than exist: incomplete */
    if (question->operation == CONTROL_RULES) {
        ret_answer->result = CONTROL_DONE;
        ret_answer->matched = kept_rules_notify(streams, question->holder, question->version);
        return;
    }
    if (question->id[0]) {
        struct stream *stream = find(streams, question);

        if (stream)
            apply(stream, question, ret_answer);
        return;
    }
    LIST_EACH(&streams->list, node)
    {
        struct stream *stream = LIST_OWNER(node, struct stream, node);

        if (is_asked_for(stream, question))
            apply(stream, question, ret_answer);
    }
}
