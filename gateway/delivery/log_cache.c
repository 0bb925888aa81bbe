/* log_cache.c - a list of all pages, the one used last in front, and one of each shard's.
 *
 * There are a few hundred at most, some of each shard, so a shard's are looked through. A page is
 * charged with its events, though clients may keep some of them alive for longer. */
#include "gateway/delivery/log_cache.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "src/model/id.h"

_Static_assert((int)LOG_PAGE_EVENTS <= (int)SEGMENT_EVENTS,
               "a page of the log fits into a segment");

enum { RETRY_MAX_MS = 5000 };

struct shard_cache {
    struct log_cache *cache;
    bool is_asked;
    uint64_t asked_after, known, number; /* of the page that is asked for */
    struct cached_page *suspect;         /* it has come, but has it been trimmed? NULL: none */
    uint64_t newest;                     /* number of its last page */
    uint64_t back_to;                    /* the page that ends there is asked for; 0: none */
    struct list pages;                   /* used longest ago first */
};

struct log_cache {
    struct log_cache_settings settings;
    log_cache_fn changed;
    log_cache_back_fn came_back;
    void *owner;
    struct list pages; /* used longest ago first */
    size_t bytes;
    uint64_t asked;
    uv_timer_t retry_timer;
    struct backoff backoff;
    struct log_rate failed_rate;
    struct shard_cache shards[SL_SHARDS_MAX];
};

static void on_page(void *owner, const struct log_page *raw, int error, const char *why);

struct log_cache *log_cache_new(const struct log_cache_settings *settings)
{
    struct log_cache *cache = mem_zalloc(sizeof(*cache));

    if (!cache)
        return NULL;
    cache->settings = *settings;
    list_init(&cache->pages);
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++) {
        cache->shards[i].cache = cache;
        list_init(&cache->shards[i].pages);
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

static void cached_page_free(struct cached_page *cached)
{
    if (!cached)
        return;
    segment_free(cached->segment);
    mem_free(cached);
}

/* As the one used last. */
static void put_in(struct log_cache *cache, struct cached_page *cached)
{
    list_append(&cache->pages, &cached->node);
    list_append(&cache->shards[cached->shard].pages, &cached->in_shard);
}

static void take_out(struct log_cache *cache, struct cached_page *cached)
{
    list_remove(&cache->pages, &cached->node);
    list_remove(&cache->shards[cached->shard].pages, &cached->in_shard);
}

void log_cache_drop(struct log_cache *cache, struct cached_page *cached)
{
    assert(cache->bytes >= cached->segment->bytes);
    take_out(cache, cached);
    cache->bytes -= cached->segment->bytes;
    metric_set(cache->settings.metrics, METRIC_LOG_PAGE_BYTES, cache->bytes);
    cached_page_free(cached);
}

static void on_timer_closed(uv_handle_t *timer)
{
    mem_free(timer->data);
}

void log_cache_free(struct log_cache *cache)
{
    if (!cache)
        return;
    LIST_EACH(&cache->pages, node)
    log_cache_drop(cache, LIST_OWNER(node, struct cached_page, node));
    uv_close((uv_handle_t *)&cache->retry_timer, on_timer_closed);
}

/* ---- what is here ---- */

static bool serves(const struct cached_page *cached, uint64_t after)
{
    if (after < cached->after)
        return false;
    return cached->is_unreadable ? after == cached->after : after < cached->end;
}

struct cached_page *log_cache_find(struct log_cache *cache, uint32_t shard, uint64_t after)
{
    const struct list *pages = &cache->shards[shard].pages;

    assert(shard < SL_SHARDS_MAX);
    for (struct list_node *node = pages->head.previous; node != &pages->head;
         node = node->previous) {
        struct cached_page *cached = LIST_OWNER(node, struct cached_page, in_shard);

        if (serves(cached, after))
            return cached;
    }
    return NULL;
}

/* The last page of a log says nothing of what was logged after it was read. */
static bool reaches(const struct cached_page *cached, uint64_t to)
{
    const struct segment *segment = cached->segment;

    return cached->end != SL_ID_MAX || cached->known >= to ||
           (segment->count > 0 && segment->entries[segment->count - 1].id >= to);
}

struct cached_page *log_cache_find_back(struct log_cache *cache, uint32_t shard, uint64_t to)
{
    const struct list *pages = &cache->shards[shard].pages;

    assert(to > 0);
    for (struct list_node *node = pages->head.previous; node != &pages->head;
         node = node->previous) {
        struct cached_page *cached = LIST_OWNER(node, struct cached_page, in_shard);

        if (!cached->is_unreadable && serves(cached, to - 1) && reaches(cached, to))
            return cached;
    }
    return NULL;
}

void log_cache_note_use(struct log_cache *cache, struct cached_page *cached)
{
    metric_add(cache->settings.metrics, METRIC_LOG_PAGES_USED, 1);
    take_out(cache, cached);
    put_in(cache, cached);
}

/* Its frames and verdicts have come since it was new. */
static void count_again(struct log_cache *cache, struct cached_page *cached)
{
    cache->bytes -= cached->segment->bytes;
    segment_count_bytes(cached->segment);
    cache->bytes += cached->segment->bytes;
}

/* The oldest go; each shard's newest stays, however large. */
static void make_room(struct log_cache *cache)
{
    LIST_EACH(&cache->pages, node)
    {
        struct cached_page *cached = LIST_OWNER(node, struct cached_page, node);

        if (cache->bytes <= cache->settings.max_bytes)
            break;
        if (cached->number != cache->shards[cached->shard].newest)
            log_cache_drop(cache, cached);
    }
}

static void keep(struct log_cache *cache, struct cached_page *cached)
{
    if (!list_is_empty(&cache->pages))
        count_again(cache, LIST_OWNER(cache->pages.head.previous, struct cached_page, node));
    segment_count_bytes(cached->segment);
    cache->bytes += cached->segment->bytes;
    cache->shards[cached->shard].newest = cached->number;
    put_in(cache, cached);
    make_room(cache);
    metric_set(cache->settings.metrics, METRIC_LOG_PAGE_BYTES, cache->bytes);
}

/* ---- asking ---- */

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
    if (cache->settings.read(cache->settings.reader, number, after, SL_ID_MAX, on_page, shard) == 0)
        return;
    shard->is_asked = false;
    failed(cache, number, "out of memory");
    ask_later(cache);
}

uint64_t log_cache_asked(const struct log_cache *cache)
{
    return cache->asked;
}

/* ---- what comes back ---- */

/* What is refused was refused, and counted, when it passed. */
static int decode(struct log_cache *cache, uint32_t shard, const struct sl_event_log_entry *raw,
                  struct segment_entry *ret_entry)
{
    struct event_origin origin = {raw->id, raw->previous, shard, clock_monotonic_us()};
    struct segment_entry entry = {.id = raw->id, .previous = raw->previous};
    struct failure failure;

    if (event_decode(cache->settings.decoder, raw->event, &origin, &entry.event, &failure) ==
        -ENOMEM)
        return -ENOMEM;
    if (entry.event && !event_is_for_clients(entry.event)) {
        event_unref(entry.event);
        entry.event = NULL;
    }
    *ret_entry = entry;
    return 0;
}

static int fill(struct log_cache *cache, struct cached_page *cached, const struct log_page *raw)
{
    for (size_t i = 0; i < raw->count; i++) {
        struct segment_entry entry;

        if (decode(cache, cached->shard, &raw->entries[i], &entry) < 0)
            return -ENOMEM;
        segment_append(cached->segment, &entry);
        event_unref(entry.event);
    }
    cached->end = raw->is_full ? raw->entries[raw->count - 1].id : SL_ID_MAX;
    return 0;
}

/* `raw` NULL: what the log holds there cannot be read. NULL: out of memory. */
static struct cached_page *cached_page_new(struct log_cache *cache, uint32_t number,
                                           const struct log_page *raw)
{
    const struct shard_cache *shard = &cache->shards[number];
    struct cached_page *cached = mem_zalloc(sizeof(*cached));

    if (!cached)
        return NULL;
    cached->number = shard->number;
    cached->shard = number;
    cached->after = shard->asked_after;
    cached->known = shard->known;
    cached->is_unreadable = !raw;
    cached->end = SL_ID_MAX;
    cached->segment = segment_new();
    if (!cached->segment || (raw && fill(cache, cached, raw) < 0)) {
        cached_page_free(cached);
        return NULL;
    }
    return cached;
}

/* Does the log begin behind what the page was asked for? Something is missing then, which may have
 * been taken out of the middle as well. */
static bool is_suspect(const struct cached_page *cached)
{
    const struct segment *segment = cached->segment;

    if (cached->is_unreadable || cached->after == 0)
        return false;
    return segment->count > 0 ? segment->entries[0].previous > cached->after
                              : cached->known > cached->after;
}

static void hand_over(struct shard_cache *shard, struct cached_page *cached)
{
    struct log_cache *cache = shard->cache;

    backoff_reset(&cache->backoff);
    metric_add(cache->settings.metrics, METRIC_LOG_PAGES_READ, 1);
    keep(cache, cached);
    cache->changed(cache->owner, cached->shard, cached);
}

static void give_up(struct shard_cache *shard, struct cached_page *cached, const char *why)
{
    cached_page_free(cached);
    failed(shard->cache, (uint32_t)(shard - shard->cache->shards), why);
    ask_later(shard->cache);
}

/* What the log holds up to where the page begins. */
static void on_look_back(void *owner, const struct log_page *raw, int error, const char *why)
{
    struct shard_cache *shard = owner;
    struct cached_page *cached = shard->suspect;

    shard->is_asked = false;
    shard->suspect = NULL;
    if (!raw && error != -EBADMSG) {
        give_up(shard, cached, why);
        return;
    }
    cached->is_trimmed = raw && raw->count == 0;
    hand_over(shard, cached);
}

static void look_back_take(struct shard_cache *shard, struct cached_page *cached)
{
    struct log_cache *cache = shard->cache;

    shard->suspect = cached;
    shard->is_asked = true;
    if (cache->settings.read(cache->settings.reader, cached->shard, 0, cached->after, on_look_back,
                             shard) == 0)
        return;
    shard->is_asked = false;
    shard->suspect = NULL;
    give_up(shard, cached, "out of memory");
}

static void on_page(void *owner, const struct log_page *raw, int error, const char *why)
{
    struct shard_cache *shard = owner;
    struct log_cache *cache = shard->cache;
    uint32_t number = (uint32_t)(shard - cache->shards);
    struct cached_page *cached = NULL;

    shard->is_asked = false;
    if (raw || error == -EBADMSG) {
        cached = cached_page_new(cache, number, raw);
        why = raw ? "out of memory" : why;
    }
    if (!cached) {
        give_up(shard, NULL, why);
        return;
    }
    if (!raw)
        failed(cache, number, why);
    if (is_suspect(cached))
        look_back_take(shard, cached);
    else
        hand_over(shard, cached);
}

/* ---- pages that are read backwards ---- */

static struct cached_page *back_page_new(struct log_cache *cache, uint32_t number,
                                         const struct log_page *raw)
{
    struct cached_page *cached = mem_zalloc(sizeof(*cached));

    if (!cached)
        return NULL;
    cached->number = ++cache->asked;
    cached->shard = number;
    cached->after = raw->entries[0].previous;
    cached->segment = segment_new();
    if (!cached->segment || fill(cache, cached, raw) < 0) {
        cached_page_free(cached);
        return NULL;
    }
    cached->end = raw->entries[raw->count - 1].id;
    return cached;
}

static void on_back_page(void *owner, const struct log_page *raw, int error, const char *why)
{
    struct shard_cache *shard = owner;
    struct log_cache *cache = shard->cache;
    uint32_t number = (uint32_t)(shard - cache->shards);
    struct cached_page *cached = NULL;
    uint64_t to = shard->back_to;

    (void)error;
    shard->back_to = 0;
    if (!raw)
        failed(cache, number, why);
    else if (raw->count > 0)
        cached = back_page_new(cache, number, raw);
    if (cached) {
        metric_add(cache->settings.metrics, METRIC_LOG_PAGES_READ, 1);
        keep(cache, cached);
    }
    cache->came_back(cache->owner, number, to, cached);
}

int log_cache_ask_back(struct log_cache *cache, uint32_t number, uint64_t to)
{
    struct shard_cache *shard = &cache->shards[number];

    if (shard->back_to)
        return 0;
    if (cache->settings.read_back(cache->settings.reader, number, to, on_back_page, shard) < 0) {
        failed(cache, number, "out of memory");
        return -ENOMEM;
    }
    shard->back_to = to;
    return 0;
}
