/* log_cache.c - a list of all batches, the least recently used first, and a list for each shard.
 *
 * There are at most a few hundred batches, so the list of a shard is searched linearly. The memory
 * of a batch includes its events, although clients may keep some of them longer. */
#include "gateway/delivery/log_cache.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "src/model/id.h"

_Static_assert((int)LOG_BATCH_EVENTS <= (int)SEGMENT_EVENTS,
               "a batch of the log fits into a segment");

enum { RETRY_MAX_MS = 5000 };

struct shard_cache {
    struct log_cache *cache;
    bool is_asked, is_rewound;           /* the log, since the last request */
    uint64_t asked_after, known, number; /* of the requested batch */
    struct cached_batch *suspect;        /* arrived, but may have been trimmed; NULL: none */
    uint64_t newest;                     /* number of its last batch */
    uint64_t back_to;                    /* end of the requested batch; 0: none */
    bool is_back_rewound;                /* the log, since that request */
    struct list batches;                 /* least recently used first */
};

struct log_cache {
    struct log_cache_settings settings;
    log_cache_fn changed;
    log_cache_back_fn came_back;
    void *owner;
    struct list batches; /* least recently used first */
    size_t bytes;
    uint64_t asked;
    uv_timer_t retry_timer;
    struct backoff backoff;
    struct log_rate failed_rate;
    struct shard_cache shards[SL_SHARDS_MAX];
};

static void on_batch(void *owner, const struct log_batch *raw, int error, const char *why);

struct log_cache *log_cache_new(const struct log_cache_settings *settings)
{
    struct log_cache *cache = mem_zalloc(sizeof(*cache));

    if (!cache)
        return NULL;
    cache->settings = *settings;
    list_init(&cache->batches);
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        cache->shards[i].cache = cache;
        list_init(&cache->shards[i].batches);
    }
    uv_timer_init(settings->loop, &cache->retry_timer);
    cache->retry_timer.data = cache;
    return cache;
}

void log_cache_on_change(struct log_cache *cache, log_cache_fn changed, log_cache_back_fn came_back,
                         void *owner)
{
    cache->changed = changed;
    cache->came_back = came_back;
    cache->owner = owner;
}

static void cached_batch_free(struct cached_batch *batch)
{
    if (!batch)
        return;
    segment_free(batch->segment);
    mem_free(batch);
}

/* As the most recently used one. */
static void put_in(struct log_cache *cache, struct cached_batch *batch)
{
    list_append(&cache->batches, &batch->node);
    list_append(&cache->shards[batch->shard].batches, &batch->in_shard);
}

static void take_out(struct log_cache *cache, struct cached_batch *batch)
{
    list_remove(&cache->batches, &batch->node);
    list_remove(&cache->shards[batch->shard].batches, &batch->in_shard);
}

void log_cache_drop(struct log_cache *cache, struct cached_batch *batch)
{
    assert(cache->bytes >= batch->segment->bytes);
    take_out(cache, batch);
    cache->bytes -= batch->segment->bytes;
    metric_set(cache->settings.metrics, METRIC_LOG_PAGE_BYTES, cache->bytes);
    cached_batch_free(batch);
}

void log_cache_rewind(struct log_cache *cache, uint32_t shard, uint64_t from)
{
    LIST_EACH(&cache->shards[shard].batches, node)
    {
        struct cached_batch *batch = LIST_OWNER(node, struct cached_batch, in_shard);

        if (batch->end > from)
            log_cache_drop(cache, batch);
    }
    cache->shards[shard].is_rewound = true;
    cache->shards[shard].is_back_rewound = true;
}

static void on_timer_closed(uv_handle_t *timer)
{
    mem_free(timer->data);
}

void log_cache_free(struct log_cache *cache)
{
    if (!cache)
        return;
    LIST_EACH(&cache->batches, node)
    log_cache_drop(cache, LIST_OWNER(node, struct cached_batch, node));
    uv_close((uv_handle_t *)&cache->retry_timer, on_timer_closed);
}

/* --- looking up --- */

static bool serves(const struct cached_batch *batch, uint64_t after)
{
    if (after < batch->after)
        return false;
    return batch->is_unreadable ? after == batch->after : after < batch->end;
}

struct cached_batch *log_cache_find(struct log_cache *cache, uint32_t shard, uint64_t after)
{
    const struct list *batches = &cache->shards[shard].batches;

    assert(shard < SL_SHARDS_MAX);
    for (struct list_node *node = batches->head.previous; node != &batches->head;
         node = node->previous) {
        struct cached_batch *batch = LIST_OWNER(node, struct cached_batch, in_shard);

        if (serves(batch, after))
            return batch;
    }
    return NULL;
}

/* The last batch of a log says nothing about what was logged after it was read. */
static bool reaches(const struct cached_batch *batch, uint64_t to)
{
    const struct segment *segment = batch->segment;

    return batch->end != SL_ID_MAX || batch->known >= to ||
           (segment->count > 0 && segment->entries[segment->count - 1].id >= to);
}

struct cached_batch *log_cache_find_back(struct log_cache *cache, uint32_t shard, uint64_t to)
{
    const struct list *batches = &cache->shards[shard].batches;

    assert(to > 0);
    for (struct list_node *node = batches->head.previous; node != &batches->head;
         node = node->previous) {
        struct cached_batch *batch = LIST_OWNER(node, struct cached_batch, in_shard);

        if (!batch->is_unreadable && serves(batch, to - 1) && reaches(batch, to))
            return batch;
    }
    return NULL;
}

void log_cache_note_use(struct log_cache *cache, struct cached_batch *batch)
{
    metric_add(cache->settings.metrics, METRIC_LOG_PAGES_USED, 1);
    take_out(cache, batch);
    put_in(cache, batch);
}

/* Its frames and verdicts have grown since it was new. */
static void count_again(struct log_cache *cache, struct cached_batch *batch)
{
    cache->bytes -= batch->segment->bytes;
    segment_count_bytes(batch->segment);
    cache->bytes += batch->segment->bytes;
}

/* Frees the least recently used ones, except the newest of each shard, whatever its size, and
 * pinned ones. */
static void make_room(struct log_cache *cache)
{
    LIST_EACH(&cache->batches, node)
    {
        struct cached_batch *batch = LIST_OWNER(node, struct cached_batch, node);

        if (cache->bytes <= cache->settings.max_bytes)
            break;
        if (batch->number != cache->shards[batch->shard].newest && !batch->is_pinned)
            log_cache_drop(cache, batch);
    }
}

void log_cache_unpin_all(struct log_cache *cache)
{
    LIST_EACH(&cache->batches, node)
    LIST_OWNER(node, struct cached_batch, node)->is_pinned = false;
}

static void keep(struct log_cache *cache, struct cached_batch *batch)
{
    if (!list_is_empty(&cache->batches))
        count_again(cache, LIST_OWNER(cache->batches.head.previous, struct cached_batch, node));
    segment_count_bytes(batch->segment);
    cache->bytes += batch->segment->bytes;
    cache->shards[batch->shard].newest = batch->number;
    put_in(cache, batch);
    make_room(cache);
    metric_set(cache->settings.metrics, METRIC_LOG_PAGE_BYTES, cache->bytes);
}

/* --- requests --- */

static void on_retry(uv_timer_t *timer)
{
    struct log_cache *cache = timer->data;

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        if (!cache->shards[shard].is_asked)
            cache->changed(cache->owner, shard, NULL);
    }
}

static void ask_later(struct log_cache *cache)
{
    if (!uv_is_active((uv_handle_t *)&cache->retry_timer))
        uv_timer_start(
            &cache->retry_timer, on_retry,
            backoff_next_spread_ms(&cache->backoff, cache->settings.retry_ms, RETRY_MAX_MS), 0);
}

static void failed(struct log_cache *cache, uint32_t shard, const char *why)
{
    char room[LOG_QUOTE_SIZE];
    uint64_t held_back;

    metric_add(cache->settings.metrics, METRIC_LOG_READ_FAILURES, 1);
    if (log_rate_allows(&cache->failed_rate, clock_monotonic_ms(), &held_back))
        log_warn("log_unreadable", "shard=%u reason=%s held_back=%" PRIu64, shard,
                 log_quote(sl_slice_str(why), room), held_back);
}

void log_cache_ask(struct log_cache *cache, uint32_t number, uint64_t after, uint64_t known)
{
    struct shard_cache *shard = &cache->shards[number];

    assert(after < SL_ID_MAX);
    if (shard->is_asked || uv_is_active((uv_handle_t *)&cache->retry_timer))
        return;
    shard->asked_after = after;
    shard->known = known;
    shard->number = ++cache->asked;
    shard->is_asked = true;
    shard->is_rewound = false;
    if (cache->settings.read(cache->settings.reader, number, after, SL_ID_MAX, on_batch, shard) ==
        0)
        return;
    shard->is_asked = false;
    failed(cache, number, "out of memory");
    ask_later(cache);
}

uint64_t log_cache_asked(const struct log_cache *cache)
{
    return cache->asked;
}

/* --- answers --- */

/* What is refused here was refused, and counted, when it passed. */
static int decode(struct log_cache *cache, uint32_t shard, const struct sl_event_log_entry *raw,
                  struct segment_entry *ret_entry)
{
    struct event_origin origin = {raw->id, raw->previous, shard, clock_monotonic_us()};
    struct segment_entry entry = {.id = raw->id, .previous = raw->previous};
    struct failure failure;

    if (event_decode(cache->settings.decoder, raw->event, &origin, &entry.event, &failure) ==
        -ENOMEM)
        return -ENOMEM;
    if (entry.event && !event_is_for_clients(entry.event) && entry.event->kind != EVENT_LATE) {
        event_unref(entry.event);
        entry.event = NULL;
    }
    *ret_entry = entry;
    return 0;
}

static int fill(struct log_cache *cache, struct cached_batch *batch, const struct log_batch *raw)
{
    for (size_t i = 0; i < raw->count; i++) {
        struct segment_entry entry;

        if (decode(cache, batch->shard, &raw->entries[i], &entry) < 0)
            return -ENOMEM;
        segment_append(batch->segment, &entry);
        event_unref(entry.event);
    }
    batch->end = raw->is_full ? raw->entries[raw->count - 1].id : SL_ID_MAX;
    return 0;
}

/* `raw` NULL: what the log contains cannot be read. NULL: out of memory. */
static struct cached_batch *cached_batch_new(struct log_cache *cache, uint32_t number,
                                             const struct log_batch *raw)
{
    const struct shard_cache *shard = &cache->shards[number];
    struct cached_batch *batch = mem_zalloc(sizeof(*batch));

    if (!batch)
        return NULL;
    batch->number = shard->number;
    batch->shard = number;
    batch->after = shard->asked_after;
    batch->known = shard->known;
    batch->is_unreadable = !raw;
    batch->end = SL_ID_MAX;
    batch->segment = segment_new();
    if (!batch->segment || (raw && fill(cache, batch, raw) < 0)) {
        cached_batch_free(batch);
        return NULL;
    }
    return batch;
}

/* The log begins after the requested id. Then something is missing, but it may also have been
 * removed from the middle of the log. */
static bool is_suspect(const struct cached_batch *batch)
{
    const struct segment *segment = batch->segment;

    if (batch->is_unreadable || batch->after == 0)
        return false;
    return segment->count > 0 ? segment->entries[0].previous > batch->after
                              : batch->known > batch->after;
}

static void hand_over(struct shard_cache *shard, struct cached_batch *batch)
{
    struct log_cache *cache = shard->cache;
    const uint32_t number = batch->shard;

    backoff_reset(&cache->backoff);
    metric_add(cache->settings.metrics, METRIC_LOG_PAGES_READ, 1);
    if (shard->is_rewound) { /* it may contain what the log has lost */
        cached_batch_free(batch);
        batch = NULL;
    } else {
        keep(cache, batch);
    }
    cache->changed(cache->owner, number, batch);
}

static void give_up(struct shard_cache *shard, struct cached_batch *batch, const char *why)
{
    cached_batch_free(batch);
    failed(shard->cache, (uint32_t)(shard - shard->cache->shards), why);
    ask_later(shard->cache);
}

/* Receives what the log contains up to the beginning of the batch. */
static void on_look_back(void *owner, const struct log_batch *raw, int error, const char *why)
{
    struct shard_cache *shard = owner;
    struct cached_batch *batch = shard->suspect;

    shard->is_asked = false;
    shard->suspect = NULL;
    if (!raw && error != -EBADMSG) {
        give_up(shard, batch, why);
        return;
    }
    batch->is_trimmed = raw && raw->count == 0;
    hand_over(shard, batch);
}

static void look_back_take(struct shard_cache *shard, struct cached_batch *batch)
{
    struct log_cache *cache = shard->cache;

    shard->suspect = batch;
    shard->is_asked = true;
    if (cache->settings.read(cache->settings.reader, batch->shard, 0, batch->after, on_look_back,
                             shard) == 0)
        return;
    shard->is_asked = false;
    shard->suspect = NULL;
    give_up(shard, batch, "out of memory");
}

static void on_batch(void *owner, const struct log_batch *raw, int error, const char *why)
{
    struct shard_cache *shard = owner;
    struct log_cache *cache = shard->cache;
    uint32_t number = (uint32_t)(shard - cache->shards);
    struct cached_batch *batch = NULL;

    shard->is_asked = false;
    if (raw || error == -EBADMSG) {
        batch = cached_batch_new(cache, number, raw);
        why = raw ? "out of memory" : why;
    }
    if (!batch) {
        give_up(shard, NULL, why);
        return;
    }
    if (!raw)
        failed(cache, number, why);
    if (is_suspect(batch))
        look_back_take(shard, batch);
    else
        hand_over(shard, batch);
}

/* --- reading backwards --- */

static struct cached_batch *back_batch_new(struct log_cache *cache, uint32_t number,
                                           const struct log_batch *raw)
{
    struct cached_batch *batch = mem_zalloc(sizeof(*batch));

    if (!batch)
        return NULL;
    batch->number = ++cache->asked;
    batch->shard = number;
    batch->after = raw->entries[0].previous;
    batch->segment = segment_new();
    if (!batch->segment || fill(cache, batch, raw) < 0) {
        cached_batch_free(batch);
        return NULL;
    }
    batch->end = raw->entries[raw->count - 1].id;
    return batch;
}

static void on_back_batch(void *owner, const struct log_batch *raw, int error, const char *why)
{
    struct shard_cache *shard = owner;
    struct log_cache *cache = shard->cache;
    uint32_t number = (uint32_t)(shard - cache->shards);
    struct cached_batch *batch = NULL;
    uint64_t to = shard->back_to;

    (void)error;
    shard->back_to = 0;
    if (raw && shard->is_back_rewound) { /* it may contain what the log has lost */
        if (log_cache_ask_back(cache, number, to) == 0)
            return;
        raw = NULL;
    }
    if (!raw)
        failed(cache, number, why);
    else if (raw->count > 0)
        batch = back_batch_new(cache, number, raw);
    if (batch) {
        metric_add(cache->settings.metrics, METRIC_LOG_PAGES_READ, 1);
        keep(cache, batch);
    }
    cache->came_back(cache->owner, number, to, batch);
}

int log_cache_ask_back(struct log_cache *cache, uint32_t number, uint64_t to)
{
    struct shard_cache *shard = &cache->shards[number];

    if (shard->back_to)
        return 0;
    if (cache->settings.read_back(cache->settings.reader, number, to, on_back_batch, shard) < 0) {
        failed(cache, number, "out of memory");
        return -ENOMEM;
    }
    shard->back_to = to;
    shard->is_back_rewound = false;
    return 0;
}
