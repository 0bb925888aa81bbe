/* key_fetcher.c - each source has a few states and a time at which its next fetch is due.
 *
 *     idle -> [fetches the discovery document] -> fetches the keys -> idle
 *
 * The URL from a discovery document is used as long as that document is fresh; it is fetched again
 * when the keys could not be fetched. Each attempt is counted, and logged if its result differs
 * from the previous one. Memory: the last good set of each source. */
#include "gateway/provider/key_fetcher.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/provider/cache_age.h"
#include "gateway/provider/discovery.h"
#include "gateway/provider/getter.h"
#include "gateway/provider/key_set.h"
#include "gateway/provider/set_file.h"

enum {
    USUAL_MS = 600000, /* for a response that does not say how long it may be used */
    RETRY_FIRST_MS = 1000,
    RETRY_MOST_MS = 60000,
    SPREAD = 10 /* randomizes a tenth of the time, so that hosts do not all fetch at once */
};

struct fetched {
    struct key_fetcher *fetcher;
    const struct key_source *source;
    unsigned index;
    bool is_busy;
    char *url; /* from the discovery document; NULL: unknown */
    uint64_t url_until_ms;
    uint64_t began_ms; /* time of the last attempt; 0: none */
    uint64_t due_ms;
    struct buffer set; /* the last good one; empty: none */
    uint64_t good_wall_ms;
    struct backoff backoff;
    enum fetch_result result; /* of the last attempt */
    bool was_tried;
    char why[FAILURE_TEXT_SIZE];
};

struct key_fetcher {
    struct key_fetcher_settings settings;
    struct getter *getter;
    struct fetched items[KEY_SOURCES_MAX];
    unsigned count;
};

static const char *const result_names[FETCH_RESULT_COUNT] = {
    [FETCH_GOOD] = "good",
    [FETCH_UNREACHABLE] = "unreachable",
    [FETCH_TIMED_OUT] = "timed_out",
    [FETCH_BAD_STATUS] = "bad_status",
    [FETCH_REDIRECTED] = "redirected",
    [FETCH_TOO_BIG] = "too_big",
    [FETCH_NOT_JSON] = "not_json",
    [FETCH_NO_KEYS] = "no_keys",
    [FETCH_WRONG_ISSUER] = "wrong_issuer",
    [FETCH_BAD_URL] = "bad_url",
    [FETCH_NOT_WRITTEN] = "not_written",
};

/* --- health, metrics and log --------------------------------------------------------------- */

static const struct fetched *first_that_fails(const struct key_fetcher *fetcher)
{
    const struct fetched *found = NULL;

    for (unsigned i = 0; i < fetcher->count; i++) {
        const struct fetched *item = &fetcher->items[i];

        if (item->was_tried && item->result != FETCH_GOOD &&
            (!found || (found->set.size > 0 && item->set.size == 0)))
            found = item;
    }
    return found;
}

static void tell_health(struct key_fetcher *fetcher)
{
    const struct fetched *failing = first_that_fails(fetcher);
    char why[HEALTH_WHY_SIZE];

    if (failing)
        snprintf(why, sizeof(why), "%s%.80s: %.90s", failing->set.size > 0 ? "" : "no keys of ",
                 failing->source->issuer, failing->why);
    health_set(fetcher->settings.metrics, HEALTH_KEYS, failing ? HEALTH_FAILING : HEALTH_OK, why,
               clock_wall_ms());
}

static void tell_metrics(struct key_fetcher *fetcher)
{
    struct metrics *metrics = fetcher->settings.metrics;
    uint64_t failing = 0, missing = 0, oldest_ms = UINT64_MAX;

    for (unsigned i = 0; i < fetcher->count; i++) {
        const struct fetched *item = &fetcher->items[i];

        failing += item->was_tried && item->result != FETCH_GOOD;
        missing += item->set.size == 0;
        if (item->good_wall_ms < oldest_ms)
            oldest_ms = item->good_wall_ms;
    }
    metric_set(metrics, METRIC_KEY_SETS, fetcher->count);
    metric_set(metrics, METRIC_KEY_SETS_FAILING, failing);
    metric_set(metrics, METRIC_KEY_SETS_MISSING, missing);
    metric_set(metrics, METRIC_KEY_SETS_OLDEST, oldest_ms == UINT64_MAX ? 0 : oldest_ms * 1000);
}

static void log_result(const struct fetched *item, bool is_another, unsigned keys, bool has_changed)
{
    char issuer[LOG_QUOTE_SIZE], why[LOG_QUOTE_SIZE];

    log_quote(sl_slice_str(item->source->issuer), issuer);
    if (item->result == FETCH_GOOD && (is_another || has_changed))
        log_info(has_changed ? "keys_changed" : "keys_fetched", "issuer=%s keys=%u", issuer, keys);
    if (item->result != FETCH_GOOD && is_another)
        log_warn("keys_not_fetched", "issuer=%s result=%s why=%s serving=%s", issuer,
                 result_names[item->result], log_quote(sl_slice_str(item->why), why),
                 item->set.size > 0 ? "last_good_set" : "no_keys");
}

/* --- the end of an attempt ----------------------------------------------------------------- */

static void conclude(struct fetched *item, enum fetch_result result, const char *why, unsigned keys,
                     bool has_changed)
{
    struct key_fetcher *fetcher = item->fetcher;
    bool is_another = !item->was_tried || item->result != result;

    item->is_busy = false;
    item->was_tried = true;
    item->result = result;
    snprintf(item->why, sizeof(item->why), "%s", why);
    metric_add(fetcher->settings.metrics, metric_at(METRIC_KEY_FETCHES_GOOD, result), 1);
    if (result == FETCH_GOOD)
        backoff_reset(&item->backoff);
    else
        item->due_ms = clock_monotonic_ms() +
                       backoff_next_spread_ms(&item->backoff, RETRY_FIRST_MS, RETRY_MOST_MS);
    log_result(item, is_another, keys, has_changed);
    tell_metrics(fetcher);
    tell_health(fetcher);
}

static void fail(struct fetched *item, enum fetch_result result, const char *why)
{
    mem_free(item->url); /* the keys may have another URL now */
    item->url = NULL;
    conclude(item, result, why, 0, false);
}

static uint64_t spread_ms(uint64_t wait_ms, uint64_t least_ms)
{
    uint64_t less_ms = wait_ms / SPREAD - backoff_spread_ms((uint32_t)(wait_ms / SPREAD));

    return wait_ms - less_ms < least_ms ? least_ms : wait_ms - less_ms;
}

/* The time until the next fetch. */
static uint64_t next_ms(const struct fetched *item, const struct cache_age *age)
{
    const struct key_fetcher_settings *settings = &item->fetcher->settings;

    return spread_ms(cache_age_left_ms(age, USUAL_MS, settings->least_ms, settings->most_ms),
                     settings->least_ms);
}

/* Writes the file first: a set that workers cannot read counts as not fetched. */
static int keep_set(struct fetched *item, struct sl_slice set, struct failure *reterr)
{
    int r = set_file_write(item->source->path, set, reterr);

    if (r < 0)
        return r;
    buffer_clear(&item->set);
    buffer_append_slice(&item->set, set);
    return item->set.failed ? failure_set(reterr, -ENOMEM, "out of memory") : 0;
}

static void on_keys(void *owner, enum fetch_result result, const struct get_answer *answer)
{
    struct fetched *item = owner;
    struct key_fetcher *fetcher = item->fetcher;
    struct failure failure;
    bool has_changed;
    unsigned keys = 0;

    if (result == FETCH_GOOD)
        result = key_set_check(answer->body, &keys, &failure);
    else
        failure_set(&failure, -EIO, "%s", answer->why);
    if (result != FETCH_GOOD) {
        fail(item, result, failure.text);
        return;
    }
    has_changed = !sl_slice_equal(buffer_slice(&item->set), answer->body);
    if (has_changed && keep_set(item, answer->body, &failure) < 0) {
        fail(item, FETCH_NOT_WRITTEN, failure.text);
        return;
    }
    item->due_ms = clock_monotonic_ms() + next_ms(item, &answer->age);
    item->good_wall_ms = clock_wall_ms();
    metric_add(fetcher->settings.metrics, METRIC_KEY_SETS_CHANGED, has_changed);
    conclude(item, FETCH_GOOD, "", keys, has_changed);
    key_board_set_good(fetcher->settings.board, item->index, clock_monotonic_ms());
}

/* --- an attempt ---------------------------------------------------------------------------- */

static void ask_for_keys(struct fetched *item)
{
    const char *url = item->source->url ? item->source->url : item->url;

    if (getter_start(item->fetcher->getter, url, on_keys, item) < 0)
        fail(item, FETCH_UNREACHABLE, "out of memory");
}

static void on_discovery(void *owner, enum fetch_result result, const struct get_answer *answer)
{
    struct fetched *item = owner;
    const struct key_fetcher_settings *settings = &item->fetcher->settings;
    struct failure failure;

    if (result == FETCH_GOOD)
        result = discovery_read(answer->body, item->source->issuer, &item->url, &failure);
    else
        failure_set(&failure, -EIO, "discovery: %s", answer->why);
    if (result != FETCH_GOOD) {
        fail(item, result, failure.text);
        return;
    }
    item->url_until_ms =
        clock_monotonic_ms() +
        cache_age_left_ms(&answer->age, USUAL_MS, settings->least_ms, settings->most_ms);
    ask_for_keys(item);
}

static void ask_where(struct fetched *item)
{
    struct buffer url = BUFFER_INIT;
    const char *text;

    mem_free(item->url);
    item->url = NULL;
    key_discovery_url(item->source->issuer, &url);
    text = buffer_str(&url);
    if (!text || getter_start(item->fetcher->getter, text, on_discovery, item) < 0)
        fail(item, FETCH_UNREACHABLE, "out of memory");
    buffer_done(&url);
}

static void begin(struct fetched *item, uint64_t now_ms)
{
    item->is_busy = true;
    item->began_ms = now_ms;
    key_board_begun(item->fetcher->settings.board, item->index);
    if (item->source->url || (item->url && now_ms < item->url_until_ms))
        ask_for_keys(item);
    else
        ask_where(item);
}

/* When the next fetch begins, as things are now. */
static uint64_t due_ms(const struct fetched *item)
{
    const struct key_fetcher_settings *settings = &item->fetcher->settings;

    if (item->is_busy)
        return UINT64_MAX;
    if (item->was_tried && key_board_is_wanted(settings->board, item->index) &&
        item->began_ms + settings->again_ms < item->due_ms)
        return item->began_ms + settings->again_ms;
    return item->due_ms;
}

void key_fetcher_turn(struct key_fetcher *fetcher, int fd, uint32_t most_ms)
{
    const int fds[] = {fd, key_board_fd(fetcher->settings.board)};
    uint64_t now_ms = clock_monotonic_ms(), next_due_ms = UINT64_MAX;

    for (unsigned i = 0; i < fetcher->count; i++) {
        struct fetched *item = &fetcher->items[i];

        if (due_ms(item) <= now_ms)
            begin(item, now_ms);
        if (due_ms(item) < next_due_ms)
            next_due_ms = due_ms(item);
    }
    if (next_due_ms < now_ms + most_ms)
        most_ms = next_due_ms > now_ms ? (uint32_t)(next_due_ms - now_ms) : 0;
    getter_run(fetcher->getter, fds, 2, most_ms);
    key_board_heard(fetcher->settings.board);
}

/* --- creating and freeing ------------------------------------------------------------------ */

/* Reads the set of a previous server; it is as good as it was then. */
static void read_last(struct fetched *item)
{
    struct failure failure;
    unsigned keys;

    if (set_file_read(item->source->path, &item->set) < 0 ||
        key_set_check(buffer_slice(&item->set), &keys, &failure) != FETCH_GOOD)
        buffer_clear(&item->set);
}

struct key_fetcher *key_fetcher_new(const struct key_fetcher_settings *settings)
{
    struct key_fetcher *fetcher = mem_zalloc(sizeof(*fetcher));

    if (!fetcher)
        return NULL;
    fetcher->settings = *settings;
    fetcher->count = settings->sources->count;
    fetcher->getter = getter_new(settings->ca_file, settings->timeout_ms);
    if (!fetcher->getter) {
        key_fetcher_free(fetcher);
        return NULL;
    }
    for (unsigned i = 0; i < fetcher->count; i++) {
        struct fetched *item = &fetcher->items[i];

        item->fetcher = fetcher;
        item->source = &settings->sources->items[i];
        item->index = i;
        read_last(item);
    }
    key_board_begin(settings->board, settings->sources);
    tell_metrics(fetcher);
    return fetcher;
}

void key_fetcher_free(struct key_fetcher *fetcher)
{
    if (!fetcher)
        return;
    getter_free(fetcher->getter);
    for (unsigned i = 0; i < fetcher->count; i++) {
        mem_free(fetcher->items[i].url);
        buffer_done(&fetcher->items[i].set);
    }
    mem_free(fetcher);
}
