/* cluster_classic.c - one SUBSCRIBE to all live channels, on one of the lines.
 *
 * The core publishes with SPUBLISH. Producers without the core may only know PUBLISH, which has a
 * separate name space, and which every node passes on to all others: so a subscription at one node
 * is enough. When its line ends another one is chosen at random, so that not all gateways use the
 * same node. What is published until that one has confirmed is lost, as it is while the connection
 * to a single Redis is down, because it is in no log.
 *
 * The subscription is requested on a line on which no SSUBSCRIBE is outstanding, so that an error
 * that arrives then is its answer. If it is refused it is requested again later. */
#include "gateway/intake/cluster_subscriber_parts.h"

#include <string.h>

#include "base/hash.h"
#include "gateway/intake/live_channel.h"

static void note_unheard(struct cluster_subscriber *subscriber, const char *reason)
{
    char room[LOG_QUOTE_SIZE];

    if (subscriber->is_classic_heard)
        metric_add(subscriber->settings.metrics, METRIC_PUBLISH_LOST, 1);
    if (strcmp(reason, subscriber->why_no_classic.text) != 0)
        log_warn("publish_not_heard", "redis=%s reason=%s", subscriber->address_text,
                 log_quote(sl_slice_str(reason), room));
    failure_set(&subscriber->why_no_classic, 0, "%s", reason);
    subscriber->classic = NULL;
    subscriber->is_classic_heard = false;
    cluster_show_heard(subscriber);
}

static bool is_quiet(const struct line *line)
{
    const struct cluster_subscriber *subscriber = line->subscriber;

    for (uint32_t i = 0; i < subscriber->meta.shards; i++) {
        if (subscriber->shards[i].line == line && subscriber->shards[i].state == SHARD_SUBSCRIBING)
            return false;
    }
    return cluster_line_is_ready(line);
}

/* NULL: none is ready. */
static struct line *choose(const struct cluster_subscriber *subscriber)
{
    size_t count = subscriber->line_count;
    size_t first = count > 1 ? hash_key_random().k0 % count : 0;

    for (size_t i = 0; i < count; i++) {
        struct line *line = subscriber->lines[(first + i) % count];

        if (is_quiet(line))
            return line;
    }
    return NULL;
}

void cluster_classic_seek(struct cluster_subscriber *subscriber)
{
    struct sl_call call = SL_CALL_INIT;
    struct line *line;

    if (subscriber->classic || subscriber->meta.shards == 0)
        return;
    line = choose(subscriber);
    if (!line)
        return; /* a line is chosen when one is ready */
    if (live_channel_subscribe_call(&call, subscriber->meta.shards) == 0 &&
        redis_session_send_call(line->session, &call) == 0) {
        subscriber->classic = line;
        subscriber->classic_number++;
        subscriber->classic_confirmed = 0;
    } else {
        cluster_try_later(subscriber);
    }
    sl_call_done(&call);
}

void cluster_classic_confirm(struct line *line)
{
    struct cluster_subscriber *subscriber = line->subscriber;
    char where[SL_REDIS_ENDPOINT_TEXT_SIZE];

    if (line != subscriber->classic || subscriber->is_classic_heard ||
        ++subscriber->classic_confirmed < subscriber->meta.shards)
        return;
    subscriber->is_classic_heard = true;
    subscriber->why_no_classic.text[0] = '\0';
    sl_redis_endpoint_print(redis_session_endpoint(line->session), where, sizeof(where));
    log_info("publish_heard", "redis=%s node=%s", subscriber->address_text, where);
    cluster_show_heard(subscriber);
    cluster_begin_hearing_if_so(subscriber);
}

bool cluster_classic_is_refused(struct line *line, const char *reason)
{
    struct cluster_subscriber *subscriber = line->subscriber;

    if (line != subscriber->classic || subscriber->is_classic_heard)
        return false;
    note_unheard(subscriber, reason);
    cluster_try_later(subscriber);
    return true;
}

void cluster_classic_lose(struct line *line, const char *reason)
{
    if (line == line->subscriber->classic)
        note_unheard(line->subscriber, reason);
}
