/* trend_source.c - trends are computed once, however many clients ask, and in whatever format.
 *
 * A source is a lane that counts, with a single client of our own, which accepts everything and
 * sends nothing. That client reads the past from the log, counts again what was wrong, and stays
 * with the lane. The results are owed to the outlets: lanes of the clients that ask, one for each
 * stream format. Live clients there have no counter. A client that resumes from a cursor or a time
 * has its own counter until it has reached the source.
 *
 * So a source, and each of those clients, uses the memory of trends (counts/trends.h) for each kind
 * of term; there are at most TREND_SKETCHES_MAX of these. A source without a filter continues when
 * it has no more clients, until others need the room. */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "gateway/delivery/deliver_parts.h"

struct trend_source {
    struct client client; /* must be the first member */
    struct lane *lane;
    struct list_node node; /* in deliver->trend_sources, recently used ones last */
    bool has_failed;       /* gets no more outlets */
};

/* --- the client without a connection --- */

static ssize_t take(struct client *client, const struct iovec *pieces, int count)
{
    ssize_t size = 0;

    (void)client;
    for (int i = 0; i < count; i++)
        size += (ssize_t)pieces[i].iov_len;
    return size;
}

static int hold(struct client *client, const struct iovec *pieces, int count)
{
    (void)client;
    (void)pieces;
    (void)count;
    return 0;
}

static bool is_blocked(const struct client *client)
{
    (void)client;
    return false;
}

/* Clients of its outlets reconnect, and get another source. */
static void fail(struct client *client, enum disconnect_reason reason)
{
    struct trend_source *source = (struct trend_source *)client;

    source->has_failed = true;
    lane_unshare(source->lane);
    LIST_EACH(&source->lane->outlets, node)
    {
        struct lane *outlet = LIST_OWNER(node, struct lane, outlet);

        lane_unshare(outlet);
        catch_up_evict_lane(outlet, reason);
    }
}

static void broken(struct client *client)
{
    fail(client, DISCONNECT_INTERNAL);
}

static const struct transport transport = {
    .send = take, .hold = hold, .is_blocked = is_blocked, .evict = fail, .broken = broken};

/* --- creating and freeing --- */

static void source_free(struct deliver *deliver, struct trend_source *source)
{
    if (source->client.catcher)
        catch_up_leave(source->client.catcher);
    else
        outbox_leave(&source->client);
    lane_free(source->lane);
    list_remove(&deliver->trend_sources, &source->node);
    mem_free(source);
}

static void source_key(struct sl_filter *filter, const struct count_question *question,
                       struct buffer *ret_key)
{
    const struct trend_question *trends = &question->trends;

    buffer_append_format(ret_key, "t%" PRIu64 ",%" PRIu64 ",%x,%" PRIu32 ",", question->bucket_ms,
                         trends->window_ms, trends->of, trends->limit);
    buffer_append_slice(ret_key, sl_filter_key(filter));
}

static struct trend_source *find(struct deliver *deliver, struct sl_filter *filter,
                                 const struct count_question *question)
{
    struct buffer key = BUFFER_INIT;
    struct lane *lane = NULL;

    source_key(filter, question, &key);
    if (!key.failed)
        lane = hash_map_get(deliver->lanes, buffer_slice(&key));
    buffer_done(&key);
    return lane ? lane->finds : NULL;
}

/* Begins with the current bucket. 0; -ENOMEM. */
static int begin(struct deliver *deliver, struct trend_source *source, struct sl_filter *filter,
                 const struct count_question *question)
{
    uint64_t closed = deliver->closed ? deliver->closed : sl_id_first_at(clock_wall_ms());
    const struct sl_cursor before = {.id = count_bucket_before(question, closed + 1)};
    struct lane *lane = lane_new(deliver, &source->client, 0);
    struct buffer key = BUFFER_INIT;
    int r = lane ? 0 : -ENOMEM;

    if (r < 0)
        return r;
    source->lane = lane;
    lane->finds = source;
    lane->told = before.id;
    source_key(filter, question, &key);
    if (key.failed || lane_share(lane, buffer_slice(&key)) < 0)
        r = -ENOMEM;
    buffer_done(&key);
    if (r == 0)
        r = binding_add(deliver, filter, lane, NULL, &lane->subscription);
    if (r < 0)
        return r;
    lane->is_subscribed = true;
    outbox_join(&lane->outbox, &source->client);
    return catch_up_begin(deliver->catch_up, lane, &source->client, &before);
}

struct lane *trend_source_find(struct deliver *deliver, struct sl_filter *filter,
                               const struct count_question *question)
{
    struct trend_source *source = find(deliver, filter, question);

    if (source) {
        list_remove(&deliver->trend_sources, &source->node);
        list_append(&deliver->trend_sources, &source->node);
        return source->lane;
    }
    source = mem_zalloc(sizeof(*source));
    if (!source)
        return NULL;
    source->client =
        (struct client){.transport = &transport, .format = FORMAT_NDJSON, .question = *question};
    list_append(&deliver->trend_sources, &source->node);
    if (begin(deliver, source, filter, question) < 0) {
        source_free(deliver, source);
        return NULL;
    }
    source->client.came_with = 0; /* late events are reported to the outlets' clients */
    return source->lane;
}

void trend_source_add_outlet(struct lane *source, struct lane *outlet)
{
    outlet->source = source;
    list_append(&source->outlets, &outlet->outlet);
}

static bool is_idle(const struct trend_source *source)
{
    return list_is_empty(&source->lane->outlets);
}

void trend_source_forget_outlet(struct lane *outlet)
{
    struct trend_source *source = outlet->source->finds;

    list_remove(&outlet->source->outlets, &outlet->outlet);
    outlet->source = NULL;
    if (is_idle(source) &&
        (source->has_failed || outlet->deliver->is_ending || !source->lane->question.trends.stands))
        source_free(outlet->deliver, source);
}

void lane_forget_client(struct lane *lane)
{
    if (outbox_has_clients(&lane->outbox) || !list_is_empty(&lane->catchers))
        return;
    if (lane->source)
        trend_source_forget_outlet(lane);
    lane_free(lane);
}

void trend_sources_end(struct deliver *deliver)
{
    LIST_EACH(&deliver->trend_sources, node)
    {
        struct trend_source *source = LIST_OWNER(node, struct trend_source, node);

        if (is_idle(source))
            source_free(deliver, source);
    }
}

bool trend_source_goes_on_from(const struct lane *source, const struct sl_cursor *cursor)
{
    uint64_t next = count_bucket_id(&source->question, source->told + 1);

    return sl_cursor_is_plain(cursor) && cursor->id >= source->told &&
           cursor->id <= next - trend_kinds(&source->question.trends);
}

/* --- room --- */

/* Including the clients that count on their own. */
static size_t sketches_of(const struct trend_source *source)
{
    size_t counters = 1;

    LIST_EACH(&source->lane->outlets, node)
    counters += LIST_OWNER(node, struct lane, outlet)->catchers.count;
    return counters * trend_kinds(&source->lane->question.trends);
}

size_t deliver_trend_sketches(const struct deliver *deliver)
{
    size_t sketches = 0;

    LIST_EACH(&deliver->trend_sources, node)
    sketches += sketches_of(LIST_OWNER(node, struct trend_source, node));
    return sketches;
}

bool deliver_make_trend_room(struct deliver *deliver, struct sl_filter *filter,
                             const struct count_question *question, bool counts_by_itself)
{
    const struct trend_source *own = find(deliver, filter, question);
    size_t kinds = trend_kinds(&question->trends);
    size_t more = (own ? 0 : kinds) + (counts_by_itself ? kinds : 0);
    size_t sketches = deliver_trend_sketches(deliver);

    LIST_EACH(&deliver->trend_sources, node)
    {
        struct trend_source *source = LIST_OWNER(node, struct trend_source, node);

        if (sketches + more <= TREND_SKETCHES_MAX)
            break;
        if (source == own || !is_idle(source))
            continue;
        sketches -= sketches_of(source);
        source_free(deliver, source);
    }
    return sketches + more <= TREND_SKETCHES_MAX;
}
