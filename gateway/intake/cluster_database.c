/* cluster_database.c - finds the database, and the shards that hold it.
 *
 * A shard is checked before each subscription, and regularly while it is subscribed, by a plain
 * command that creates nothing. A shard that holds another database is not subscribed. When one is
 * found empty, all are checked again a second later, because a cluster is emptied node by node.
 * Then
 *
 * - as long as one shard holds the database, the empty ones become shards of it: a node has lost
 *   its data, or the creation of the database was interrupted;
 * - if none does, and all have answered, the database is gone. If they hold one other database, it
 *   has been created anew; if they hold none, shard 0 creates it, so that of several that try only
 *   one succeeds.
 *
 * If no database has been seen yet, it is created without this delay. */
#include "gateway/intake/cluster_subscriber_parts.h"

#include <errno.h>

#include "src/database/meta.h"

enum { SETTLE_MS = 1000, ANSWER_MS = 2000 };

static uint64_t all_to_ask(const struct cluster_subscriber *subscriber)
{
    return subscriber->meta.shards == 0 ? UINT64_MAX : cluster_all_shards(subscriber);
}

static uint64_t answered(const struct cluster_subscriber *subscriber)
{
    return (subscriber->known | subscriber->empty | subscriber->others) & all_to_ask(subscriber);
}

static void judge(struct cluster_subscriber *subscriber);
static void look_at(struct cluster_subscriber *subscriber, uint64_t shards);

/* ---- results of checks ---- */

static void note_same(struct shard *shard, const struct sl_meta *meta)
{
    struct cluster_subscriber *subscriber = shard->subscriber;

    subscriber->known |= cluster_bit(shard->number);
    subscriber->empty &= ~cluster_bit(shard->number);
    subscriber->others &= ~cluster_bit(shard->number);
    shard->clock_until_ms = meta->clock_until_ms;
}

static void stop_hearing(struct shard *shard, const char *why)
{
    if (shard->state >= SHARD_SUBSCRIBING)
        cluster_note_away(shard, why);
    shard->subscriber->known &= ~cluster_bit(shard->number);
}

static void note_other(struct shard *shard, const struct sl_meta *meta, const char *why)
{
    struct cluster_subscriber *subscriber = shard->subscriber;

    stop_hearing(shard, why);
    if (subscriber->others && sl_meta_check_same(&subscriber->other, meta, NULL) < 0)
        subscriber->others_differ = true;
    subscriber->empty &= ~cluster_bit(shard->number);
    subscriber->others |= cluster_bit(shard->number);
    subscriber->other = *meta;
    cluster_doubt(subscriber, why);
}

static void note_empty(struct shard *shard)
{
    struct cluster_subscriber *subscriber = shard->subscriber;

    stop_hearing(shard, "its node has nothing of it");
    subscriber->empty |= cluster_bit(shard->number);
    if (subscriber->emptied_ms == 0)
        subscriber->emptied_ms = uv_now(subscriber->settings.loop);
    cluster_try_later(subscriber);
}

/* From now on this is the database. */
static void note_database(struct cluster_subscriber *subscriber, const struct sl_meta *meta)
{
    const struct redis_state_callbacks *news = &subscriber->settings.news;

    subscriber->meta = *meta;
    subscriber->meta.is_clustered = true;
    subscriber->waits_since_ms = 0;
    if (meta->is_new)
        log_info("database_created", "redis=%s database=%s shards=%u", subscriber->address_text,
                 meta->database_id, meta->shards);
    if (news->database)
        news->database(news->context, &subscriber->meta);
}

/* The old database is gone; from now on another one is received. */
static void take_new_database(struct cluster_subscriber *subscriber, const struct sl_meta *meta)
{
    for (uint32_t i = 0; i < subscriber->meta.shards; i++)
        stop_hearing(&subscriber->shards[i], "the database was created again");
    subscriber->known = subscriber->others;
    subscriber->others = 0;
    note_database(subscriber, meta);
}

/* ---- creating ---- */

static void end_search(struct cluster_subscriber *subscriber)
{
    subscriber->is_searching = false;
    subscriber->emptied_ms = 0;
}

static void complete(struct cluster_subscriber *subscriber);

static void on_made(void *owner, const redisReply *reply, const char *why)
{
    struct shard *shard = owner;
    struct cluster_subscriber *subscriber = shard->subscriber;
    struct failure failure;
    struct sl_meta meta;
    bool is_anew;
    int r;

    if (!cluster_note_answer(shard))
        return;
    r = reply ? sl_meta_reply(reply, &meta, &failure) : failure_set(&failure, -EIO, "%s", why);
    if (r < 0) {
        cluster_doubt(subscriber, failure.text);
        return;
    }
    is_anew = subscriber->known == 0 && subscriber->others == 0 && shard->number == 0 &&
              (subscriber->meta.shards == 0 || subscriber->meta.shards == meta.shards);
    if (is_anew)
        take_new_database(subscriber, &meta);
    if (sl_meta_check_same(&subscriber->meta, &meta, &failure) < 0)
        note_other(shard, &meta, failure.text);
    else
        note_same(shard, &meta);
    if (is_anew) {
        end_search(subscriber);
        complete(subscriber);
    }
    cluster_advance_all(subscriber);
}

/* Makes it a shard of this database, unless it belongs to one. */
static void make(struct shard *shard, const struct sl_meta *wanted)
{
    struct sl_meta meta = *wanted;
    struct sl_call call = SL_CALL_INIT;

    meta.is_clustered = true;
    if (!shard->is_asked)
        cluster_run(shard, sl_meta_call(&call, shard->number, &meta, NULL), &call, on_made);
}

static void complete(struct cluster_subscriber *subscriber)
{
    for (uint64_t rest = subscriber->empty & all_to_ask(subscriber); rest; rest &= rest - 1)
        make(&subscriber->shards[__builtin_ctzll(rest)], &subscriber->meta);
}

static void make_anew(struct cluster_subscriber *subscriber)
{
    uint32_t shards = subscriber->meta.shards ? subscriber->meta.shards : SL_SHARDS_MAX;
    const struct sl_meta wanted = sl_meta_wanted(shards);

    make(&subscriber->shards[0], &wanted);
}

/* ---- next steps ---- */

static void log_empty(const struct cluster_subscriber *subscriber)
{
    struct buffer text = BUFFER_INIT;

    cluster_print_shards(subscriber->empty, &text);
    log_warn("shards_empty", "redis=%s shards=%.*s database=%s", subscriber->address_text,
             (int)text.size, text.data ? text.data : "", subscriber->meta.database_id);
    buffer_done(&text);
}

/* All have answered, or those that know the database have, and the others had enough time. */
static bool is_search_over(const struct cluster_subscriber *subscriber)
{
    uint64_t now_ms = uv_now(subscriber->settings.loop);

    return subscriber->is_searching &&
           (answered(subscriber) == all_to_ask(subscriber) ||
            (subscriber->known && now_ms - subscriber->searched_ms >= ANSWER_MS));
}

static bool is_one_other(const struct cluster_subscriber *subscriber)
{
    return !subscriber->others_differ && subscriber->other.shards == subscriber->meta.shards &&
           (subscriber->others | subscriber->empty) == all_to_ask(subscriber);
}

static void judge(struct cluster_subscriber *subscriber)
{
    if (subscriber->meta.shards == 0) {
        if (subscriber->empty == UINT64_MAX)
            make_anew(subscriber);
    } else if (!is_search_over(subscriber)) {
        return;
    } else if (subscriber->known) {
        if (subscriber->empty)
            log_empty(subscriber);
        end_search(subscriber);
        complete(subscriber);
    } else if (subscriber->others == 0) {
        make_anew(subscriber);
    } else if (is_one_other(subscriber)) {
        take_new_database(subscriber, &subscriber->other);
        end_search(subscriber);
        complete(subscriber);
    }
}

/* ---- checking ---- */

/* At first only shard 0 is asked, and the others if it is empty or does not answer. */
static uint64_t shards_to_look_at(struct cluster_subscriber *subscriber)
{
    if (subscriber->meta.shards == 0 && !subscriber->empty && !cluster_has_waited(subscriber))
        return 1;
    return all_to_ask(subscriber);
}

static void on_look(void *owner, const redisReply *reply, const char *why)
{
    struct shard *shard = owner;
    struct cluster_subscriber *subscriber = shard->subscriber;
    struct failure failure;
    struct sl_meta meta;
    int r;

    if (!cluster_note_answer(shard))
        return;
    r = reply ? sl_meta_look_reply(reply, &meta, &failure) : failure_set(&failure, -EIO, "%s", why);
    if (r < 0 && r != -ENODATA) {
        cluster_doubt(subscriber, failure.text);
        return;
    }
    if (r == 0 && subscriber->meta.shards == 0)
        note_database(subscriber, &meta);
    if (r < 0)
        note_empty(shard);
    else if (sl_meta_check_same(&subscriber->meta, &meta, &failure) < 0)
        note_other(shard, &meta, failure.text);
    else if (!meta.is_clustered)
        make(shard, &subscriber->meta); /* marks it as part of a cluster */
    else
        note_same(shard, &meta);
    look_at(subscriber, shards_to_look_at(subscriber) & ~answered(subscriber));
    judge(subscriber);
    cluster_advance_all(subscriber);
}

static void look(struct shard *shard)
{
    struct sl_call call = SL_CALL_INIT;

    if (!shard->is_asked && cluster_line_is_ready(shard->line))
        cluster_run(shard, sl_meta_look_call(&call, shard->number, NULL), &call, on_look);
}

static void look_at(struct cluster_subscriber *subscriber, uint64_t shards)
{
    for (; shards; shards &= shards - 1)
        look(&subscriber->shards[__builtin_ctzll(shards)]);
}

static void begin_search(struct cluster_subscriber *subscriber)
{
    subscriber->known = subscriber->empty = subscriber->others = 0;
    subscriber->others_differ = false;
    subscriber->is_searching = true;
    subscriber->searched_ms = uv_now(subscriber->settings.loop);
}

void cluster_look(struct cluster_subscriber *subscriber)
{
    uint64_t now_ms = uv_now(subscriber->settings.loop);
    bool is_known = subscriber->meta.shards > 0;

    if (is_known && subscriber->empty && subscriber->emptied_ms == 0)
        subscriber->emptied_ms = now_ms; /* it could not be completed */
    if (is_known && subscriber->emptied_ms && !subscriber->is_searching &&
        now_ms - subscriber->emptied_ms >= SETTLE_MS)
        begin_search(subscriber);
    if (!subscriber->is_searching)
        subscriber->others = 0; /* the contents of other databases may change */
    look_at(subscriber, shards_to_look_at(subscriber) & ~answered(subscriber));
    judge(subscriber);
    if (subscriber->emptied_ms)
        cluster_try_later(subscriber);
}

void cluster_check(struct cluster_subscriber *subscriber)
{
    subscriber->checks++;
    for (uint32_t i = 0; i < subscriber->meta.shards; i++) {
        struct shard *shard =
            &subscriber->shards[(subscriber->checks + i) % subscriber->meta.shards];

        if (shard->state != SHARD_HEARD || shard->line->checked == subscriber->checks)
            continue;
        shard->line->checked = subscriber->checks;
        look(shard);
    }
}
