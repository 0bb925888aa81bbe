/* estimate.c - an index of the filter and its pieces, and sums for each slot.
 *
 * Each subscription of the index has a counter: of the filter, of a piece, or of the rule without
 * one item. So an event needs one look-up, whatever the number of pieces. Text that is not a valid
 * filter by itself, such as -dog, is no piece. Memory: SL_FILTER_PIECES_MAX pieces, twice as many
 * small filters, ESTIMATE_SLOTS_MAX sums, and references to ESTIMATE_EXAMPLES events. */
#include "gateway/counts/estimate.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "filters/filter_index.h"
#include "filters/filter_pieces.h"
#include "filters/words.h"
#include "gateway/front/filter_json.h"

enum { SHORT_SPAN_S = 60 }; /* shorter times say little about the next ten minutes */

/* For a two-sided 95 % interval of the normal distribution. */
#define Z95 1.959964

struct piece {
    struct sl_filter_piece text;
    uint64_t events;
    bool has_rest; /* `rest_events` counts matches of the rule without this item */
    uint64_t rest_events;
};

struct slot {
    uint64_t events, bytes;
    double exposure; /* seconds of a complete sample with the same information */
};

struct estimate {
    struct sl_filter_index *index;
    struct sl_words *words;
    struct sl_match_set *matches;
    uint64_t **counters; /* by subscription */
    uint32_t counter_count;
    unsigned types;
    bool is_wide;
    size_t piece_count, piece_total; /* pieces that are counted, and all of them */
    struct piece *pieces;
    uint64_t looked, events; /* of all slots */
    uint64_t hit;            /* 1: the filter matches the current event */
    struct slot slots[ESTIMATE_SLOTS_MAX];
    size_t slot_count; /* after the span was set: slots without exposure are removed */
    double looked_exposure, span;
    struct event *examples[ESTIMATE_EXAMPLES];
    size_t example_count;
};

/* --- filters ------------------------------------------------------------------------------ */

/* Increments *counter for each event that `filter` matches. */
static int watch(struct estimate *estimate, struct sl_filter *filter, uint64_t *counter)
{
    uint32_t subscription;
    int r = sl_filter_index_add(estimate->index, filter, &subscription);

    if (r < 0)
        return r;
    if (subscription >= estimate->counter_count)
        return -ENOMEM; /* impossible, because numbers are dense */
    estimate->counters[subscription] = counter;
    return 0;
}

/* Skips text that is not a valid filter by itself; *ret_is_watched is false then. */
static int watch_text(struct estimate *estimate, const struct sl_filter_text *text,
                      const struct sl_filter_limits *limits, uint64_t *counter,
                      bool *ret_is_watched)
{
    struct sl_filter *filter;
    int r = sl_filter_new(text, limits, &filter, NULL);

    *ret_is_watched = r == 0;
    if (r == -EINVAL)
        return 0;
    if (r == 0) {
        r = watch(estimate, filter, counter);
        sl_filter_unref(filter);
    }
    return r;
}

static int watch_rest(struct estimate *estimate, struct piece *piece,
                      const struct sl_filter_limits *limits)
{
    struct sl_filter_text text = piece->text.text;
    struct buffer rule = BUFFER_INIT;
    int r;

    if (!piece->text.rest_before.data)
        return 0;
    buffer_append_slice(&rule, piece->text.rest_before);
    buffer_append_char(&rule, ' ');
    buffer_append_slice(&rule, piece->text.rest_behind);
    text.rule = buffer_slice(&rule);
    r = rule.failed ? -ENOMEM
                    : watch_text(estimate, &text, limits, &piece->rest_events, &piece->has_rest);
    buffer_done(&rule);
    return r;
}

static int watch_pieces(struct estimate *estimate, const struct sl_filter_text *text,
                        const struct sl_filter_limits *limits)
{
    struct sl_filter_piece *found = mem_alloc(SL_FILTER_PIECES_MAX * sizeof(*found));
    size_t count;
    int r = 0;

    if (!found)
        return -ENOMEM;
    estimate->piece_total = sl_filter_pieces(text, found);
    count =
        estimate->piece_total < SL_FILTER_PIECES_MAX ? estimate->piece_total : SL_FILTER_PIECES_MAX;
    estimate->pieces = mem_zalloc(SL_FILTER_PIECES_MAX * sizeof(*estimate->pieces));
    if (!estimate->pieces)
        r = -ENOMEM;
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct piece *piece = &estimate->pieces[estimate->piece_count];
        bool is_watched;

        piece->text = found[i];
        r = watch_text(estimate, &piece->text.text, limits, &piece->events, &is_watched);
        if (r == 0 && is_watched)
            r = watch_rest(estimate, piece, limits);
        if (is_watched)
            estimate->piece_count++;
        else
            estimate->piece_total--;
    }
    mem_free(found);
    return r;
}

static bool is_wide(const struct sl_filter_text *text, const struct sl_filter_limits *limits)
{
    struct sl_filter_limits narrow = *limits;
    struct sl_filter *filter;

    narrow.allows_wide = false;
    if (sl_filter_new(text, &narrow, &filter, NULL) < 0)
        return true;
    sl_filter_unref(filter);
    return false;
}

struct estimate *estimate_new(const struct sl_filter_text *text,
                              const struct sl_filter_limits *limits, struct sl_filter *filter,
                              uint64_t seed)
{
    struct estimate *estimate = mem_zalloc(sizeof(*estimate));

    if (!estimate)
        return NULL;
    estimate->types = sl_filter_types(filter);
    estimate->is_wide = is_wide(text, limits);
    estimate->index = sl_filter_index_new(seed);
    estimate->words = sl_words_new(seed);
    estimate->matches = sl_match_set_new();
    estimate->counter_count = 1 + 2 * SL_FILTER_PIECES_MAX;
    estimate->counters =
        mem_zalloc(mem_array_size(estimate->counter_count, sizeof(*estimate->counters)));
    if (!estimate->index || !estimate->words || !estimate->matches || !estimate->counters ||
        watch(estimate, filter, &estimate->hit) < 0 || watch_pieces(estimate, text, limits) < 0) {
        estimate_free(estimate);
        return NULL;
    }
    return estimate;
}

void estimate_free(struct estimate *estimate)
{
    if (!estimate)
        return;
    while (estimate->example_count > 0)
        event_unref(estimate->examples[--estimate->example_count]);
    sl_filter_index_free(estimate->index);
    sl_words_free(estimate->words);
    sl_match_set_free(estimate->matches);
    mem_free(estimate->counters);
    mem_free(estimate->pieces);
    mem_free(estimate);
}

/* --- events ------------------------------------------------------------------------------- */

/* Whether the firehose with the same types would contain it. */
static bool is_of_firehose(const struct estimate *estimate, const struct event *event)
{
    return event_is_for_clients(event) && !event->view.restricted &&
           estimate->types & 1u << event->view.type;
}

static int match(struct estimate *estimate, const struct event *event)
{
    int r = sl_words_read(estimate->words, &event->view);

    if (r == 0)
        r = sl_filter_index_match(estimate->index, &event->view, estimate->words,
                                  estimate->matches);
    return r;
}

int estimate_wants(struct estimate *estimate, const struct event *event, bool *ret_is_match)
{
    const uint32_t *subscriptions;
    int r;

    *ret_is_match = false;
    if (!is_of_firehose(estimate, event))
        return 0;
    r = match(estimate, event);
    subscriptions = sl_match_set_subscriptions(estimate->matches);
    for (size_t i = 0; r == 0 && i < sl_match_set_count(estimate->matches); i++)
        *ret_is_match |= estimate->counters[subscriptions[i]] == &estimate->hit;
    return r;
}

int estimate_look(struct estimate *estimate, unsigned number, const struct event *event,
                  bool *ret_is_match)
{
    struct slot *slot = &estimate->slots[number];
    const uint32_t *subscriptions;
    int r;

    *ret_is_match = false;
    if (!is_of_firehose(estimate, event))
        return 0;
    r = match(estimate, event);
    if (r < 0)
        return r;
    estimate->looked++;
    estimate->hit = 0;
    subscriptions = sl_match_set_subscriptions(estimate->matches);
    for (size_t i = 0; i < sl_match_set_count(estimate->matches); i++)
        ++*estimate->counters[subscriptions[i]];
    *ret_is_match = estimate->hit > 0;
    if (*ret_is_match) {
        slot->events++;
        slot->bytes += event->json.size;
    }
    return 0;
}

void estimate_set_slot(struct estimate *estimate, unsigned slot, double seconds, double share)
{
    estimate->slots[slot].exposure = seconds * share;
}

void estimate_set_span(struct estimate *estimate, double seconds)
{
    estimate->span = seconds;
    for (size_t i = 0; i < ESTIMATE_SLOTS_MAX; i++) {
        const struct slot slot = estimate->slots[i];

        if (!(slot.exposure > 0))
            continue;
        estimate->events += slot.events;
        estimate->looked_exposure += slot.exposure;
        estimate->slots[estimate->slot_count++] = slot;
    }
}

bool estimate_keep_example(struct estimate *estimate, struct event *event)
{
    if (estimate->example_count < ESTIMATE_EXAMPLES)
        estimate->examples[estimate->example_count++] = event_ref(event);
    return estimate->example_count == ESTIMATE_EXAMPLES;
}

/* --- the interval ------------------------------------------------------------------------- */

struct moments {
    double mean, variance; /* of the slots' rates */
    double poisson;        /* expected by chance alone */
    double correlation;    /* of neighbouring slots, 0 to 0.9 */
};

static double rate_of(const struct slot *slot)
{
    return (double)slot->events / slot->exposure;
}

static struct moments moments_of(const struct estimate *estimate)
{
    const double count = (double)estimate->slot_count;
    struct moments moments = {0};
    double products = 0, squares = 0, inverse = 0;

    for (size_t i = 0; i < estimate->slot_count; i++) {
        moments.mean += rate_of(&estimate->slots[i]) / count;
        inverse += 1 / estimate->slots[i].exposure / count;
    }
    for (size_t i = 0; i < estimate->slot_count; i++) {
        double from_mean = rate_of(&estimate->slots[i]) - moments.mean;

        squares += from_mean * from_mean;
        if (i > 0)
            products += from_mean * (rate_of(&estimate->slots[i - 1]) - moments.mean);
    }
    moments.variance = count > 1 ? squares / (count - 1) : 0;
    moments.poisson = (moments.mean + 0.5 / estimate->looked_exposure) * inverse;
    moments.correlation = squares > 0 ? products / squares : 0;
    moments.correlation = fmin(fmax(moments.correlation, 0), 0.9);
    return moments;
}

/* The variance of the predicted rate of the next ten minutes. */
static double variance_of(const struct estimate *estimate, const struct moments *moments)
{
    const double count = (double)estimate->slot_count;
    const double alike = (1 + moments->correlation) / (1 - moments->correlation);
    double ahead = estimate->span > ESTIMATE_AHEAD_S ? ESTIMATE_AHEAD_S / estimate->span : 1;
    double independent = fmax(count * ahead / alike, 1);
    double excess = fmax(moments->variance - moments->poisson, 0);

    return fmax(moments->variance * alike, moments->poisson) / count +
           (moments->mean + 0.5 / estimate->looked_exposure) / ESTIMATE_AHEAD_S +
           excess / independent;
}

/* A quantile of a gamma distribution. */
static double quantile(double mean, double variance, double deviate)
{
    double ninth = variance / (9 * mean * mean), root;

    root = 1 - ninth + deviate * sqrt(ninth);
    return root > 0 ? mean * root * root * root : 0;
}

/* The quantile of Student's t for this number of slots (Fisher's expansion, first term). */
static double deviate_of(size_t slots)
{
    double freedom = slots > 1 ? (double)slots - 1 : 1;

    return Z95 + (Z95 * Z95 * Z95 + Z95) / (4 * freedom);
}

struct estimate_rate estimate_rate(const struct estimate *estimate)
{
    struct estimate_rate rate = {0};
    struct moments moments;
    double mean, variance, deviate;

    if (estimate->slot_count == 0)
        return rate;
    moments = moments_of(estimate);
    mean = moments.mean + 0.5 / estimate->looked_exposure;
    variance = variance_of(estimate, &moments);
    deviate = deviate_of(estimate->slot_count);
    rate.per_second = moments.mean;
    rate.low = estimate->events > 0 ? fmin(quantile(mean, variance, -deviate), rate.per_second) : 0;
    rate.high = quantile(mean, variance, deviate);
    for (size_t i = 0; i < estimate->slot_count; i++)
        rate.bytes_per_second += (double)estimate->slots[i].bytes / estimate->slots[i].exposure /
                                 (double)estimate->slot_count;
    return rate;
}

/* --- the answer --------------------------------------------------------------------------- */

static void print_pieces(const struct estimate *estimate, struct buffer *json)
{
    buffer_append_str(json, ",\n \"parts\":[");
    for (size_t i = 0; i < estimate->piece_count; i++) {
        const struct piece *piece = &estimate->pieces[i];

        buffer_append_format(json, "%s{\"param\":\"%s\",\"value\":", i ? "," : "",
                             piece->text.param);
        buffer_append_json_string(json, piece->text.value);
        buffer_append_format(json, ",\"events\":%" PRIu64, piece->events);
        if (piece->has_rest)
            buffer_append_format(json, ",\"without\":%" PRIu64, piece->rest_events);
        buffer_append_char(json, '}');
    }
    buffer_append_char(json, ']');
    if (estimate->piece_total > estimate->piece_count)
        buffer_append_format(json, ",\"more_parts\":%zu",
                             estimate->piece_total - estimate->piece_count);
}

static void print_examples(const struct estimate *estimate, struct buffer *json)
{
    buffer_append_str(json, ",\n \"examples\":[");
    for (size_t i = 0; i < estimate->example_count; i++) {
        buffer_append_str(json, i ? ",\n" : "\n");
        buffer_append_slice(json, estimate->examples[i]->json);
    }
    buffer_append_char(json, ']');
}

static void begin_warning(struct buffer *json, bool *is_first)
{
    buffer_append_str(json, *is_first ? "{" : ",{");
    *is_first = false;
}

static void print_own_warning(struct buffer *json, bool *is_first, const char *code,
                              const char *message, const char *param)
{
    begin_warning(json, is_first);
    buffer_append_format(json, "\"code\":\"%s\",\"message\":", code);
    buffer_append_json_string(json, sl_slice_str(message));
    if (param)
        buffer_append_format(json, ",\"param\":\"%s\"", param);
    buffer_append_char(json, '}');
}

/* If the rule matches nothing: the item whose removal gives the most matches; NULL: none does. */
static const struct piece *obstacle_of(const struct estimate *estimate)
{
    const struct piece *found = NULL;

    for (size_t i = 0; i < estimate->piece_count; i++) {
        const struct piece *piece = &estimate->pieces[i];

        if (piece->has_rest && piece->rest_events > (found ? found->rest_events : 0))
            found = piece;
    }
    return found;
}

static void warn_of_nothing(const struct estimate *estimate, struct buffer *json, bool *is_first)
{
    const struct piece *obstacle = obstacle_of(estimate);
    char message[256];

    if (obstacle && obstacle->text.value.size <= 100)
        snprintf(message, sizeof(message),
                 "none of %" PRIu64 " events matches; without %.*s it would be %" PRIu64,
                 estimate->looked, SL_SLICE_ARG(obstacle->text.value), obstacle->rest_events);
    else
        snprintf(message, sizeof(message), "none of %" PRIu64 " events matches", estimate->looked);
    print_own_warning(json, is_first, "nothing_matches", message, obstacle ? "rule" : NULL);
}

/* For a filter that matches something. */
static void warn_of_idle_pieces(const struct estimate *estimate, struct buffer *json,
                                bool *is_first)
{
    const struct piece *idle = NULL;
    size_t count = 0;
    char message[256];

    for (size_t i = 0; i < estimate->piece_count; i++) {
        if (estimate->pieces[i].events == 0 && !idle)
            idle = &estimate->pieces[i];
        count += estimate->pieces[i].events == 0;
    }
    if (!idle || idle->text.value.size > 100)
        return;
    if (count == 1)
        snprintf(message, sizeof(message), "%.*s brings none of %" PRIu64 " events",
                 SL_SLICE_ARG(idle->text.value), estimate->looked);
    else
        snprintf(message, sizeof(message), "%.*s and %zu more match none of %" PRIu64 " events",
                 SL_SLICE_ARG(idle->text.value), count - 1, estimate->looked);
    print_own_warning(json, is_first, "part_brings_nothing", message, idle->text.param);
}

static void print_warnings(const struct estimate *estimate,
                           const struct sl_filter_warnings *warnings, struct buffer *json)
{
    bool is_first = true;
    char message[160];

    buffer_append_str(json, ",\n \"warnings\":[");
    for (size_t i = 0; warnings && i < warnings->count; i++) {
        begin_warning(json, &is_first);
        filter_json_append_warning(&warnings->list[i], json);
        buffer_append_char(json, '}');
    }
    if (estimate->is_wide)
        print_own_warning(json, &is_first, "wide_rule",
                          "lang: and country: alone are enough for counts and with max_rate, and "
                          "too broad for other streams",
                          "rule");
    if (estimate->looked > 0 && estimate->events == 0)
        warn_of_nothing(estimate, json, &is_first);
    else
        warn_of_idle_pieces(estimate, json, &is_first);
    if (estimate->span < SHORT_SPAN_S) {
        snprintf(message, sizeof(message),
                 "this covers only %.3g seconds, and the next ten minutes may differ; use since "
                 "to reach further back",
                 estimate->span);
        print_own_warning(json, &is_first, "short_time", message, NULL);
    }
    buffer_append_char(json, ']');
}

void estimate_print(const struct estimate *estimate, const struct sl_filter_warnings *warnings,
                    struct buffer *json)
{
    const struct estimate_rate rate = estimate_rate(estimate);

    buffer_append_format(json, "{\"events\":%" PRIu64 ",\"looked_at\":%" PRIu64 ",\"seconds\":%.3f",
                         estimate->events, estimate->looked, estimate->span);
    buffer_append_format(json,
                         ",\"per_second\":%.4g,\"per_second_low\":%.4g,\"per_second_high\":%.4g,"
                         "\"bytes_per_second\":%.4g,\"share\":%.4g",
                         rate.per_second, rate.low, rate.high, rate.bytes_per_second,
                         estimate->looked ? (double)estimate->events / (double)estimate->looked
                                          : 0.0);
    print_pieces(estimate, json);
    print_examples(estimate, json);
    print_warnings(estimate, warnings, json);
    buffer_append_str(json, "}\n");
}
