/* tests/support/filter_try.h - one filter, one event: does it match? Asks both implementations.
 *
 *     TRY_FILTER(.track = SL_SLICE("hot pot")) returns a filter or fails the test;
 *     try_match(filter, &event) asks sl_filter_matches() and a separate index, and fails the test
 *     if they differ. */
#pragma once

#include "filters/filter.h"
#include "filters/filter_index.h"
#include "filters/words.h"
#include "tests/support/cmocka_all.h"

enum { TRY_SEED = 20261121 };

static inline struct sl_filter *try_filter(struct sl_filter_text text)
{
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct sl_filter_error error = {0};
    struct sl_filter *filter = NULL;

    if (sl_filter_new(&text, &limits, &filter, &error) < 0)
        fail_msg("refused: %s", error.code);
    return filter;
}

#define TRY_FILTER(...) try_filter((struct sl_filter_text){__VA_ARGS__})

static inline bool try_match(struct sl_filter *filter, const struct sl_event_view *event)
{
    struct sl_words *words = sl_words_new(TRY_SEED);
    struct sl_filter_index *index = sl_filter_index_new(TRY_SEED);
    struct sl_match_set *matches = sl_match_set_new();
    uint32_t subscription;
    bool direct, indexed;

    assert_int_equal(sl_words_read(words, event), 0);
    assert_int_equal(sl_filter_index_add(index, filter, &subscription), 0);
    assert_int_equal(sl_filter_index_match(index, event, words, matches), 0);
    indexed = sl_match_set_count(matches) == 1;
    direct = sl_filter_matches(filter, event, words);
    sl_match_set_free(matches);
    sl_filter_index_free(index);
    sl_words_free(words);
    if (direct != indexed)
        fail_msg("directly it %s, by the index it %s", direct ? "matches" : "does not match",
                 indexed ? "matches" : "does not match");
    return direct;
}

/* The same, and frees the filter. */
static inline bool try_match_once(struct sl_filter *filter, const struct sl_event_view *event)
{
    bool matches = try_match(filter, event);

    sl_filter_unref(filter);
    return matches;
}

static inline struct sl_event_view try_post(const char *text)
{
    return (struct sl_event_view){
        .type = SL_EVENT_POST,
        .sample_id = 1001,
        .text = sl_slice_str(text),
        .user = SL_SLICE("99"),
    };
}

static inline bool try_track(const char *track, const char *text)
{
    struct sl_event_view event = try_post(text);

    return try_match_once(TRY_FILTER(.track = sl_slice_str(track)), &event);
}

static inline bool try_rule(const char *rule, const struct sl_event_view *event)
{
    return try_match_once(TRY_FILTER(.rule = sl_slice_str(rule)), event);
}

/* Returns the code with which a filter is refused; "" if it is not. */
static inline const char *try_refused(struct sl_filter_text text)
{
    struct sl_filter_limits limits = SL_FILTER_LIMITS_DEFAULT;
    struct sl_filter_error error = {0};
    struct sl_filter *filter = NULL;

    if (sl_filter_new(&text, &limits, &filter, &error) == 0)
        error.code = "";
    sl_filter_unref(filter);
    return error.code;
}

#define TRY_REFUSED(...) try_refused((struct sl_filter_text){__VA_ARGS__})
