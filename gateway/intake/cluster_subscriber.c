/* cluster_subscriber.c - a line to each node that has shards, by the map, and two timers.
 *
 * One timer retries what has failed: lines, shards, meta. The other one triggers checks of the
 * shards that are received. The rest is in cluster_line.c, cluster_database.c, cluster_steps.c and
 * cluster_hearing.c. */
#include "gateway/intake/cluster_subscriber.h"

#include "base/alloc.h"
#include "gateway/intake/cluster_subscriber_parts.h"

enum { BEGIN_WAIT_MS = 2000, CHECK_MS = 1000 };

static void place_shard(struct shard *shard, const struct sl_redis_endpoint *master)
{
    struct cluster_subscriber *subscriber = shard->subscriber;
    struct line *line = master->host[0] ? cluster_line_find(subscriber, master) : NULL;

    if (!line && master->host[0])
        line = cluster_line_make(subscriber, master);
    if (shard->line != line && shard->state >= SHARD_SUBSCRIBING)
        cluster_note_away(shard, "the shard was moved");
    shard->line = line;
}

/* Does everything that can be done now. */
static void look_round(struct cluster_subscriber *subscriber)
{
    cluster_lines_open(subscriber);
    cluster_look(subscriber);
    cluster_advance_all(subscriber);
    if (!subscriber->has_begun)
        cluster_tell_first_log_ends(subscriber);
    cluster_classic_seek(subscriber);
    cluster_begin_hearing_if_so(subscriber);
    if (!subscriber->is_hearing)
        cluster_try_later(subscriber);
}

void cluster_subscriber_set_map(struct cluster_subscriber *subscriber,
                                const struct sl_cluster_map *map)
{
    cluster_lines_drop(subscriber, map);
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++)
        place_shard(&subscriber->shards[i], &map->masters[i]);
    subscriber->has_map = true;
    look_round(subscriber);
}

static void on_timer(uv_timer_t *timer)
{
    struct cluster_subscriber *subscriber = timer->data;

    if (subscriber->has_map)
        look_round(subscriber);
}

static void on_check(uv_timer_t *timer)
{
    cluster_check(timer->data);
}

/* ---- public functions ---- */

uint64_t cluster_subscriber_ping(struct cluster_subscriber *subscriber, uint64_t shards,
                                 uint64_t number)
{
    char text[SL_ID_TEXT_SIZE];
    struct line *line;

    shards &= subscriber->heard;
    if (!subscriber->is_hearing || shards == 0)
        return 0;
    line = subscriber->shards[__builtin_ctzll(shards)].line;
    if (line->pinged ||
        redis_session_send_words(line->session,
                                 (const char *[]){"PING", sl_id_print(number, text), NULL}) < 0)
        return 0;
    line->pinged = number;
    return shards & cluster_line_heard(line);
}

bool cluster_subscriber_is_subscribed(const struct cluster_subscriber *subscriber)
{
    return subscriber->is_hearing;
}

uint64_t cluster_subscriber_heard(const struct cluster_subscriber *subscriber)
{
    return subscriber->heard;
}

uint32_t cluster_subscriber_shards(const struct cluster_subscriber *subscriber)
{
    return subscriber->told_shards;
}

const struct sl_meta *cluster_subscriber_meta(const struct cluster_subscriber *subscriber)
{
    return &subscriber->meta;
}

uint64_t cluster_subscriber_clock_until_ms(const struct cluster_subscriber *subscriber,
                                           uint32_t shard)
{
    return subscriber->shards[shard].clock_until_ms;
}

struct cluster_subscriber *cluster_subscriber_new(const struct subscriber_settings *settings,
                                                  const struct subscriber_callbacks *callbacks,
                                                  void *context)
{
    struct cluster_subscriber *subscriber = mem_zalloc(sizeof(*subscriber));

    if (!subscriber)
        return NULL;
    subscriber->settings = *settings;
    subscriber->callbacks = *callbacks;
    subscriber->context = context;
    subscriber->address = *settings->address;
    subscriber->settings.address = &subscriber->address;
    if (settings->begin_wait_ms == 0)
        subscriber->settings.begin_wait_ms = BEGIN_WAIT_MS;
    sl_redis_address_print(&subscriber->address, subscriber->address_text,
                           sizeof(subscriber->address_text));
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        subscriber->shards[i].subscriber = subscriber;
        subscriber->shards[i].number = i;
    }
    heard_twice_init(&subscriber->twice);
    subscriber->try_again = on_timer;
    subscriber->open_handles = 2;
    uv_timer_init(settings->loop, &subscriber->timer);
    uv_timer_init(settings->loop, &subscriber->check_timer);
    subscriber->timer.data = subscriber->check_timer.data = subscriber;
    uv_timer_start(&subscriber->check_timer, on_check, CHECK_MS, CHECK_MS);
    return subscriber;
}

static void on_closed(uv_handle_t *handle)
{
    struct cluster_subscriber *subscriber = handle->data;

    subscriber->open_handles--;
    cluster_free_if_done(subscriber);
}

void cluster_subscriber_free(struct cluster_subscriber *subscriber)
{
    if (!subscriber)
        return;
    subscriber->is_stopping = true;
    for (size_t i = 0; i < subscriber->line_count; i++)
        redis_session_free(subscriber->lines[i]->session);
    uv_close((uv_handle_t *)&subscriber->timer, on_closed);
    uv_close((uv_handle_t *)&subscriber->check_timer, on_closed);
}
