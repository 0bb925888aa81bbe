/* log_pages.c - one list of sheets, the one used last in front.
 *
 * There are a few hundred at most, so they are looked through. A sheet is charged with its events,
 * though clients may keep some of them alive for longer. */
#include "gateway/delivery/log_pages.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "src/model/id.h"

_Static_assert((int)LOG_PAGE_EVENTS <= (int)PAGE_EVENTS, "a page of the log fits into ours");

enum { RETRY_MAX_MS = 5000 };

struct shard_pages {
    struct log_pages *pages;
    bool is_asked;
    uint64_t asked_after, known, number; /* of the sheet that is asked for */
    struct log_sheet *suspect;           /* it has come, but has it been trimmed? NULL: none */
    uint64_t newest;                     /* number of its last sheet */
};

struct log_pages {
    struct log_pages_settings settings;
    log_pages_fn changed;
    void *owner;
    struct list sheets; /* used longest ago first */
    size_t bytes;
    uint64_t asked;
    uv_timer_t retry_timer;
    struct backoff backoff;
    struct log_rate failed_rate;
    struct shard_pages shards[SL_SHARDS_MAX];
};

static void on_page(void *owner, const struct log_page *raw, int error, const char *why);

struct log_pages *log_pages_new(const struct log_pages_settings *settings)
{
    struct log_pages *pages = mem_zalloc(sizeof(*pages));

    if (!pages)
        return NULL;
    pages->settings = *settings;
    list_init(&pages->sheets);
    for (uint32_t i = 0; i < SL_SHARDS_MAX; i++)
        pages->shards[i].pages = pages;
    uv_timer_init(settings->loop, &pages->retry_timer);
    pages->retry_timer.data = pages;
    return pages;
}

void log_pages_on_change(struct log_pages *pages, log_pages_fn changed, void *owner)
{
    pages->changed = changed;
    pages->owner = owner;
}

static void sheet_free(struct log_sheet *sheet)
{
    if (!sheet)
        return;
    page_free(sheet->page);
    mem_free(sheet);
}

void log_pages_drop(struct log_pages *pages, struct log_sheet *sheet)
{
    list_remove(&pages->sheets, &sheet->node);
    pages->bytes -= sheet->page->bytes;
    metric_set(pages->settings.metrics, METRIC_LOG_PAGE_BYTES, pages->bytes);
    sheet_free(sheet);
}

static void on_timer_closed(uv_handle_t *timer)
{
    mem_free(timer->data);
}

void log_pages_free(struct log_pages *pages)
{
    if (!pages)
        return;
    LIST_EACH(&pages->sheets, node)
    log_pages_drop(pages, LIST_OWNER(node, struct log_sheet, node));
    uv_close((uv_handle_t *)&pages->retry_timer, on_timer_closed);
}

/* ---- what is here ---- */

static bool serves(const struct log_sheet *sheet, uint32_t shard, uint64_t after)
{
    if (sheet->shard != shard || after < sheet->after)
        return false;
    return sheet->is_unreadable ? after == sheet->after : after < sheet->end;
}

struct log_sheet *log_pages_find(struct log_pages *pages, uint32_t shard, uint64_t after)
{
    for (struct list_node *node = pages->sheets.head.previous; node != &pages->sheets.head;
         node = node->previous) {
        struct log_sheet *sheet = LIST_OWNER(node, struct log_sheet, node);

        if (serves(sheet, shard, after))
            return sheet;
    }
    return NULL;
}

void log_pages_note_use(struct log_pages *pages, struct log_sheet *sheet)
{
    metric_add(pages->settings.metrics, METRIC_LOG_PAGES_USED, 1);
    list_remove(&pages->sheets, &sheet->node);
    list_append(&pages->sheets, &sheet->node);
}

/* Its frames and verdicts have come since it was new. */
static void count_again(struct log_pages *pages, struct log_sheet *sheet)
{
    pages->bytes -= sheet->page->bytes;
    page_count_bytes(sheet->page);
    pages->bytes += sheet->page->bytes;
}

/* The oldest go; each shard's newest stays, however large. */
static void make_room(struct log_pages *pages)
{
    LIST_EACH(&pages->sheets, node)
    {
        struct log_sheet *sheet = LIST_OWNER(node, struct log_sheet, node);

        if (pages->bytes <= pages->settings.max_bytes)
            break;
        if (sheet->number != pages->shards[sheet->shard].newest)
            log_pages_drop(pages, sheet);
    }
}

static void keep(struct log_pages *pages, struct log_sheet *sheet)
{
    if (!list_is_empty(&pages->sheets))
        count_again(pages, LIST_OWNER(pages->sheets.head.previous, struct log_sheet, node));
    page_count_bytes(sheet->page);
    pages->bytes += sheet->page->bytes;
    pages->shards[sheet->shard].newest = sheet->number;
    list_append(&pages->sheets, &sheet->node);
    make_room(pages);
    metric_set(pages->settings.metrics, METRIC_LOG_PAGE_BYTES, pages->bytes);
}

/* ---- asking ---- */

static void on_retry(uv_timer_t *timer)
{
    struct log_pages *pages = timer->data;

    for (uint32_t shard = 0; shard < SL_SHARDS_MAX; shard++) {
        if (!pages->shards[shard].is_asked)
            pages->changed(pages->owner, shard, NULL);
    }
}

static void ask_later(struct log_pages *pages)
{
    if (!uv_is_active((uv_handle_t *)&pages->retry_timer))
        uv_timer_start(
            &pages->retry_timer, on_retry,
            backoff_next_spread_ms(&pages->backoff, pages->settings.retry_ms, RETRY_MAX_MS), 0);
}

static void failed(struct log_pages *pages, uint32_t shard, const char *why)
{
    char room[LOG_QUOTE_SIZE];
    uint64_t held_back;

    metric_add(pages->settings.metrics, METRIC_LOG_READ_FAILURES, 1);
    if (log_rate_allows(&pages->failed_rate, clock_monotonic_ms(), &held_back))
        log_warn("log_unreadable", "shard=%u reason=%s held_back=%" PRIu64, shard,
                 log_quote(sl_slice_str(why), room), held_back);
}

void log_pages_ask(struct log_pages *pages, uint32_t number, uint64_t after, uint64_t known)
{
    struct shard_pages *shard = &pages->shards[number];

    assert(after < SL_ID_MAX);
    if (shard->is_asked || uv_is_active((uv_handle_t *)&pages->retry_timer))
        return;
    shard->asked_after = after;
    shard->known = known;
    shard->number = ++pages->asked;
    shard->is_asked = true;
    if (pages->settings.read(pages->settings.reader, number, after, SL_ID_MAX, on_page, shard) == 0)
        return;
    shard->is_asked = false;
    failed(pages, number, "out of memory");
    ask_later(pages);
}

uint64_t log_pages_asked(const struct log_pages *pages)
{
    return pages->asked;
}

/* ---- what comes back ---- */

/* What is refused was refused, and counted, when it passed. */
static int decode(struct log_pages *pages, uint32_t shard, const struct sl_log_entry *raw,
                  struct page_entry *ret_entry)
{
    struct event_origin origin = {raw->id, raw->previous, shard, clock_monotonic_us()};
    struct page_entry entry = {.id = raw->id, .previous = raw->previous};
    struct failure failure;

    if (event_decode(pages->settings.decoder, raw->event, &origin, &entry.event, &failure) ==
        -ENOMEM)
        return -ENOMEM;
    if (entry.event && !event_is_for_clients(entry.event)) {
        event_unref(entry.event);
        entry.event = NULL;
    }
    *ret_entry = entry;
    return 0;
}

static int fill(struct log_pages *pages, struct log_sheet *sheet, const struct log_page *raw)
{
    for (size_t i = 0; i < raw->count; i++) {
        struct page_entry entry;

        if (decode(pages, sheet->shard, &raw->entries[i], &entry) < 0)
            return -ENOMEM;
        page_append(sheet->page, &entry);
        event_unref(entry.event);
    }
    sheet->end = raw->is_full ? raw->entries[raw->count - 1].id : SL_ID_MAX;
    return 0;
}

/* `raw` NULL: what the log holds there cannot be read. NULL: out of memory. */
static struct log_sheet *sheet_new(struct log_pages *pages, uint32_t number,
                                   const struct log_page *raw)
{
    const struct shard_pages *shard = &pages->shards[number];
    struct log_sheet *sheet = mem_zalloc(sizeof(*sheet));

    if (!sheet)
        return NULL;
    sheet->number = shard->number;
    sheet->shard = number;
    sheet->after = shard->asked_after;
    sheet->known = shard->known;
    sheet->is_unreadable = !raw;
    sheet->end = SL_ID_MAX;
    sheet->page = page_new();
    if (!sheet->page || (raw && fill(pages, sheet, raw) < 0)) {
        sheet_free(sheet);
        return NULL;
    }
    return sheet;
}

/* Does the log begin behind what the sheet was asked for? Something is missing then, which may have
 * been taken out of the middle as well. */
static bool is_suspect(const struct log_sheet *sheet)
{
    const struct page *page = sheet->page;

    if (sheet->is_unreadable || sheet->after == 0)
        return false;
    return page->count > 0 ? page->entries[0].previous > sheet->after : sheet->known > sheet->after;
}

static void hand_over(struct shard_pages *shard, struct log_sheet *sheet)
{
    struct log_pages *pages = shard->pages;

    backoff_reset(&pages->backoff);
    metric_add(pages->settings.metrics, METRIC_LOG_PAGES_READ, 1);
    keep(pages, sheet);
    pages->changed(pages->owner, sheet->shard, sheet);
}

static void give_up(struct shard_pages *shard, struct log_sheet *sheet, const char *why)
{
    sheet_free(sheet);
    failed(shard->pages, (uint32_t)(shard - shard->pages->shards), why);
    ask_later(shard->pages);
}

/* What the log holds up to where the sheet begins. */
static void on_look_back(void *owner, const struct log_page *raw, int error, const char *why)
{
    struct shard_pages *shard = owner;
    struct log_sheet *sheet = shard->suspect;

    shard->is_asked = false;
    shard->suspect = NULL;
    if (!raw && error != -EBADMSG) {
        give_up(shard, sheet, why);
        return;
    }
    sheet->is_trimmed = raw && raw->count == 0;
    hand_over(shard, sheet);
}

static void look_back_take(struct shard_pages *shard, struct log_sheet *sheet)
{
    struct log_pages *pages = shard->pages;

    shard->suspect = sheet;
    shard->is_asked = true;
    if (pages->settings.read(pages->settings.reader, sheet->shard, 0, sheet->after, on_look_back,
                             shard) == 0)
        return;
    shard->is_asked = false;
    shard->suspect = NULL;
    give_up(shard, sheet, "out of memory");
}

static void on_page(void *owner, const struct log_page *raw, int error, const char *why)
{
    struct shard_pages *shard = owner;
    struct log_pages *pages = shard->pages;
    uint32_t number = (uint32_t)(shard - pages->shards);
    struct log_sheet *sheet = NULL;

    shard->is_asked = false;
    if (raw || error == -EBADMSG) {
        sheet = sheet_new(pages, number, raw);
        why = raw ? "out of memory" : why;
    }
    if (!sheet) {
        give_up(shard, NULL, why);
        return;
    }
    if (!raw)
        failed(pages, number, why);
    if (is_suspect(sheet))
        look_back_take(shard, sheet);
    else
        hand_over(shard, sheet);
}
